//go:build !unix

package proc

import "math"

// FileLimit returns how many files this process, and each of its children, may open.
func FileLimit() int { return math.MaxInt32 }

// RaiseFileLimit does nothing on this system.
func RaiseFileLimit() {}
