package conn

import (
	"net"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/internal/shares"
)

// Others own connections that a watch counts and may cut. They may lend one to the watch for a request. Their methods may be called
// from any goroutine.
type Others interface {
	Open() (open, leaving int)  // all connections, including those on loan, and how many of them were cut
	Each(yield func(Candidate)) // those that are not on loan
	Waiting() []net.Addr        // clients of connections that wait for bytes
	StopReading()               // cuts connections that wait for bytes: the server is stopping
}

// Join counts others' connections as the watch's, until Part.
func (w *Watch) Join(o Others) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.others = append(slices.Clone(w.others), o)
	w.begin()
}

// Part undoes Join.
func (w *Watch) Part(o Others) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.others = slices.DeleteFunc(slices.Clone(w.others), func(other Others) bool { return other == o })
	w.endIfEmpty()
}

// borrowed is a connection as its owner lends it.
type borrowed interface {
	Close() error
	Cut(*Cut) bool               // close it after the request under way; false: it was cut before
	Known(shares.Holder) *Member // it has shown a valid token
	Idle(idle bool)              // it is between two requests: the next byte read begins one
	HungUp(func())               // the function, unless it is nil, is called when the client has ended its side, also if it already has
}

// Past is the state of a connection before it was on loan.
type Past struct {
	Member *Member // the member that it belongs to; nil: it has shown no valid token
	Came   int64   // when it was accepted, in ns since the epoch
	Since  int64   // when it was last answered, or accepted, in ns since the epoch
	ReadBy int64   // deadline of the request that has begun, in ns since the epoch; 0: the server that serves it sets one
	Why    *Cut    // why it was cut, for the answer; nil: it was not
}

// Adopt watches a connection that others lend for a request, until it is closed.
func (w *Watch) Adopt(c net.Conn, p Past) *Conn {
	a := &Conn{Conn: c, watch: w, borrowed: true, came: p.Came, since: p.Since, readBy: p.ReadBy}
	a.member.Store(p.Member)
	if p.ReadBy != 0 {
		_ = a.SetReadDeadline(time.Unix(0, p.ReadBy)) // only records the time
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[a] = struct{}{}
	w.borrowed++
	w.begin()
	if p.Why != nil {
		w.cut(a, p.Why)
	}
	return a
}

// Idle records whether a connection is between two requests.
func Idle(c net.Conn, idle bool) {
	if c, ok := c.(*Conn); ok && idle {
		c.streams.Store(false)
	}
	if c, ok := c.(*Conn); ok && c.borrowed {
		if l, ok := c.Conn.(borrowed); ok {
			l.Idle(idle)
		}
	}
}
