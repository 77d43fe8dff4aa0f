package api

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// mostUnsent is roughly how many bytes of answers the kernel buffers for a client whose receive window is full. The default of 4 MB would
// be wasted on a client that does not read.
const mostUnsent = 128 << 10

// limitUnsent sets mostUnsent on a listening socket; connections inherit it.
func limitUnsent(_, _ string, c syscall.RawConn) (err error) {
	set := func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, mostUnsent)
	}
	return errors.Join(c.Control(set), err)
}
