// Package lane is group commit: while one flush runs, the next batch collects. It imports no other package of Lubdub.
package lane
