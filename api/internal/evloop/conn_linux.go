package evloop

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/lubdub-io/lubdub/api/internal/conn"
	"github.com/lubdub-io/lubdub/internal/shares"
)

// Conn is a connection of a loop. Only its loop uses its fields, except the atomic ones; while the connection is on loan only the borrower
// does, except for queued.
type Conn struct {
	loop  *Loop
	slot  *slot
	fd    int32
	gen   uint32 // distinguishes it from earlier connections with the same descriptor
	flags atomic.Uint32
	came  uint32               // when it was accepted, ms since the epoch, lower 32 bits
	since atomic.Int64         // when it was accepted or last answered, ns since the epoch
	loan  atomic.Pointer[loan] // set while it is on loan; nil: the loop serves it
	in    *buffer              // unread bytes, of a request or after the one under way; nil: none
	out   *outgoing            // the part of an answer that could not be written yet; nil: none
	begun int64                // when the incomplete request began, ns since the epoch; 0: none

	member atomic.Pointer[conn.Member] // nil: the client has shown no valid token

	needs int32 // the handler reads again when this many bytes are unread

	readable bool // the socket may have unread bytes
	ended    bool // the client has shut its side, or has gone
	queued   bool // it is on the loop's ready list
	drains   bool // epoll reports when the descriptor is writable
}

// Flags of a Conn.
const (
	flagUnderWay = 1 << iota // a request is under way
	flagStalled              // its answer could not be written completely yet
	flagServed               // it has been answered at least once
	flagCut                  // it must be closed
	flagClosed               // it is closed
	flagBatched              // its answer is in a batch
	flagLost                 // it is to be closed when the batch has been written
)

func (c *Conn) has(flag uint32) bool { return c.flags.Load()&flag != 0 }
func (c *Conn) set(flag uint32)      { c.flags.Or(flag) }
func (c *Conn) unset(flag uint32)    { c.flags.And(^flag) }

// Stranger reports whether the connection has shown no valid token yet.
func (c *Conn) Stranger() bool { return c.member.Load() == nil }

// Known records that the connection has shown a valid token of this holder. Later calls change nothing.
func (c *Conn) Known(h shares.Holder) *conn.Member {
	if c.Stranger() {
		c.member.Store(c.loop.front.cfg.Watch.Enter(h))
	}
	return c.member.Load()
}

// Answer ends the request under way with b. It writes what the socket accepts and copies the rest. With close the connection ends
// after the answer. Unread bytes after the request are read in the next turn. On a closed connection it does nothing.
func (c *Conn) Answer(b []byte, close bool) { c.AnswerThen(b, close, nil) }

// AnswerThen does as Answer, and calls the given function when all of b has been written to the socket, but not if that fails.
func (c *Conn) AnswerThen(b []byte, close bool, onSent func()) {
	if c.flags.Load()&(flagUnderWay|flagClosed|flagBatched) != flagUnderWay || c.out != nil {
		return
	}
	if c.loop.batch != nil && len(b) <= mostBatched {
		c.loop.bind(c, b, close, onSent)
		return
	}
	n, err := write(c.fd, b)
	c.wrote(b, n, err, close, onSent)
}

// wrote records that n bytes of an answer have been written, and continues from there.
func (c *Conn) wrote(b []byte, n int, err unix.Errno, close bool, onSent func()) {
	switch {
	case n == len(b):
		if onSent != nil {
			onSent()
		}
		c.loop.answered(c, close)
	case err != 0 && err != unix.EAGAIN, c.has(flagCut): // a connection that must close does not wait for its client to read
		c.loop.close(c)
	default:
		c.out = keepOut(b[n:], close, onSent)
		c.set(flagStalled)
		c.slot.due.Store(c.loop.now + int64(c.loop.front.cfg.WriteTimeout))
		if !c.watchWritable() {
			c.loop.close(c)
		}
	}
}

// watchWritable makes epoll report when the descriptor is writable again.
func (c *Conn) watchWritable() bool {
	if c.drains {
		return true
	}
	c.drains = true
	return watch(c.loop.epoll, unix.EPOLL_CTL_MOD, c.fd, c.gen, interest|unix.EPOLLOUT) == nil
}

// writeMore continues to write an answer.
func (l *Loop) writeMore(c *Conn) {
	o := c.out
	n, err := write(c.fd, o.rest())
	if err != 0 && err != unix.EAGAIN {
		l.close(c)
		return
	}
	o.at += n
	if len(o.rest()) > 0 {
		return
	}
	c.out = nil
	c.unset(flagStalled)
	o.free()
	if o.onSent != nil {
		o.onSent()
	}
	l.answered(c, o.close)
}

// answered continues with a connection whose request has been answered. If the loop is ending and the answer did not announce that, a
// request that the client may have sent since is served before the connection ends.
func (l *Loop) answered(c *Conn, close bool) {
	if close || c.has(flagCut) {
		l.close(c)
		return
	}
	c.set(flagServed)
	c.unset(flagUnderWay)
	l.underWay--
	c.since.Store(l.now)
	c.begun = 0
	due := l.now + int64(l.front.cfg.IdleTimeout)
	if c.in != nil {
		c.begun = l.now
		due = l.now + int64(l.front.cfg.ReadTimeout)
	}
	c.slot.due.Store(due)
	if c.in != nil || c.readable || l.stopping {
		l.queue(c)
	}
}

// queue schedules the connection for the next turn, which follows immediately.
func (l *Loop) queue(c *Conn) {
	if !c.queued {
		c.queued = true
		l.ready = append(l.ready, c)
	}
}

// close ends a connection that the loop serves.
func (l *Loop) close(c *Conn) {
	if c.has(flagClosed) || c.loan.Load() != nil {
		return
	}
	if c.has(flagBatched) { // its descriptor may be in use by a write
		c.set(flagLost)
		return
	}
	l.drop(c)
	if c.out != nil {
		c.out.free()
		c.out = nil
	}
	l.forget(c)
}

// forget closes the descriptor of a connection. Its loop or its borrower must call it.
func (l *Loop) forget(c *Conn) {
	c.left()
	if c.has(flagUnderWay) {
		l.underWay--
	}
	c.set(flagClosed)
	c.loop.front.cfg.Watch.Leave(c.member.Swap(nil))
	c.slot.due.Store(0)
	c.slot.conn.Store(nil) // before the system reuses the descriptor
	_ = unix.Close(int(c.fd))
	if l.open.Add(-1) == 0 && l.front.stopping.Load() {
		l.mail.put(wake{})
	}
}

// outgoing is the unwritten rest of an answer.
type outgoing struct {
	b      *buffer
	at     int
	close  bool
	onSent func()
}

func keepOut(b []byte, close bool, onSent func()) *outgoing {
	o := &outgoing{b: newBuffer(len(b)), close: close, onSent: onSent}
	o.b.b = append(o.b.b, b...)
	return o
}

func (o *outgoing) rest() []byte { return o.b.b[o.at:] }
func (o *outgoing) free()        { o.b.free() }
