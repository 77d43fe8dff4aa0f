// Package lane is group commit: while one flush is under way the next one collects. It imports nothing of Lubdub's.
package lane
