package evloop

import "golang.org/x/sys/unix"

// interest is what a descriptor tells of, each time that it comes about: bytes, and the client's end.
const interest = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET

// watch adds or changes what a descriptor tells.
func watch(poll, op int, fd int32, gen uint32, events uint32) error {
	return unix.EpollCtl(poll, op, int(fd), &unix.EpollEvent{Events: events, Fd: fd, Pad: int32(gen)})
}
