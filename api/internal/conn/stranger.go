package conn

import (
	"net"
	"time"

	"github.com/lubdub-io/lubdub/internal/shares"
)

// A stranger is a connection that has shown no valid token yet. It may be closed to make room for another one.

// Known records that a connection has shown a valid token of this holder. Later calls change nothing. It does nothing to connections of
// other listeners.
func Known(c net.Conn, h shares.Holder) {
	if c, ok := c.(*Conn); ok && c.member.Load() == nil {
		if l, ok := c.Conn.(borrowed); ok && c.borrowed {
			c.member.Store(l.Known(h))
			return
		}
		c.member.Store(c.watch.Enter(h))
	}
}

// Holder returns the tenant and token that a connection belongs to; false: none.
func Holder(c net.Conn) (shares.Holder, bool) {
	if c, ok := c.(*Conn); ok {
		if m := c.member.Load(); m != nil && m != surplus {
			return shares.Holder{Tenant: m.tenant.name, Token: m.name}, true
		}
	}
	return shares.Holder{}, false
}

// Cut is the reason why a connection was cut, which its reads return as an error.
type Cut struct{ why string }

func (c *Cut) Error() string { return c.why }

var (
	// Displaced: a stranger was cut because another connection needed its place.
	Displaced = &Cut{"another connection needed its place"}
	// OverShare: a connection with a valid token was cut.
	OverShare = &Cut{"its token, or tenant, had more connections than others that needed its place"}
	// Stopping: the server stopped before the request had arrived completely.
	Stopping = &Cut{"the server is stopping"}
)

// State is what a connection is doing.
type State int

// States of a connection.
const (
	Busy      State = iota // a request is under way, or it was cut
	Waiting                // it waits for bytes
	Writing                // it writes an answer
	Streaming              // it waits for something to write, in an answer that continues
)

// State returns what the connection is doing.
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

// Member returns the member that the connection belongs to; nil: a stranger.
func (c *Conn) Member() *Member { return c.member.Load() }

// Since returns when the connection was last answered, or accepted: each answer moves the write deadline.
func (c *Conn) Since() int64 {
	return max(c.since, c.write.at.Load()-int64(c.watch.writeTimeout))
}

// Came returns when the connection was accepted.
func (c *Conn) Came() int64 { return c.came }

// Cut ends a connection that waits for bytes, or for its client to read an answer: its reads return why from now on. It reports whether
// the connection had not been cut before.
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
	if l, ok := c.Conn.(borrowed); ok && c.borrowed {
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

// arrivalGrace is how long a stopping server waits for requests that are still arriving.
const arrivalGrace = time.Second

// StopReading cuts connections that wait for bytes, from arrivalGrace on until done: an incomplete request needs no answer.
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
