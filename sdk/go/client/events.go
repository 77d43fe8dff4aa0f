package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// ListEvents returns one page of events; for the next one set After to its Next.
func (c *Client) ListEvents(ctx context.Context, q EventQuery) (*v1.EventList, error) {
	return get[v1.EventList](ctx, c, "/v1/events", values(q))
}

// EventGap means that events are missing from a stream, which resumes after the gap.
type EventGap struct{ v1.EventGap }

// Error returns the times between which events are missing.
func (g *EventGap) Error() string {
	return fmt.Sprintf("lubdub: events between %s and %s are not kept any more",
		g.From.Format(v1.TimeLayout), g.To.Format(v1.TimeLayout))
}

// EventStream is an event stream for one goroutine. It reconnects where it left off whenever its connection ends.
type EventStream struct {
	client *Client
	query  EventQuery
	cursor string
	pause  time.Duration // the server's wish
}

// Events returns a stream of events. Order and PageSize do not apply.
func (c *Client) Events(q EventQuery) *EventStream {
	q.Order, q.PageSize = "", 0
	return &EventStream{client: c, query: q}
}

// Cursor is the position in the stream: another query with After set to it continues after the last event that All yielded. Store it if
// events must not be missed across restarts. Empty before the first answer.
func (s *EventStream) Cursor() string { return s.cursor }

// All yields events until ctx ends. An error of type *EventGap means that some are missing, and more follow; any other error is the last
// value. Lost connections, server restarts and a slow reader are not errors: the stream reconnects where it was.
func (s *EventStream) All(ctx context.Context) iter.Seq2[v1.Event, error] {
	return func(yield func(v1.Event, error) bool) {
		for failures := 0; ; {
			received, err := s.listen(ctx, yield)
			if err == errEnough || ctx.Err() != nil {
				return
			}
			if err != nil && !again(err) {
				yield(v1.Event{}, err)
				return
			}
			if failures++; received {
				failures = 0
			}
			pause := backoff(failures, maxPause, err)
			if err == nil { // the server closed the stream and sent a reconnection time
				pause = s.pause
			}
			if !clock.Sleep(s.client.set.clock, pause, ctx.Done()) {
				return
			}
		}
	}
}

var (
	errEnough = errors.New("the caller has enough")
	errQuiet  = errors.New("the stream is silent")
)

// quiet is three times the server's keepalive interval.
const quiet = 45 * time.Second

// listen opens the stream once and yields its events; received reports that there were any.
func (s *EventStream) listen(ctx context.Context, yield func(v1.Event, error) bool) (received bool, err error) {
	c := s.client
	if c.closing.Err() != nil {
		return false, ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := c.set.clock.AfterFunc(quiet, func() { cancel(errQuiet) })
	defer func() { watch() }()
	res, err := s.open(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewReaderSize(res.Body, 64<<10)
	var m message
	for {
		line, err := readLine(lines)
		if err != nil {
			return received, fmt.Errorf("lubdub: GET /v1/events: %w", err)
		}
		watch()
		watch = c.set.clock.AfterFunc(quiet, func() { cancel(errQuiet) })
		if line != "" {
			m.add(line)
			continue
		}
		if m.retry > 0 {
			s.pause = m.retry
		}
		over, err := s.yieldMessage(&m, yield)
		if err == nil && m.id != "" {
			s.cursor, received = m.id, true
		}
		if over || err != nil {
			return received, err
		}
		m = message{}
	}
}

// open opens the stream at its position; a second time with a new token if that is needed.
func (s *EventStream) open(ctx context.Context) (*http.Response, error) {
	c := s.client
	token, err := c.token.current(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	res, err := s.openWith(ctx, token)
	var e *Error
	if !errors.As(err, &e) || e.Status != http.StatusUnauthorized {
		return res, err
	}
	if other, failed := c.token.renew(ctx, token); failed == nil && other != token {
		return s.openWith(ctx, other)
	}
	return nil, err
}

func (s *EventStream) openWith(ctx context.Context, token string) (*http.Response, error) {
	c := s.client
	k := &call{method: http.MethodGet, path: "/v1/events", query: c.scoped(values(s.query)), base: c.base}
	if s.cursor != "" {
		k.query.Del("after")
	}
	at := k.base.first()
	req, err := c.request(ctx, k, at, token)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if s.cursor != "" {
		req.Header.Set("Last-Event-ID", s.cursor)
	}
	res, err := c.roundTrip(req)
	if err != nil {
		k.base.failed(at)
		return nil, fmt.Errorf("lubdub: %s: %w", k.operation(), err)
	}
	if res.StatusCode != http.StatusOK {
		err := c.read(k, res)
		if err == nil {
			err = fmt.Errorf("lubdub: %s: %w: status %d", k.operation(), ErrAnswer, res.StatusCode)
		}
		if again(err) {
			k.base.failed(at)
		}
		return nil, err
	}
	return res, nil
}

// yieldMessage yields the content of a message; over: the server closes the stream.
func (s *EventStream) yieldMessage(m *message, yield func(v1.Event, error) bool) (over bool, err error) {
	switch m.event {
	case "", "message":
		if m.data == "" {
			return false, nil // a keepalive
		}
		var e v1.Event
		if err := json.Unmarshal([]byte(m.data), &e); err != nil {
			return false, fmt.Errorf("lubdub: GET /v1/events: %w: %w", ErrAnswer, err)
		}
		s.reach(m)
		if !yield(e, nil) {
			return true, errEnough
		}
	case "gap":
		var g EventGap
		if err := json.Unmarshal([]byte(m.data), &g.EventGap); err != nil {
			return false, fmt.Errorf("lubdub: GET /v1/events: %w: %w", ErrAnswer, err)
		}
		s.reach(m)
		if !yield(v1.Event{}, &g) {
			return true, errEnough
		}
	case "lagged", "end":
		s.reach(m)
		return true, nil
	}
	return false, nil
}

// reach moves the cursor before an event is yielded, so that Cursor in the loop is the position after that event.
func (s *EventStream) reach(m *message) {
	if m.id != "" {
		s.cursor = m.id
	}
}

// message is one message of a stream of server-sent events.
type message struct {
	event, data, id string
	retry           time.Duration
}

func (m *message) add(line string) {
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch name {
	case "event":
		m.event = value
	case "id":
		m.id = value
	case "data":
		if m.data != "" {
			m.data += "\n"
		}
		m.data += value
	case "retry":
		if ms, err := strconv.ParseInt(value, 10, 32); err == nil && ms >= 0 {
			m.retry = time.Duration(ms) * time.Millisecond
		}
	}
}

// maxLine is the limit of a line, in bytes.
const maxLine = 4 << 20

func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, more, err := r.ReadLine()
		if err != nil {
			return "", err
		}
		if line = append(line, part...); len(line) > maxLine {
			return "", fmt.Errorf("%w: a line is longer than %d MiB", ErrAnswer, maxLine>>20)
		}
		if !more {
			return string(line), nil
		}
	}
}
