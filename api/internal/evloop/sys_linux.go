package evloop

import "golang.org/x/sys/unix"

// interest is the set of events that a descriptor reports, each time that they occur: bytes, and the client's end.
const interest = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET

// watch adds or changes the events that a descriptor reports.
func watch(poll, op int, fd int32, gen uint32, events uint32) error {
	return unix.EpollCtl(poll, op, int(fd), &unix.EpollEvent{Events: events, Fd: fd, Pad: int32(gen)})
}
