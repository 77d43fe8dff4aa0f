//go:build unix

package proc

import (
	"math"
	"syscall"
)

// FileLimit is how many files this process may open, and each of its children.
func FileLimit() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return math.MaxInt32
	}
	return int(min(uint64(l.Cur), math.MaxInt32))
}

// RaiseFileLimit lets this process and its children open as many files as the system allows.
func RaiseFileLimit() {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) == nil {
		l.Cur = l.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l) // children get it too, once it was set
	}
}
