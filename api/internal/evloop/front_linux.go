package evloop

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lubdub-io/lubdub/api/internal/conn"
)

// Config of a Front. All fields but Pace and ShareFrom must be given.
type Config struct {
	Loops   int                 // how many; a connection stays with one
	Handler func(*Loop) Handler // makes each loop's own

	// Serve serves a connection that is handed over, until it has read io.EOF, and closes it. It is called on a goroutine of
	// the connection's. Between two requests it must say so, by conn.Idle: there the connection goes back to its loop.
	Serve func(net.Conn)

	Watch *conn.Watch
	Bound conn.Bound

	Pace time.Duration // least time between two turns of a busy loop, so that each serves many; 0: none

	ShareFrom int // so many answers that come together are written by two goroutines; 0: a loop writes them all

	// As the Watch has them.
	ReadTimeout, WriteTimeout, IdleTimeout time.Duration

	MaxRequest int // bytes of a request that a loop keeps while the rest comes; a larger one is handed over

	Panicked func(p any, stack []byte) // called where a handler panics, whose connection is closed
}

// LoopsFor returns how many loops suit a machine: one serves more than six cores can of what comes behind it, and what one
// loop brings together, two send in halves.
func LoopsFor(cores int) int { return max(1, cores/8) }

// Front is a listener's connections on their loops. As a net.Listener it brings nobody: Accept returns when it is closed, and all
// connections have ended.
type Front struct {
	cfg    Config
	ln     *net.TCPListener
	gate   *conn.Listener
	loops  []*Loop
	table  table
	accept acceptor

	leaving  atomic.Int64 // connections that were cut and are not closed yet
	stopping atomic.Bool
	ends     sync.WaitGroup
	failed   chan error    // why none can come any more
	done     chan struct{} // closed when the loops have ended
	given    sync.Once
	up       chan struct{} // closed by GiveUp
}

// Listen serves the connections of a listener on loops, until it is closed.
func Listen(ln *net.TCPListener, cfg Config) (*Front, error) {
	f := &Front{
		cfg: cfg, ln: ln, accept: acceptor{fd: -1, held: -1, accept: accept4},
		failed: make(chan error, 1), done: make(chan struct{}), up: make(chan struct{}),
	}
	if err := f.open(); err != nil {
		f.discard()
		return nil, err
	}
	f.cfg.Watch.Join(f)
	f.gate = cfg.Watch.Listen(f, cfg.Bound) // may close it at once
	for _, l := range f.loops {
		f.ends.Go(l.run)
		f.ends.Go(l.help)
	}
	go func() {
		f.ends.Wait()
		f.cfg.Watch.Part(f)
		close(f.done)
	}()
	return f, nil
}

func (f *Front) open() error {
	var err error
	if f.accept.fd, err = ownDescriptor(f.ln); err != nil {
		return err
	}
	for range max(f.cfg.Loops, 1) {
		l, err := newLoop(f)
		if err != nil {
			return err
		}
		f.loops = append(f.loops, l)
	}
	return f.accept.listen(f.loops[0])
}

// discard closes what open has opened.
func (f *Front) discard() {
	f.accept.close()
	for _, l := range f.loops {
		l.discard()
	}
}

// ownDescriptor returns a descriptor of the listener's that does not block and is the caller's. os.File.Fd would have the
// listener's own block.
func ownDescriptor(ln *net.TCPListener) (int, error) {
	raw, err := ln.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd := -1
	var dup error
	if err := raw.Control(func(own uintptr) { fd, dup = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return -1, err
	}
	return fd, dup
}

// Gate returns the listener's bound.
func (f *Front) Gate() net.Listener { return f.gate }

// Accept waits until all connections have ended, or none can come any more.
func (f *Front) Accept() (net.Conn, error) {
	select {
	case err := <-f.failed:
		return nil, err
	case <-f.done:
	case <-f.up:
	}
	select {
	case err := <-f.failed:
		return nil, err
	default:
		return nil, net.ErrClosed
	}
}

// GiveUp has Accept wait for nobody. Connections that are left end as they would.
func (f *Front) GiveUp() { f.given.Do(func() { close(f.up) }) }

// Addr returns the listener's address.
func (f *Front) Addr() net.Addr { return f.ln.Addr() }

// Close takes no more connections, ends those that are idle, and the others with their next answer. It does not wait.
func (f *Front) Close() error {
	if f.stopping.Swap(true) {
		return nil
	}
	deaf(f.ln) // its socket is the loop's too, which closes it later
	err := f.ln.Close()
	f.loops[0].mail.put(stop{})
	return err
}

// deaf has a listening socket take no more connections, whoever else has a descriptor of it.
func deaf(ln *net.TCPListener) {
	if raw, err := ln.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RD) })
	}
}

// Open returns how many connections there are, and how many of them were cut and are not closed yet. Those that are lent count too.
func (f *Front) Open() (open, leaving int) {
	for _, l := range f.loops {
		open += int(l.open.Load())
	}
	return open, int(f.leaving.Load())
}

// Each calls yield for each connection that is the loops'.
func (f *Front) Each(yield func(conn.Candidate)) { f.table.each(func(c *Conn) { yield(c) }) }

// StopReading cuts whoever waits for bytes.
func (f *Front) StopReading() {
	f.onAll(func(l *Loop) {
		f.table.each(func(c *Conn) {
			if c.loop == l && c.lent.Load() == nil && !c.has(flagUnderWay|flagGone) {
				l.cut(c, conn.Stopping)
			}
		})
	})
}

// Waiting returns the clients of those connections of the loops' whose bytes are waited for.
func (f *Front) Waiting() (clients []net.Addr) {
	f.onAll(func(l *Loop) {
		f.table.each(func(c *Conn) {
			if c.loop == l && c.lent.Load() == nil && !c.has(flagUnderWay|flagGone|flagCut) {
				clients = append(clients, remote(c.fd))
			}
		})
	})
	return clients
}

// onAll has each loop do something, one after the other, and waits until all have.
func (f *Front) onAll(do func(*Loop)) {
	for _, l := range f.loops {
		did := make(chan struct{})
		l.mail.put(errand(func(l *Loop) { do(l); close(did) }))
		select {
		case <-did:
		case <-l.over:
		}
	}
}

// State returns what the connection does. While it is lent, the watch knows.
func (c *Conn) State() conn.State {
	switch flags := c.flags.Load(); {
	case c.lent.Load() != nil || flags&(flagCut|flagGone) != 0:
	case flags&flagUnderWay == 0:
		return conn.Waiting
	case flags&flagStalled != 0:
		return conn.Writing
	}
	return conn.Busy
}

// Member returns to whom the connection belongs; nil: to a stranger.
func (c *Conn) Member() *conn.Member { return c.member.Load() }

// Since returns when the connection last had an answer, or came, in ns since the epoch.
func (c *Conn) Since() int64 { return c.since.Load() }

// Came returns when the connection came, to the ms; of one that came 50 days ago or more, less.
func (c *Conn) Came() int64 {
	now := time.Now().UnixMilli()
	return (now - int64(uint32(now)-c.came)) * int64(time.Millisecond)
}

// Cut ends the connection for a reason, and reports whether it takes effect. It may be called from any goroutine.
func (c *Conn) Cut(why *conn.Cut) bool { return c.lent.Load() == nil && c.leave(why) }

// leave closes the connection, at the latest after the answer to the request under way. It returns false if leave was called
// before. A connection that is lent is closed by its borrower.
func (c *Conn) leave(why *conn.Cut) bool {
	if c.flags.Or(flagCut)&flagCut != 0 {
		return false
	}
	c.loop.front.leaving.Add(1)
	c.loop.mail.put(errand(func(l *Loop) { l.cut(c, why) }))
	return true
}

// left counts the connection as closing no longer.
func (c *Conn) left() {
	if c.flags.And(^uint32(flagCut))&flagCut != 0 {
		c.loop.front.leaving.Add(-1)
	}
}

// cut closes a connection. A whole request is answered first; the answer to a part of one is why.
func (l *Loop) cut(c *Conn, why *conn.Cut) {
	defer l.contain(c)
	l.readOn(c)
	switch h := c.lent.Load(); {
	case c.has(flagGone):
		c.left() // another loop, or its borrower, closed it at the same time
	case h != nil:
		h.served.Cut(why)
	case c.out != nil:
		l.close(c)
	case c.has(flagUnderWay): // answered closes it
		l.queue(c) // the next turn, which sends what was read just now, follows at once
	case c.in != nil:
		c.left() // Adopt counts it
		l.handOver(c, nil, why)
	default:
		l.close(c)
	}
}

// remote returns the client's address.
func remote(fd int32) net.Addr { return address(unix.Getpeername(int(fd))) }

func local(fd int32) net.Addr { return address(unix.Getsockname(int(fd))) }

func address(sa unix.Sockaddr, err error) net.Addr {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return &net.TCPAddr{IP: sa.Addr[:], Port: sa.Port}
	case *unix.SockaddrInet6:
		a := &net.TCPAddr{IP: sa.Addr[:], Port: sa.Port}
		if sa.ZoneId != 0 {
			if i, err := net.InterfaceByIndex(int(sa.ZoneId)); err == nil {
				a.Zone = i.Name
			}
		}
		return a
	}
	return &net.TCPAddr{} // the client has gone
}
