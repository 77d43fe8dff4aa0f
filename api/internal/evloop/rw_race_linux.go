//go:build race

package evloop

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// The race detector sees the order of these calls, including that with Go's own connections.

func read(fd int32, p []byte) (int, unix.Errno) { return again(syscall.Read, fd, p) }

func write(fd int32, p []byte) (int, unix.Errno) { return again(syscall.Write, fd, p) }

func again(do func(int, []byte) (int, error), fd int32, p []byte) (int, unix.Errno) {
	for {
		n, err := do(int(fd), p)
		if err == nil {
			return n, 0
		}
		if err != unix.EINTR {
			return 0, err.(unix.Errno)
		}
	}
}
