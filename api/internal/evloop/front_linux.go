package evloop

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lubdub-io/lubdub/api/internal/conn"
)

// Config configures a Front. All fields except Pace and ShareFrom are required.
type Config struct {
	Loops   int                 // how many; a connection stays on one loop
	Handler func(*Loop) Handler // creates the handler of each loop

	// Serve serves a connection that is handed over until it has read io.EOF, and closes it. It runs on a goroutine for that
	// connection. It must report the time between two requests with conn.Idle: then the connection goes back to its loop.
	Serve func(net.Conn)

	Watch *conn.Watch
	Bound conn.Bound

	Pace time.Duration // minimum time between two turns of a busy loop, so that each serves many; 0: none

	ShareFrom int // from this many answers in a batch, two goroutines write them; 0: the loop writes all

	// As in the Watch.
	ReadTimeout, WriteTimeout, IdleTimeout time.Duration

	MaxRequest int // bytes of an incomplete request that a loop keeps; a larger request is handed over

	Panicked func(p any, stack []byte) // called when a handler panics; the connection is closed
}

// LoopsFor returns how many loops suit a host. One loop serves more requests than the rest of the server can process on six cores, and
// what one loop sends in one batch, two loops send in two.
func LoopsFor(cores int) int { return max(1, cores/8) }

// Front serves a listener's connections on loops. As a net.Listener it never returns a connection: Accept returns an error when it is
// closed and all connections have ended.
type Front struct {
	cfg    Config
	ln     *net.TCPListener
	gate   *conn.Listener
	loops  []*Loop
	table  table
	accept acceptor

	leaving    atomic.Int64 // connections that were cut and are not closed yet
	stopping   atomic.Bool
	ends       sync.WaitGroup
	failed     chan error    // receives the error that ended accepting
	done       chan struct{} // closed when the loops have ended
	giveUpOnce sync.Once
	up         chan struct{} // closed by GiveUp
}

// Listen serves the connections of a listener on loops until it is closed. It fails if the descriptors it needs cannot be opened.
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
	f.gate = cfg.Watch.Listen(f, cfg.Bound) // may close it immediately
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

// discard closes everything that open has opened.
func (f *Front) discard() {
	f.accept.close()
	for _, l := range f.loops {
		l.discard()
	}
}

// ownDescriptor returns a non-blocking duplicate of the listener's descriptor, which the caller must close. os.File.Fd would make the
// listener's own descriptor blocking.
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

// Gate returns the listener that enforces the connection limit.
func (f *Front) Gate() net.Listener { return f.gate }

// Accept waits until all connections have ended or accepting has failed.
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

// GiveUp makes Accept return without waiting for connections. Those that are left end as usual.
func (f *Front) GiveUp() { f.giveUpOnce.Do(func() { close(f.up) }) }

// Addr returns the listener's address.
func (f *Front) Addr() net.Addr { return f.ln.Addr() }

// Close stops accepting, ends idle connections, and ends the others with their next answer. It does not wait.
func (f *Front) Close() error {
	if f.stopping.Swap(true) {
		return nil
	}
	deaf(f.ln) // the loop has a duplicate of the descriptor, which it closes later
	err := f.ln.Close()
	f.loops[0].mail.put(stop{})
	return err
}

// deaf stops a listening socket from accepting connections, through all its descriptors.
func deaf(ln *net.TCPListener) {
	if raw, err := ln.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RD) })
	}
}

// Open returns the number of connections, including those on loan, and how many of them were cut and are not closed yet.
func (f *Front) Open() (open, leaving int) {
	for _, l := range f.loops {
		open += int(l.open.Load())
	}
	return open, int(f.leaving.Load())
}

// Each calls yield for each connection of the loops.
func (f *Front) Each(yield func(conn.Candidate)) { f.table.each(func(c *Conn) { yield(c) }) }

// StopReading cuts the connections that wait for bytes.
func (f *Front) StopReading() {
	f.onAll(func(l *Loop) {
		f.table.each(func(c *Conn) {
			if c.loop == l && c.loan.Load() == nil && !c.has(flagUnderWay|flagClosed) {
				l.cut(c, conn.Stopping)
			}
		})
	})
}

// Waiting returns the clients of the loops' connections that wait for bytes.
func (f *Front) Waiting() (clients []net.Addr) {
	f.onAll(func(l *Loop) {
		f.table.each(func(c *Conn) {
			if c.loop == l && c.loan.Load() == nil && !c.has(flagUnderWay|flagClosed|flagCut) {
				clients = append(clients, remote(c.fd))
			}
		})
	})
	return clients
}

// onAll runs do on each loop, one after the other, and waits until all have run it.
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

// State returns what the connection is doing. While it is on loan, the watch knows.
func (c *Conn) State() conn.State {
	switch flags := c.flags.Load(); {
	case c.loan.Load() != nil || flags&(flagCut|flagClosed) != 0:
	case flags&flagUnderWay == 0:
		return conn.Waiting
	case flags&flagStalled != 0:
		return conn.Writing
	}
	return conn.Busy
}

// Member returns the member that the connection belongs to; nil if it has shown no valid token.
func (c *Conn) Member() *conn.Member { return c.member.Load() }

// Since returns when the connection was last answered, or accepted, in ns since the epoch.
func (c *Conn) Since() int64 { return c.since.Load() }

// Came returns when the connection was accepted, to the millisecond. The result is wrong after about 50 days: it is too recent.
func (c *Conn) Came() int64 {
	now := time.Now().UnixMilli()
	return (now - int64(uint32(now)-c.came)) * int64(time.Millisecond)
}

// Cut closes the connection with a reason, and reports whether that takes effect. It may be called from any goroutine.
func (c *Conn) Cut(why *conn.Cut) bool { return c.loan.Load() == nil && c.leave(why) }

// leave closes the connection, at the latest after the answer to the request under way. It returns false if it was called before. A
// connection on loan is closed by its borrower.
func (c *Conn) leave(why *conn.Cut) bool {
	if c.flags.Or(flagCut)&flagCut != 0 {
		return false
	}
	c.loop.front.leaving.Add(1)
	c.loop.mail.put(errand(func(l *Loop) { l.cut(c, why) }))
	return true
}

// left stops counting the connection as closing.
func (c *Conn) left() {
	if c.flags.And(^uint32(flagCut))&flagCut != 0 {
		c.loop.front.leaving.Add(-1)
	}
}

// cut closes a connection. A complete request is answered first; an incomplete one is answered with why.
func (l *Loop) cut(c *Conn, why *conn.Cut) {
	defer l.contain(c)
	l.readOn(c)
	switch h := c.loan.Load(); {
	case c.has(flagClosed):
		c.left() // another loop, or its borrower, closed it at the same time
	case h != nil:
		h.served.Cut(why)
	case c.out != nil:
		l.close(c)
	case c.has(flagUnderWay): // answered closes it
		l.queue(c) // the next turn follows immediately, and sends what was read just now
	case c.in != nil:
		c.left() // Adopt counts it
		l.handOff(c, nil, why)
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
