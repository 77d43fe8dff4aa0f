package load

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Light is a generator in which few threads serve all connections, each with its own epoll: a connection takes a few hundred bytes, a
// request two system calls, and its time is measured to some µs. Its sources must not wait.
type Light struct {
	threads []*thread
	size    int
}

// thread is the connections of one thread.
type thread struct {
	number, of int // of all threads
	total      int // connections of all threads
	epoll      int
	conns      []*lightConn // each of-th one
	address    string

	answered atomic.Int64 // in the run under way
}

// lightConn is one connection with at most one request under way.
type lightConn struct {
	fd     int // -1: closed
	number int // among all
	busy   bool
	over   bool // its source has ended
	source Source

	intended, free, sent time.Duration
	backlog              []time.Duration // intended times that passed while it was busy

	in  []byte // an incomplete answer
	out []byte // the rest of a request that the socket did not accept at once
}

// DialLight opens n connections to host:port, whose sources do not wait.
func DialLight(ctx context.Context, address string, n int) (Generator, error) {
	if n < 1 {
		return nil, errNoConnections
	}
	l := &Light{size: n}
	threads := min(runtime.GOMAXPROCS(0), n)
	for i := range threads {
		epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			l.Close()
			return nil, explained(err, 0)
		}
		l.threads = append(l.threads, &thread{number: i, of: threads, total: n, epoll: epoll, address: address})
	}
	for i := range n {
		t, c := l.threads[i%threads], &lightConn{fd: -1, number: i}
		t.conns = append(t.conns, c)
		if err := t.connect(ctx, c); err != nil {
			l.Close()
			return nil, explained(err, i)
		}
	}
	return l, nil
}

// connect opens a connection, or opens it again.
func (t *thread) connect(ctx context.Context, c *lightConn) error {
	c.close()
	s, err := dial(ctx, t.address, c.number)
	if err != nil {
		return err
	}
	defer s.Close() // the thread has its own descriptor, which Go's poller does not know
	raw, err := s.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	control := raw.Control(func(fd uintptr) {
		if c.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			err = unix.EpollCtl(t.epoll, unix.EPOLL_CTL_ADD, c.fd, t.interest(c, unix.EPOLLIN))
		}
	})
	return errors.Join(err, control)
}

// bindLate lets the kernel choose a connection's port when it knows the destination: an address has more ports then.
func bindLate(_, _ string, s syscall.RawConn) error {
	return s.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1) })
}

// interest returns the events to watch a connection for; they name it by its index among the thread's.
func (t *thread) interest(c *lightConn, events uint32) *unix.EpollEvent {
	return &unix.EpollEvent{Events: events, Fd: int32(c.number / t.of)}
}

func (c *lightConn) close() {
	if c.fd >= 0 {
		_ = unix.Close(c.fd)
	}
	c.fd, c.busy, c.in, c.out = -1, false, nil, nil
}

// Run implements Generator.
func (l *Light) Run(ctx context.Context, load Load) (Result, error) { return conduct(ctx, load, l) }

// Size returns the number of connections.
func (l *Light) Size() int { return l.size }

// Close closes every connection.
func (l *Light) Close() {
	for _, t := range l.threads {
		for _, c := range t.conns {
			c.close()
		}
		_ = unix.Close(t.epoll)
	}
	l.threads = nil
}

func (l *Light) parts() int { return len(l.threads) }

func (l *Light) answers() (n int64) {
	for _, t := range l.threads {
		n += t.answered.Load()
	}
	return n
}

// interrupt does nothing: threads check every few ms.
func (l *Light) interrupt() {}
