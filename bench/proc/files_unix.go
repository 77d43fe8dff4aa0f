//go:build unix

package proc

import "syscall"

// RaiseFileLimit lets this process and its children open as many files as the system allows.
func RaiseFileLimit() {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) == nil {
		l.Cur = l.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l) // children get it too, once it was set
	}
}
