package conn

import (
	"cmp"
	"net"
	"slices"
	"time"
)

// A stranger is a connection that has shown no valid token yet. Its place may be given to another one.

// Known marks a connection as one that has shown a valid token. Connections of other listeners are left alone.
func Known(c net.Conn) {
	if c, ok := c.(*Conn); ok && !c.known.Load() {
		c.known.Store(true)
		if l, ok := c.Conn.(lent); ok {
			l.Known()
		}
	}
}

// Cut is what a connection reads that was cut: why it was.
type Cut struct{ why string }

func (c *Cut) Error() string { return c.why }

var (
	// MadeRoom is why a stranger was cut: another one needed its place.
	MadeRoom = &Cut{"another connection needed its place"}
	// Stopping is why a connection was cut whose request had not arrived whole when the server stopped.
	Stopping = &Cut{"the server is stopping"}
)

// Stranger is a connection that may have to give way. Its methods may be called from any goroutine.
type Stranger interface {
	Idle() bool    // it waits for bytes, has shown no valid token, and was not cut
	Since() int64  // when it last had an answer, or came, in ns since the epoch
	Cut(*Cut) bool // ends it, once: false if that was done before, or it has gone
}

// candidate is a stranger as it was found.
type candidate struct {
	Stranger
	since int64
}

// candidates are how many strangers one walk over all connections finds.
const candidates = 256

// walkPause is the least time between two walks that find nobody.
const walkPause = 20 * time.Millisecond

// cutStranger cuts the stranger that has waited longest for its next request, and reports whether there was one. A connection
// with a request under way keeps its place.
func (w *Watch) cutStranger() bool {
	w.strangersMu.Lock()
	defer w.strangersMu.Unlock()
	for {
		for len(w.strangers) > 0 {
			s := w.strangers[0]
			w.strangers = w.strangers[1:]
			if s.Idle() && s.Since() == s.since && s.Cut(MadeRoom) {
				return true
			}
		}
		if time.Since(w.walked) < walkPause || !w.findStrangers() {
			return false
		}
	}
}

// findStrangers lists those that have waited longest, and reports whether there are any.
func (w *Watch) findStrangers() bool {
	w.mu.Lock()
	found := func(s Stranger) { w.strangers = append(w.strangers, candidate{s, s.Since()}) }
	for c := range w.conns {
		if c.Idle() {
			found(c)
		}
	}
	others := w.others
	w.mu.Unlock()
	for _, o := range others {
		o.Strangers(found)
	}
	if len(w.strangers) == 0 {
		w.walked = time.Now()
		return false
	}
	slices.SortFunc(w.strangers, func(a, b candidate) int { return cmp.Compare(a.since, b.since) })
	w.strangers = slices.Clone(w.strangers[:min(candidates, len(w.strangers))])
	return true
}

// Idle reports whether the connection is a stranger that may be cut.
func (c *Conn) Idle() bool {
	return c.reading.Load() && !c.known.Load() && c.why.Load() == nil
}

// Since returns when the connection last had an answer, or came: each answer moves the deadline of writing.
func (c *Conn) Since() int64 {
	return max(c.came, c.write.at.Load()-int64(c.watch.writeTimeout))
}

// Cut ends a connection that waits for bytes: what it reads from now on is why. It takes effect once.
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
	w.leaving++
	c.read.end(c.Conn.SetReadDeadline)
	return true
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
