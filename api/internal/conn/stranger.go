package conn

import (
	"net"
	"time"

	"github.com/lubdub-io/lubdub/internal/shares"
)

// A stranger is a connection that has shown no valid token yet. Its place may be given to another one.

// Known marks a connection as one that has shown a valid token, of this holder. What it shows later changes nothing. Connections of
// other listeners are left alone.
func Known(c net.Conn, h shares.Holder) {
	if c, ok := c.(*Conn); ok && c.member.Load() == nil {
		if l, ok := c.Conn.(lent); ok && c.lent {
			c.member.Store(l.Known(h))
			return
		}
		c.member.Store(c.watch.Enter(h))
	}
}

// Holder returns the tenant and token that a connection belongs to; false: it belongs to none.
func Holder(c net.Conn) (shares.Holder, bool) {
	if c, ok := c.(*Conn); ok {
		if m := c.member.Load(); m != nil && m != surplus {
			return shares.Holder{Tenant: m.tenant.name, Token: m.name}, true
		}
	}
	return shares.Holder{}, false
}

// Cut is what a connection reads that was cut: why it was.
type Cut struct{ why string }

func (c *Cut) Error() string { return c.why }

var (
	// MadeRoom is why a stranger was cut: another one needed its place.
	MadeRoom = &Cut{"another connection needed its place"}
	// OverShare is why a connection was cut that has shown a valid token.
	OverShare = &Cut{"its token, or tenant, had more connections than others that needed its place"}
	// Stopping is why a connection was cut whose request had not arrived whole when the server stopped.
	Stopping = &Cut{"the server is stopping"}
)

// State is what a connection does.
type State int

// States of a connection.
const (
	Busy      State = iota // a request is under way, or it was cut
	Waiting                // it waits for bytes
	Writing                // it writes an answer
	Streaming              // it waits for something to write, in an answer that goes on
)

// State returns what the connection does.
func (c *Conn) State() State {
	switch {
	case c.why.Load() != nil:
	case c.reading.Load():
		return Waiting
	case c.writing.Load():
		return Writing
	case c.streams.Load():
		return Streaming
	}
	return Busy
}

// Member returns to whom the connection belongs; nil: to a stranger.
func (c *Conn) Member() *Member { return c.member.Load() }

// Since returns when the connection last had an answer, or came: each answer moves the deadline of writing.
func (c *Conn) Since() int64 {
	return max(c.since, c.write.at.Load()-int64(c.watch.writeTimeout))
}

// Came returns when the connection came.
func (c *Conn) Came() int64 { return c.came }

// Cut ends a connection that waits for bytes, or for its client to take an answer: what it reads from now on is why. It reports
// whether the connection had not been cut before.
func (c *Conn) Cut(why *Cut) bool {
	w := c.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut(c, why)
}

// cut does what Conn.Cut does, for a caller that holds w.mu.
func (w *Watch) cut(c *Conn, why *Cut) bool {
	if _, there := w.conns[c]; !there || !c.why.CompareAndSwap(nil, why) {
		return false
	}
	first := true
	if l, ok := c.Conn.(lent); ok && c.lent {
		first = l.Cut(why)
	} else {
		w.leaving++
	}
	c.read.end(c.Conn.SetReadDeadline)
	if c.writing.Load() {
		c.write.end(c.Conn.SetWriteDeadline)
	}
	if c.hungUp != nil && c.streams.Load() {
		c.hungUp()
	}
	return first
}

// arrivalGrace is how long a stopping server waits for requests that are still on their way.
const arrivalGrace = time.Second

// StopReading cuts, from arrivalGrace on and until done, whoever waits for bytes: an incomplete request needs no answer.
func (w *Watch) StopReading(done <-chan struct{}) {
	for wait := arrivalGrace; ; wait = 100 * time.Millisecond {
		select {
		case <-done:
			return
		case <-time.After(wait):
		}
		w.mu.Lock()
		for c := range w.conns {
			if c.reading.Load() {
				w.cut(c, Stopping)
			}
		}
		others := w.others
		w.mu.Unlock()
		for _, o := range others {
			o.StopReading()
		}
	}
}
