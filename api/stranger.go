package api

import (
	"cmp"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
)

// A stranger is a connection that has shown no valid token yet. Its place may be given to another one.

// known marks the connection of a request as one that has shown a valid token.
func known(ctx *fasthttp.RequestCtx) {
	if c, ok := ctx.Conn().(*patientConn); ok && !c.known.Load() {
		c.known.Store(true)
	}
}

// stranger is a candidate for a cut, as it was found.
type stranger struct {
	conn  *patientConn
	since int64 // when it last had an answer, or came
}

// candidates are how many strangers one walk over all connections finds.
const candidates = 256

// walkPause is the least time between two walks that find nobody.
const walkPause = 20 * time.Millisecond

// errMadeRoom tells a stranger, where it has sent part of a request, why that was not waited for.
var errMadeRoom = &refusal{status: fasthttp.StatusServiceUnavailable, close: true, retryAfter: defaultRetryAfter, body: v1.Error{
	Error:   v1.CodeOverloaded,
	Message: "The server has as many open connections as it may, and this one had shown no valid token for longest; send the request whole, on a new connection",
}}

// cutStranger cuts the stranger that has waited longest for its next request, and tells whether there was one. Who has a
// request under way keeps its place.
func (w *connWatch) cutStranger() bool {
	w.strangersMu.Lock()
	defer w.strangersMu.Unlock()
	for {
		for len(w.strangers) > 0 {
			s := w.strangers[0]
			w.strangers = w.strangers[1:]
			if s.conn.idleStranger() && s.conn.since() == s.since && s.conn.cut(errMadeRoom) {
				return true
			}
		}
		if time.Since(w.walked) < walkPause || !w.findStrangers() {
			return false
		}
	}
}

// findStrangers lists those that have waited longest.
func (w *connWatch) findStrangers() bool {
	w.mu.Lock()
	for c := range w.conns {
		if c.idleStranger() {
			w.strangers = append(w.strangers, stranger{c, c.since()})
		}
	}
	w.mu.Unlock()
	if len(w.strangers) == 0 {
		w.walked = time.Now()
		return false
	}
	slices.SortFunc(w.strangers, func(a, b stranger) int { return cmp.Compare(a.since, b.since) })
	w.strangers = slices.Clone(w.strangers[:min(candidates, len(w.strangers))])
	return true
}

func (c *patientConn) idleStranger() bool {
	return c.reading.Load() && !c.known.Load() && c.why.Load() == nil
}

// since is when the connection last had an answer, or came: each answer moves the deadline of writing.
func (c *patientConn) since() int64 {
	return max(c.came, c.write.at.Load()-int64(c.watch.writeTimeout))
}

// cut ends a connection that waits for bytes: what it reads from now on is the refusal. It is told once.
func (c *patientConn) cut(why *refusal) bool {
	w := c.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut(c, why)
}

// cut is c.cut for who holds w.mu.
func (w *connWatch) cut(c *patientConn, why *refusal) bool {
	if _, there := w.conns[c]; !there || !c.why.CompareAndSwap(nil, why) {
		return false
	}
	w.leaving++
	c.read.end(c.Conn.SetReadDeadline)
	return true
}

// errStopping tells who has sent part of a request why the rest is not waited for.
var errStopping = &refusal{status: fasthttp.StatusServiceUnavailable, close: true, retryAfter: defaultRetryAfter, body: v1.Error{
	Error:   v1.CodeOverloaded,
	Message: "The server is stopping, and the request had not arrived whole; send it again, on a new connection",
}}

// arrivalGrace is how long a stopping server waits for requests that are still on their way.
const arrivalGrace = time.Second

// stopReading cuts, from arrivalGrace on, whoever waits for bytes: a request that has not arrived whole needs no answer.
func (w *connWatch) stopReading(done <-chan struct{}) {
	for wait := arrivalGrace; ; wait = 100 * time.Millisecond {
		select {
		case <-done:
			return
		case <-time.After(wait):
		}
		w.mu.Lock()
		for c := range w.conns {
			if c.reading.Load() {
				w.cut(c, errStopping)
			}
		}
		w.mu.Unlock()
	}
}
