package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Light is a generator in which few threads serve all connections, each from an epoll of its own: a connection takes a
// few hundred bytes, a request two system calls, and its time is kept to some µs. Its sources must not wait.
type Light struct {
	threads []*thread
	size    int
}

// thread is the connections of one.
type thread struct {
	number, of int // of all threads
	total      int // connections of all threads
	epoll      int
	conns      []*lightConn // each of-th one
	address    unix.Sockaddr
	source     func(i int) unix.Sockaddr // that connection i leaves from; nil: the system's choice

	beats, answers atomic.Int64 // of the run under way, for the progress line
}

// lightConn is one connection with at most one request under way.
type lightConn struct {
	fd     int // -1: closed
	number int // among all
	busy   bool
	over   bool // its source is at its end
	source Source

	intended, free, sent time.Duration
	owed                 []time.Duration // intended times that came while it was busy

	in  []byte // an answer that has come in part
	out []byte // of a request that the socket did not take at once
}

// DialLight opens n connections to host:port, whose sources do not wait.
func DialLight(ctx context.Context, address string, n int) (Generator, error) {
	if n < 1 {
		return nil, fmt.Errorf("%d connections are none", n)
	}
	to, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	source := func(i int) unix.Sockaddr {
		if ip := sourceOf(i); ip != nil && to.IP.Equal(net.IPv4(127, 0, 0, 1)) {
			return sockaddr(&net.TCPAddr{IP: ip})
		}
		return nil
	}
	l := &Light{size: n}
	threads := min(runtime.GOMAXPROCS(0), n)
	for i := range threads {
		epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			l.Close()
			return nil, explained(err, 0)
		}
		l.threads = append(l.threads, &thread{number: i, of: threads, total: n, epoll: epoll, address: sockaddr(to), source: source})
	}
	for i := range n {
		t := l.threads[i%threads]
		c := &lightConn{fd: -1, number: i}
		t.conns = append(t.conns, c)
		err := ctx.Err()
		if err == nil {
			err = t.connect(c)
		}
		if err != nil {
			l.Close()
			return nil, explained(err, i)
		}
	}
	return l, nil
}

func sockaddr(a *net.TCPAddr) unix.Sockaddr {
	if ip := a.IP.To4(); ip != nil {
		return &unix.SockaddrInet4{Port: a.Port, Addr: [4]byte(ip)}
	}
	return &unix.SockaddrInet6{Port: a.Port, Addr: [16]byte(a.IP.To16())}
}

// connect opens a connection, or opens it anew.
func (t *thread) connect(c *lightConn) (err error) {
	c.close()
	family := unix.AF_INET
	if _, six := t.address.(*unix.SockaddrInet6); six {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	if from := t.source(c.number); from != nil {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
		if err := unix.Bind(fd, from); err != nil {
			return fmt.Errorf("bind: %w", err)
		}
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if err := unix.Connect(fd, t.address); err != nil && !errors.Is(err, unix.EINPROGRESS) && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("connect: %w", err)
	}
	if err := connected(fd); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if err := unix.EpollCtl(t.epoll, unix.EPOLL_CTL_ADD, fd, t.interest(c, unix.EPOLLIN)); err != nil {
		return err
	}
	c.fd = fd
	return nil
}

// connected waits until a socket is.
func connected(fd int) error {
	for limit := time.Now().Add(dialTimeout); ; {
		left := time.Until(limit)
		if left <= 0 {
			return unix.ETIMEDOUT
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, int(left.Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if n < 1 {
			continue
		}
		failed, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && failed != 0 {
			err = unix.Errno(failed)
		}
		return err
	}
}

// interest is what to hear of a connection; events name it by its place among the thread's.
func (t *thread) interest(c *lightConn, events uint32) *unix.EpollEvent {
	return &unix.EpollEvent{Events: events, Fd: int32(c.number / t.of)}
}

func (c *lightConn) close() {
	if c.fd >= 0 {
		_ = unix.Close(c.fd)
	}
	c.fd, c.busy, c.in, c.out = -1, false, nil, nil
}

// Run does as every generator's does.
func (l *Light) Run(ctx context.Context, load Load) (Result, error) { return conduct(ctx, load, l) }

// Size is the number of connections.
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

func (l *Light) counts() (beats, answers int64) {
	for _, t := range l.threads {
		beats += t.beats.Load()
		answers += t.answers.Load()
	}
	return beats, answers
}

// interrupt has nothing to do: threads look up every few ms.
func (l *Light) interrupt() {}
