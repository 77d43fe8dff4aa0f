// Package outside tests Lubdub as users get it: programs in separate modules that import the SDK.
package outside
