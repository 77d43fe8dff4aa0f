//go:build !unix

package proc

import "math"

// FileLimit is how many files this process may open, and each of its children.
func FileLimit() int { return math.MaxInt32 }

// RaiseFileLimit lets this process and its children open as many files as the system allows.
func RaiseFileLimit() {}
