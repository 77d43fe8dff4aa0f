package conn

import (
	"net"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/internal/shares"
)

// Others have connections that a watch counts, and may cut, while they keep them by other means. For a request they may lend one to
// the watch. Their methods may be called from any goroutine.
type Others interface {
	Open() (open, leaving int)  // how many there are, and how many of them were cut; lent ones included
	Each(yield func(Candidate)) // those that are not lent
	Waiting() []net.Addr        // whose bytes are waited for
	StopReading()               // cuts whoever waits for bytes: the server is stopping
}

// Join has others' connections count as the watch's, until they Part.
func (w *Watch) Join(o Others) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.others = append(slices.Clone(w.others), o)
	w.begin()
}

// Part ends what Join began.
func (w *Watch) Part(o Others) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.others = slices.DeleteFunc(slices.Clone(w.others), func(other Others) bool { return other == o })
	w.endIfEmpty()
}

// lent is what a lent connection wants to be told, and tells.
type lent interface {
	Close() error
	Cut(*Cut) bool               // close it after the request under way; false: it was cut before
	Known(shares.Holder) *Member // it has shown a valid token
	Idle(idle bool)              // it is between two requests: what is read next begins one
	HungUp(func())               // is to be called when the client has ended its side, also when it has already
}

// Past is what has become of a connection before it was lent.
type Past struct {
	Member *Member // to whom it belongs; nil: it has shown no valid token
	Came   int64   // when it came, in ns since the epoch
	Since  int64   // when it last had an answer, or came, in ns since the epoch
	ReadBy int64   // when the request that has begun must be there, in ns since the epoch; 0: the server that serves it says
	Why    *Cut    // it was cut, and is to be told why; nil: it was not
}

// Adopt watches a connection that others lend for a request, until it is closed.
func (w *Watch) Adopt(c net.Conn, p Past) *Conn {
	a := &Conn{Conn: c, watch: w, lent: true, came: p.Came, since: p.Since, readBy: p.ReadBy}
	a.member.Store(p.Member)
	if p.ReadBy != 0 {
		_ = a.SetReadDeadline(time.Unix(0, p.ReadBy)) // only takes a number down
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[a] = struct{}{}
	w.lent++
	w.begin()
	if p.Why != nil {
		w.cut(a, p.Why)
	}
	return a
}

// Idle says whether a connection is between two requests.
func Idle(c net.Conn, idle bool) {
	if c, ok := c.(*Conn); ok && idle {
		c.streams.Store(false)
	}
	if c, ok := c.(*Conn); ok && c.lent {
		if l, ok := c.Conn.(lent); ok {
			l.Idle(idle)
		}
	}
}
