//go:build !race

package evloop

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// read and write tell the runtime nothing: on descriptors that do not block they take some µs, and to tell would cost as much again
// as Go's own part of them.

func read(fd int32, p []byte) (int, unix.Errno) {
	for {
		n, _, err := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		if err == 0 {
			runtime.KeepAlive(p)
			return int(n), 0
		}
		if err != unix.EINTR {
			return 0, err
		}
	}
}

func write(fd int32, p []byte) (int, unix.Errno) {
	for {
		n, _, err := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		if err == 0 {
			runtime.KeepAlive(p)
			return int(n), 0
		}
		if err != unix.EINTR {
			return 0, err
		}
	}
}
