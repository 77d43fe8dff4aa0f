//go:build !race

package evloop

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// read and write bypass the runtime's system call hooks: on non-blocking sockets the calls take a few µs, and the hooks would cost as much
// as Go's share of them. recv and send skip what the kernel does for files.

func read(fd int32, p []byte) (int, unix.Errno) {
	return call(unix.SYS_RECVFROM, fd, p, unix.MSG_DONTWAIT)
}

func write(fd int32, p []byte) (int, unix.Errno) {
	return call(unix.SYS_SENDTO, fd, p, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

func call(trap uintptr, fd int32, p []byte, flags uintptr) (int, unix.Errno) {
	for {
		n, _, err := unix.RawSyscall6(trap, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0)
		if err == 0 {
			runtime.KeepAlive(p)
			return int(n), 0
		}
		if err != unix.EINTR {
			return 0, err
		}
	}
}
