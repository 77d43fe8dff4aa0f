//go:build unix

package proc

import (
	"math"
	"syscall"
)

// FileLimit returns how many files this process, and each of its children, may open.
func FileLimit() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return math.MaxInt32
	}
	return int(min(uint64(l.Cur), math.MaxInt32))
}

// RaiseFileLimit allows this process and its children to open as many files as the system permits.
func RaiseFileLimit() {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) == nil {
		l.Cur = l.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l) // children get it too, once it was set
	}
}
