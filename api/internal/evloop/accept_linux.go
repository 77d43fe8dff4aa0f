package evloop

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/lubdub-io/lubdub/api/internal/conn"
)

const acceptsAtOnce = 32

// acceptor accepts a front's connections on its first loop and distributes them to all loops in turn.
type acceptor struct {
	fd      int
	taken   uint32 // connections accepted so far
	held    int    // the descriptor of a connection that waits for room; -1: none
	starved time.Duration
	retry   int64 // when to accept again after a lack of descriptors or of room, ns since the epoch; 0: not paused

	accept func(fd int) (int, error) // accept4; tests replace it
}

// listen registers the listener with the first loop.
func (a *acceptor) listen(l *Loop) error {
	// Accepted connections inherit these options.
	for _, o := range []struct{ level, name, value int }{
		{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1}, {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15}, {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15}, {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 9},
	} {
		if err := unix.SetsockoptInt(a.fd, o.level, o.name, o.value); err != nil {
			return err
		}
	}
	return watch(l.epoll, unix.EPOLL_CTL_ADD, int32(a.fd), 0, unix.EPOLLIN)
}

func accept4(fd int) (int, error) {
	n, _, err := unix.Accept4(fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	return n, err
}

// is reports whether an event of the loop is the listener's.
func (a *acceptor) is(l *Loop, fd int32) bool { return l == l.front.loops[0] && int(fd) == a.fd }

// open reports whether the loop still accepts connections.
func (a *acceptor) open(l *Loop) bool { return l == l.front.loops[0] && a.fd >= 0 }

// end closes the listener's descriptor, if this loop owns it.
func (a *acceptor) end(l *Loop) {
	if a.open(l) {
		a.close()
	}
}

func (a *acceptor) close() {
	if a.fd >= 0 {
		_ = unix.Close(a.fd)
	}
	if a.held >= 0 {
		_ = unix.Close(a.held)
	}
	a.fd, a.held, a.retry = -1, -1, 0
}

// take accepts pending connections, a limited number at a time.
func (a *acceptor) take(l *Loop) {
	for range acceptsAtOnce {
		if l.front.stopping.Load() {
			return
		}
		fd, err := a.next()
		switch err {
		case nil:
			a.starved = 0
			if !a.admit(l, fd) {
				return
			}
		case unix.EAGAIN:
			return
		case unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM:
			a.starve(l, err)
			return
		case unix.EINTR, unix.ECONNABORTED:
		default:
			a.fail(l, err)
			return
		}
	}
}

// next returns the connection that waits for room, or accepts the next one.
func (a *acceptor) next() (fd int, err error) {
	if fd, a.held = a.held, -1; fd >= 0 {
		return fd, nil
	}
	return a.accept(a.fd)
}

// starve pauses accepting because no descriptor is left, and cuts the connection of a client without a valid token.
func (a *acceptor) starve(l *Loop, err error) {
	l.front.gate.Starve(err)
	a.starved = min(max(2*a.starved, conn.StarvedFirst), conn.StarvedMost)
	a.rest(l, a.starved)
}

// rest pauses accepting for d.
func (a *acceptor) rest(l *Loop, d time.Duration) {
	a.retry = l.now + int64(d)
	_ = watch(l.epoll, unix.EPOLL_CTL_MOD, int32(a.fd), 0, 0)
}

// due returns when to accept again; 0: accepting is not paused.
func (a *acceptor) due(l *Loop) int64 {
	if !a.open(l) {
		return 0
	}
	return a.retry
}

// again resumes accepting after a pause.
func (a *acceptor) again(l *Loop) {
	if at := a.due(l); at != 0 && (at <= l.now || at-l.now > int64(conn.StarvedMost)) {
		a.retry = 0
		if err := watch(l.epoll, unix.EPOLL_CTL_MOD, int32(a.fd), 0, unix.EPOLLIN); err != nil {
			a.fail(l, err)
			return
		}
		a.take(l)
	}
}

// fail ends the front because no connection can be accepted any more. While the front stops that is expected: Close, on another goroutine,
// has shut the listener down.
func (a *acceptor) fail(l *Loop, err error) {
	if l.front.stopping.Load() {
		return
	}
	select {
	case l.front.failed <- err:
	default:
	}
	_ = l.front.Close()
}

// admit accepts or refuses a connection. It returns false if the connection must wait for room.
func (a *acceptor) admit(l *Loop, fd int) bool {
	f := l.front
	switch ok, retry := f.gate.Admit(); {
	case retry > 0:
		a.held = fd
		a.rest(l, retry)
		return false
	case !ok:
		f.gate.Refuse(descriptor(fd))
		_ = unix.Close(fd)
		return true
	}
	a.taken++
	of := f.loops[int(a.taken)%len(f.loops)]
	c := &Conn{loop: of, fd: int32(fd), gen: a.taken, came: uint32(l.now / int64(time.Millisecond)), slot: f.table.grow(int32(fd))}
	c.since.Store(l.now)
	c.slot.due.Store(l.now + int64(f.cfg.ReadTimeout))
	c.slot.conn.Store(c)
	of.open.Add(1)
	if err := watch(of.epoll, unix.EPOLL_CTL_ADD, c.fd, c.gen, interest); err != nil {
		of.forget(c)
	}
	return true
}

// descriptor is that of a new connection, whose empty send buffer takes a refusal without waiting.
type descriptor int

func (fd descriptor) Write(p []byte) (int, error) {
	n, err := write(int32(fd), p)
	if err != 0 {
		return n, err
	}
	return n, nil
}
