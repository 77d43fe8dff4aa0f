package evloop

import (
	"runtime/debug"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	readSize     = 16 << 10 // the most that one read returns, and that a loop buffers of what a client sends ahead
	roundsAtOnce = 16       // reads and requests of a connection in a turn, before other connections are served
	eventsAtOnce = 512
)

// Loop serves connections on one goroutine.
type Loop struct {
	front   *Front
	handler Handler
	epoll   int
	mail    *mailbox
	over    chan struct{} // closed when the loop has ended
	open    atomic.Int64  // connections, including those on loan

	now      int64 // when this turn began, ns since the epoch
	events   []unix.EpollEvent
	buf      []byte // the buffer for reads
	ready    []*Conn
	spare    []*Conn
	old      []any // mail that has been processed
	stopping bool
	underWay int         // requests
	batch    *batch      // the answers being collected; nil: each answer is sent immediately
	batches  []*batch    // free batches
	helper   chan *batch // to the helper goroutine
	pace     pacer
	scan     scan
}

// The kinds of mail other than what Post sends.
type (
	stop   struct{}    // begin to end
	wake   struct{}    // check whether to end
	errand func(*Loop) // run this
)

func newLoop(f *Front) (*Loop, error) {
	l := &Loop{
		front: f, over: make(chan struct{}), events: make([]unix.EpollEvent, eventsAtOnce), buf: make([]byte, readSize), epoll: -1,
		now: time.Now().UnixNano(), helper: make(chan *batch, 1),
	}
	l.pace.least = int64(f.cfg.Pace)
	l.scan.init(l.now, f.cfg.ReadTimeout, f.cfg.WriteTimeout, f.cfg.IdleTimeout)
	var err error
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	if l.mail, err = newMailbox(); err != nil {
		l.discard()
		return nil, err
	}
	if err := watch(l.epoll, unix.EPOLL_CTL_ADD, int32(l.mail.fd), 0, unix.EPOLLIN|unix.EPOLLET); err != nil {
		l.discard()
		return nil, err
	}
	l.handler = f.cfg.Handler(l)
	return l, nil
}

// discard closes the loop's descriptors.
func (l *Loop) discard() {
	if l.mail != nil {
		l.mail.close()
	}
	_ = unix.Close(l.epoll)
}

// Post passes done to the handler's Receive on the loop. It may be called from any goroutine; one wake-up serves many calls.
func (l *Loop) Post(done any) { l.mail.put(done) }

// Now returns when this turn began.
func (l *Loop) Now() time.Time { return time.Unix(0, l.now) }

// Stopping reports whether connections end with their next answer, which should announce it. Only the handler may call it.
func (l *Loop) Stopping() bool { return l.stopping }

func (l *Loop) run() {
	defer close(l.over)
	defer l.discard()
	defer close(l.helper)
	for !l.stopping || l.open.Load() > 0 || l.front.accept.open(l) {
		n := l.wait()
		l.now = time.Now().UnixNano()
		l.turn(l.events[:n])
	}
}

// turn serves what is ready.
func (l *Loop) turn(events []unix.EpollEvent) {
	l.pace.begin(l.now)
	for i := range events {
		l.event(&events[i])
	}
	l.serveQueued()
	l.endTurn()
	l.takeMail()
	l.scan.step(l)
	l.front.accept.again(l)
}

func (l *Loop) event(e *unix.EpollEvent) {
	switch fd := e.Fd; {
	case fd == int32(l.mail.fd):
	case l.front.accept.is(l, fd):
		l.front.accept.take(l)
	default:
		s := l.front.table.at(fd)
		if s == nil {
			return
		}
		if c := s.conn.Load(); c != nil && c.gen == uint32(e.Pad) {
			l.connEvent(c, e.Events)
		}
	}
}

func (l *Loop) connEvent(c *Conn, events uint32) {
	defer l.contain(c)
	if h := c.loan.Load(); h != nil && h.notify(events) {
		return
	}
	if events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.ended = true
	}
	if events&(unix.EPOLLHUP|unix.EPOLLERR) != 0 && c.has(flagUnderWay) { // the client that would receive the answer has gone
		l.close(c)
		return
	}
	c.readable = true
	switch {
	case c.out != nil:
		l.writeMore(c)
	case !c.queued:
		l.read(c)
	}
}

// read reads what has arrived and passes it to the handler.
func (l *Loop) read(c *Conn) {
	for range roundsAtOnce {
		if !c.readable || c.has(flagUnderWay|flagClosed) {
			return
		}
		into := l.buf
		if c.in != nil {
			into = c.in.b[len(c.in.b):cap(c.in.b)]
		}
		n, err := read(c.fd, into)
		switch {
		case err == unix.EAGAIN:
			c.readable = false
			return
		case err != 0:
			l.close(c)
			return
		case n == 0:
			l.noMore(c)
			return
		}
		if n < len(into) && !c.ended {
			c.readable = false
		}
		unread := into[:n]
		if c.in != nil {
			c.in.b = c.in.b[:len(c.in.b)+n]
			if unread = c.in.b; len(unread) < int(c.needs) {
				continue
			}
		}
		if !l.dispatch(c, unread) {
			return
		}
	}
	if c.readable {
		l.queue(c)
	}
}

// noMore continues with a connection whose client sends no more. A goroutine answers if it has sent part of a request.
func (l *Loop) noMore(c *Conn) {
	if c.in != nil {
		l.handOff(c, c.in.b, nil)
		return
	}
	l.close(c)
}

// dispatch passes the unread bytes b, which are in the loop's buffer or the connection's, to the handler. It returns false if the loop does
// not serve the connection any more, or must leave it alone for now.
func (l *Loop) dispatch(c *Conn, b []byte) bool {
	for len(b) > 0 {
		c.set(flagUnderWay) // so that the handler may answer immediately
		l.underWay++
		n, next := l.handler.Read(c, b)
		if c.has(flagClosed) {
			return false
		}
		if next == Begun {
			l.pace.handled++
			c.needs = 0
			b = b[n:]
			if c.has(flagUnderWay) {
				l.keep(c, b)
				c.begun = 0
				if c.out == nil { // otherwise the answer is being written and has a deadline
					c.slot.due.Store(0)
				}
				return false
			}
			continue
		}
		c.unset(flagUnderWay)
		l.underWay--
		if next == More && l.await(c, b, n) {
			return true
		}
		l.handOff(c, b, nil)
		return false
	}
	l.keep(c, nil)
	c.slot.due.Store(l.now + int64(l.front.cfg.IdleTimeout))
	return true
}

// keep stores the bytes that look has not consumed.
func (l *Loop) keep(c *Conn, b []byte) {
	switch {
	case len(b) == 0:
		l.drop(c)
	case c.in == nil:
		c.in = newBuffer(len(b))
		c.in.b = append(c.in.b, b...)
	default:
		c.in.b = c.in.b[:copy(c.in.b[:cap(c.in.b)], b)]
	}
}

// drop frees the memory of unread bytes.
func (l *Loop) drop(c *Conn) {
	if c.in != nil {
		c.in.free()
		c.in = nil
		c.needs = 0
	}
}

// await stores the beginning of a request, b, until n bytes of it are there, and reports whether there is room for them.
func (l *Loop) await(c *Conn, b []byte, n int) bool {
	want := max(n, len(b)+1)
	if want > l.front.cfg.MaxRequest {
		return false
	}
	l.keep(c, b)
	if cap(c.in.b) < want {
		grown := newBuffer(want)
		grown.b = append(grown.b, c.in.b...)
		l.drop(c)
		c.in = grown
	}
	c.needs = int32(n)
	if c.begun == 0 {
		c.begun = l.now
	}
	c.slot.due.Store(c.begun + int64(l.front.cfg.ReadTimeout))
	return true
}

// serveQueued serves the connections that were queued in the turn before.
func (l *Loop) serveQueued() {
	l.ready, l.spare = l.spare[:0], l.ready
	for i, c := range l.spare {
		c.queued = false
		l.spare[i] = nil
		l.readAgain(c)
	}
}

func (l *Loop) readAgain(c *Conn) {
	defer l.contain(c)
	l.goOn(c)
	if l.stopping {
		l.endIdle(c)
	}
}

// goOn serves the unread bytes of a connection that is not on loan, then reads.
func (l *Loop) goOn(c *Conn) {
	if c.loan.Load() != nil || c.has(flagUnderWay|flagClosed) {
		return
	}
	if c.in == nil || int(c.needs) > len(c.in.b) || l.dispatch(c, c.in.b) {
		l.read(c)
	}
}

// readOn is goOn for a connection without a read event: bytes may have arrived in this turn.
func (l *Loop) readOn(c *Conn) {
	if c.loan.Load() == nil {
		c.readable = true
		l.goOn(c)
	}
}

// endTurn lets the handler send what it has collected.
func (l *Loop) endTurn() {
	defer l.contain(nil)
	l.handler.Turn()
}

// takeMail processes the mailbox.
func (l *Loop) takeMail() {
	l.old = l.mail.take(l.old)
	for _, m := range l.old {
		l.see(m)
	}
}

func (l *Loop) see(m any) {
	defer l.contain(nil)
	switch m := m.(type) {
	case stop:
		l.stop()
	case wake:
	case errand:
		m(l)
	case *batch:
		l.settle(m)
	default:
		l.receive(m)
	}
}

// stop begins the loop's end.
func (l *Loop) stop() {
	l.stopping = true
	l.front.accept.end(l)
	for _, other := range l.front.loops {
		if other != l && l == l.front.loops[0] {
			other.mail.put(stop{})
		}
	}
	l.front.table.each(func(c *Conn) {
		if c.loop == l {
			l.endIdle(c)
		}
	})
}

// endIdle closes a connection that has been answered at least once and has sent nothing since.
func (l *Loop) endIdle(c *Conn) {
	defer l.contain(c)
	if c.loan.Load() != nil || !c.has(flagServed) || c.has(flagUnderWay|flagClosed) {
		return
	}
	l.closeUnheard(c)
}

// closeUnheard closes a connection that waits for bytes, unless unread bytes have arrived.
func (l *Loop) closeUnheard(c *Conn) {
	l.readOn(c)
	switch {
	case c.loan.Load() != nil || c.has(flagClosed):
	case c.has(flagUnderWay):
		l.queue(c) // the turn may be over; the next one, which follows immediately, sends what this began
	case c.in == nil:
		l.close(c)
	}
}

// contain closes the connection whose handling has panicked; the loop continues. It must be deferred directly.
func (l *Loop) contain(c *Conn) {
	if p := recover(); p != nil {
		l.front.cfg.Panicked(p, debug.Stack())
		if c != nil {
			l.close(c)
		}
	}
}
