package events

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/conn"
	"github.com/lubdub-io/lubdub/internal/shares"
	"github.com/lubdub-io/lubdub/tracker/events"
)

// A stream of events is an answer whose body is read as events happen: by the connection's goroutine, which waits until there is
// something to send. One goroutine handles keep-alives and expiry for all streams (httpapi.Waits).

const (
	contentTypeEvents = "text/event-stream"

	// KeepAlive is the interval of keep-alives, which include the position. A client that has gone is detected only by a write, which is
	// done at once if an event loop sees that its side has ended.
	KeepAlive = 15 * time.Second
	// storePause is how long a stream of past events waits when the store does not answer.
	storePause = time.Second
	// retryLeast and retryMost bound when clients whose stream has ended should reconnect, so that not all do so at once.
	retryLeast, retryMost = time.Second, 5 * time.Second
)

// wantsStream reports whether a request asks for a stream instead of a page.
func wantsStream(h *fasthttp.RequestHeader) bool {
	return bytes.Contains(bytes.ToLower(h.Peek(fasthttp.HeaderAccept)), []byte(contentTypeEvents))
}

// stream answers GET /v1/events with a stream.
func (h *Handlers) stream(req *httpapi.Request, p *httpapi.Parameters, filter events.Filter) (int, any, error) {
	field, after := "after", p.Get("after")
	if id := req.Ctx.Request.Header.Peek("Last-Event-ID"); len(id) > 0 { // a client that reconnects sends its position
		field, after = "Last-Event-ID", string(id)
	}
	if p.Has("order") || p.Has("pageSize") {
		return 0, nil, httpapi.InvalidField("order", "order and pageSize are for pages; a stream sends events in their own order: omit both")
	}
	if req.Ctx.IsHead() {
		req.Ctx.SetContentType(contentTypeEvents)
		return fasthttp.StatusOK, nil, nil
	}
	if r := h.enter(req); r != nil {
		return 0, nil, r
	}
	l, err := h.Events.Follow(req.Context(), filter, field, after)
	if err != nil {
		h.leave(req.Caller)
		return 0, nil, err
	}
	stream := &eventStream{handlers: h, waits: &req.API.Waits, running: req.API.Running, listener: l, who: req.Caller}
	stream.quietSince.Store(time.Now().UnixNano())
	stream.pending = append(stream.pending, fmt.Appendf(nil, ": lubdub\nretry: %d\nid: %s\n\n", retry().Milliseconds(), l.Cursor()))
	req.API.Waits.Add(stream, h.KeepAlive)
	conn.Streams(req.Ctx.Conn(), stream.hungUp)
	header := &req.Ctx.Response.Header
	header.SetContentType(contentTypeEvents)
	header.Set(fasthttp.HeaderCacheControl, "no-store")
	header.Set("X-Accel-Buffering", "no")
	req.Ctx.Response.ImmediateHeaderFlush = true
	req.Ctx.SetBodyStream(stream, -1)
	return fasthttp.StatusOK, nil, nil
}

func retry() time.Duration { return retryLeast + rand.N(retryMost-retryLeast) }

// eventStream is the body of one answer. Read and Close are for the connection, the rest is for any goroutine.
type eventStream struct {
	handlers *Handlers
	waits    *httpapi.Waits
	running  context.Context
	listener *events.Listener
	who      *httpapi.Principal

	pending net.Buffers       // sent first
	events  []*events.Message // sent second
	closing []byte            // sent last
	last    bool              // nothing is sent after that
	buffers [4][]byte         // of pending
	head    []byte            // of an event or gap, in pending

	quietSince atomic.Int64           // when something was last written, ns since the epoch
	due        atomic.Bool            // a keep-alive is due
	ended      atomic.Pointer[string] // why it must end; nil: it continues
}

// Read waits until there is something to send. It copies events from memory that all streams share.
func (s *eventStream) Read(p []byte) (n int, err error) {
	for n < len(p) {
		k, _ := s.pending.Read(p[n:])
		n += k
		switch {
		case k > 0:
		case len(s.events) > 0:
			s.append(s.events[0])
			s.events = s.events[1:]
		case s.closing != nil:
			s.pending, s.closing = append(s.pending, s.closing), nil
		case n > 0:
			s.quietSince.Store(time.Now().UnixNano())
			return n, nil
		case s.last:
			return 0, io.EOF
		default:
			s.next()
		}
	}
	s.quietSince.Store(time.Now().UnixNano())
	return n, nil
}

// next determines what to send, or waits for it.
func (s *eventStream) next() {
	found, err := s.listener.Next(s.running)
	s.events = found
	switch why := s.ended.Load(); {
	case len(found) > 0 && why == nil:
	case why != nil:
		s.last = true
		s.closing = fmt.Appendf(nil, "event: end\nid: %s\nretry: %d\ndata: {\"reason\":%q,\"cursor\":%[1]q}\n\n",
			s.listener.Cursor(), retry().Milliseconds(), *why)
	case errors.Is(err, events.ErrLagged):
		s.last = true
		s.closing = fmt.Appendf(nil, "event: lagged\nid: %s\nretry: %d\ndata: {\"cursor\":%[1]q}\n\n",
			s.listener.Cursor(), retry().Milliseconds())
	case s.due.Swap(false):
		s.pending = append(s.pending, fmt.Appendf(nil, ": keep-alive\nid: %s\n\n", s.listener.Cursor()))
	case err != nil:
		select { // the store does not answer; keep-alives continue
		case <-s.listener.Woken():
		case <-time.After(storePause):
		}
	default:
		<-s.listener.Woken()
	}
}

var (
	dataBegins = []byte("\ndata: ")
	dataEnds   = []byte("\n\n")
)

// append makes an event or a gap pending.
func (s *eventStream) append(t *events.Message) {
	if t.Gap != nil {
		gap, _ := httpapi.Marshal(convert.Gap(t.Gap)) // encoding plain fields does not fail
		s.head = append(append(s.head[:0], "event: gap\nid: "...), t.Cursor...)
		s.pending = append(s.buffers[:0], s.head, dataBegins, gap, dataEnds)
		return
	}
	s.head = append(append(s.head[:0], "id: "...), t.Cursor...)
	s.pending = append(s.buffers[:0], s.head, dataBegins, t.JSON, dataEnds)
}

// hungUp makes the stream send a keep-alive, which shows whether the client has gone.
func (s *eventStream) hungUp() {
	s.due.Store(true)
	s.listener.Wake()
}

// Close is called when the client has gone, and at the end.
func (s *eventStream) Close() error {
	s.listener.Close()
	s.waits.Remove(s)
	s.handlers.leave(s.who)
	return nil
}

func (s *eventStream) Principal() *httpapi.Principal { return s.who }

// Tick makes the stream send a keep-alive if it has been quiet for long.
func (s *eventStream) Tick(now time.Time) {
	if s.quietSince.Load() <= now.Add(-s.handlers.KeepAlive).UnixNano() && !s.due.Swap(true) {
		s.listener.Wake()
	}
}

// End makes the stream send why it ends, and end.
func (s *eventStream) End(why string) {
	s.ended.CompareAndSwap(nil, &why)
	s.listener.Wake()
}

// enter takes a place for a stream, or refuses it.
func (h *Handlers) enter(req *httpapi.Request) *httpapi.Refusal {
	if req.API.Running.Err() != nil {
		return httpapi.ErrStopping
	}
	if level := h.Streams.Take(req.Caller.Holder(), 1); level != shares.Granted {
		h.Refused()
		return httpapi.OverShare(level, h.Streams, "streams of events", "half of max-connections")
	}
	return nil
}

func (h *Handlers) leave(who *httpapi.Principal) { h.Streams.Release(who.Holder(), 1) }
