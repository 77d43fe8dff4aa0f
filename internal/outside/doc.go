// Package outside tests Lubdub as others get it: programs with a go.mod of their own that link the SDK.
package outside
