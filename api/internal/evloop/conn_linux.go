package evloop

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/lubdub-io/lubdub/api/internal/conn"
	"github.com/lubdub-io/lubdub/internal/shares"
)

// Conn is a connection of a loop. Its fields are its loop's, but for those that are atomic; while the connection is lent they are
// its borrower's, but for queued.
type Conn struct {
	loop  *Loop
	slot  *slot
	fd    int32
	gen   uint32 // tells it from others that had its descriptor
	flags atomic.Uint32
	came  uint32               // ms since the epoch, of which the lower 32 bits are kept
	since atomic.Int64         // when it came or last had an answer, ns since the epoch
	lent  atomic.Pointer[loan] // whom it is lent to; nil: it is the loop's
	in    *buffer              // what is unread of a request, or behind the one that is under way; nil: nothing
	out   *outgoing            // what of an answer could not be written yet; nil: nothing
	begun int64                // when the request began that has not arrived whole, ns since the epoch; 0: there is none

	member atomic.Pointer[conn.Member] // nil: it has shown no valid token

	needs int32 // so many bytes must be unread before the handler looks again

	readable bool // there may be bytes that nobody has read
	ended    bool // the client has said that no more bytes come, or is gone
	queued   bool // it is on the loop's ready list
	drains   bool // the descriptor tells when it can be written
}

// Flags of a Conn.
const (
	flagUnderWay = 1 << iota // a request is under way
	flagStalled              // its answer could not be written at once, and is not yet
	flagServed               // it has had an answer
	flagCut                  // it must go
	flagGone                 // it is closed
	flagBatched              // its answer is in a batch
	flagLost                 // it is to be closed when that has been written
)

func (c *Conn) has(flag uint32) bool { return c.flags.Load()&flag != 0 }
func (c *Conn) set(flag uint32)      { c.flags.Or(flag) }
func (c *Conn) unset(flag uint32)    { c.flags.And(^flag) }

// Stranger reports whether the connection has shown no valid token yet.
func (c *Conn) Stranger() bool { return c.member.Load() == nil }

// Known marks the connection as one that has shown a valid token, of this holder. What it shows later changes nothing.
func (c *Conn) Known(h shares.Holder) *conn.Member {
	if c.Stranger() {
		c.member.Store(c.loop.front.cfg.Watch.Enter(h))
	}
	return c.member.Load()
}

// Answer ends the request that is under way: b is written, as far as it goes at once, and copied where it does not. With close the
// connection ends then. What is unread behind the request is looked at in the next turn. On a connection that has gone it does
// nothing.
func (c *Conn) Answer(b []byte, close bool) { c.AnswerTold(b, close, nil) }

// AnswerTold is Answer, and calls told when all of b was handed to the connection; never, where that fails.
func (c *Conn) AnswerTold(b []byte, close bool, told func()) {
	if c.flags.Load()&(flagUnderWay|flagGone|flagBatched) != flagUnderWay || c.out != nil {
		return
	}
	if c.loop.batch != nil && len(b) <= mostBatched {
		c.loop.bind(c, b, close, told)
		return
	}
	n, err := write(c.fd, b)
	c.wrote(b, n, err, close, told)
}

// wrote goes on when n bytes of an answer have been written.
func (c *Conn) wrote(b []byte, n int, err unix.Errno, close bool, told func()) {
	switch {
	case n == len(b):
		if told != nil {
			told()
		}
		c.loop.answered(c, close)
	case err != 0 && err != unix.EAGAIN, c.has(flagCut): // a connection that must close does not wait for its client
		c.loop.close(c)
	default:
		c.out = keepOut(b[n:], close, told)
		c.set(flagStalled)
		c.slot.due.Store(c.loop.now + int64(c.loop.front.cfg.WriteTimeout))
		if !c.tellsWritable() {
			c.loop.close(c)
		}
	}
}

// tellsWritable has the descriptor tell from now on when it can be written again.
func (c *Conn) tellsWritable() bool {
	if c.drains {
		return true
	}
	c.drains = true
	return watch(c.loop.epoll, unix.EPOLL_CTL_MOD, c.fd, c.gen, interest|unix.EPOLLOUT) == nil
}

// writeMore goes on with an answer.
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
	if o.told != nil {
		o.told()
	}
	l.answered(c, o.close)
}

// answered goes on with a connection whose request has had its answer. Where the loop is ending and the answer did not say so, what
// the client may have sent since is looked at before the connection ends.
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

// queue has the connection looked at in the next turn, which follows at once.
func (l *Loop) queue(c *Conn) {
	if !c.queued {
		c.queued = true
		l.ready = append(l.ready, c)
	}
}

// close ends a connection that is the loop's.
func (l *Loop) close(c *Conn) {
	if c.has(flagGone) || c.lent.Load() != nil {
		return
	}
	if c.has(flagBatched) { // its descriptor may be written to just now
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

// forget closes the descriptor of a connection, whose loop or borrower it must be called by.
func (l *Loop) forget(c *Conn) {
	c.left()
	if c.has(flagUnderWay) {
		l.underWay--
	}
	c.set(flagGone)
	c.loop.front.cfg.Watch.Leave(c.member.Swap(nil))
	c.slot.due.Store(0)
	c.slot.conn.Store(nil) // before the descriptor is somebody else's
	_ = unix.Close(int(c.fd))
	if l.open.Add(-1) == 0 && l.front.stopping.Load() {
		l.mail.put(wake{})
	}
}

// outgoing is the rest of an answer.
type outgoing struct {
	b     *buffer
	at    int
	close bool
	told  func()
}

func keepOut(b []byte, close bool, told func()) *outgoing {
	o := &outgoing{b: newBuffer(len(b)), close: close, told: told}
	o.b.b = append(o.b.b, b...)
	return o
}

func (o *outgoing) rest() []byte { return o.b.b[o.at:] }
func (o *outgoing) free()        { o.b.free() }
