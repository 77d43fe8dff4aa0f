package events

import (
	"context"
	"errors"
	"sync"
	"time"
)

// These limit what waits for a listener. One that is further behind has to reconnect.
const (
	queueEvents = 4096
	queueBytes  = 1 << 20
)

// ErrLagged is returned to a Listener that did not keep up. It may continue from its cursor.
var ErrLagged = errors.New("the listener did not keep up")

// Sent to listeners, encoded once for all of them. It is shared: do not change it.
type Message struct {
	Event  *Event // nil: this is a Gap
	Gap    *Gap   // in the events that were next
	Cursor string // continues behind it
	JSON   []byte // of the event

	epoch uint32
}

func eventMessage(e *Event, cursor string, epoch uint32) *Message {
	return &Message{Event: e, Cursor: cursor, JSON: e.AppendJSON(nil), epoch: epoch}
}

func gapMessage(g *Gap, cursor string) *Message { return &Message{Gap: g, Cursor: cursor} }

// Listener receives events from a cursor on. Next is for one goroutine, the other methods are for any. Close it at the end.
type Listener struct {
	hub    *hub
	filter Filter
	woken  chan struct{}

	walk   *walk     // reads from its cursor to the hub's position; nil: it has arrived
	at     Positions // positions behind what the walk has returned
	epochs []uint32  // of the hub when the listener joined it; nil: it has not
	last   string    // cursor behind what Next has returned last

	mu     sync.Mutex
	queue  []*Message
	bytes  int
	lagged bool
}

// Follow returns a listener for events after a cursor or a time, or from now on. It returns an error that names `field` when `after` is
// invalid.
func (s *Service) Follow(ctx context.Context, f Filter, field, after string) (*Listener, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	ctx = s.store.Within(ctx, 0)
	l := &Listener{hub: s.hub, filter: f, woken: make(chan struct{}, 1)}
	if after == "" || after == "now" {
		if err := s.hub.join(ctx, l); err != nil {
			return nil, err
		}
		s.metrics.listeners.Inc()
		return l, nil
	}
	at, err := s.Begin(ctx, field, after, false)
	if err != nil {
		return nil, err
	}
	l.walk, l.last = s.newWalk(Query{Filter: f, Size: MaxPage}, at), s.Cursor(at, false)
	l.walk.everyCursor, l.walk.charged.streams = true, true
	s.metrics.listeners.Inc()
	return l, nil
}

// Close ends the listener. Call it once, and not while Next runs.
func (l *Listener) Close() {
	l.hub.service.metrics.listeners.Dec()
	if l.walk != nil {
		l.walk.rest()
	}
	l.hub.leave(l)
}

// Woken is readable when Next may have more.
func (l *Listener) Woken() <-chan struct{} { return l.woken }

// Wake makes Woken readable.
func (l *Listener) Wake() {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

// Cursor returns the cursor behind what Next has returned last.
func (l *Listener) Cursor() string { return l.last }

// Next returns what is available now; when it returns nothing, wait for Woken. It reads from the store until the listener has reached the
// hub's position, and not after that. ErrLagged is final; any other error comes from the store and may be temporary.
func (l *Listener) Next(ctx context.Context) ([]*Message, error) {
	if l.walk != nil {
		messages, err := l.follow(ctx)
		switch {
		case l.walk == nil || err != nil:
		case l.walk.paced > 0:
			time.AfterFunc(l.walk.paced, l.Wake)
		default:
			l.Wake()
		}
		if l.walk != nil || len(messages) > 0 {
			return messages, err
		}
	}
	here := l.hub.here() // read before the queue: everything up to here is queued
	l.mu.Lock()
	queue, lagged := l.queue, l.lagged
	l.queue, l.bytes = nil, 0
	l.mu.Unlock()
	switch queue = l.fresh(queue); {
	case len(queue) > 0:
		l.last = queue[len(queue)-1].Cursor
		if lagged {
			l.Wake()
		}
	case lagged:
		return nil, ErrLagged
	default:
		l.last = here
	}
	return queue, nil
}

// follow continues reading to the end of the streams; then it joins the hub, and reads to the end again.
func (l *Listener) follow(ctx context.Context) ([]*Message, error) {
	w := l.walk
	page, err := w.page(w.service.store.Within(ctx, 0))
	if err != nil {
		return nil, err
	}
	var messages []*Message
	if page.Gap != nil {
		messages = append(messages, gapMessage(page.Gap, l.last))
	}
	for i, e := range page.Events {
		messages = append(messages, eventMessage(e, w.cursors[i], 0))
	}
	w.cursors, l.last = nil, w.service.Cursor(w.at, false)
	switch {
	case w.left():
	case l.epochs != nil:
		l.at, l.walk = w.at, nil
		if len(messages) > 0 {
			l.Wake()
		}
	default:
		if err := l.hub.join(ctx, l); err != nil && len(messages) == 0 {
			return nil, err
		}
		w.again()
	}
	return messages, nil
}

// fresh removes what the listener has already read on its way to the hub's position. Once the store has lost writes, IDs do not show what
// was read before.
func (l *Listener) fresh(queue []*Message) []*Message {
	if l.at == nil {
		return queue
	}
	unread := queue[:0]
	for _, t := range queue {
		if e := t.Event; e != nil && l.epochs[e.Shard] == t.epoch && !l.at[e.Shard].Before(e.At) {
			continue
		}
		unread = append(unread, t)
	}
	return unread
}

// push is called by the hub.
func (l *Listener) push(t *Message) {
	l.mu.Lock()
	if l.lagged {
		l.mu.Unlock()
		return
	}
	if len(l.queue) == queueEvents || l.bytes+len(t.JSON) > queueBytes {
		l.lagged = true
		l.hub.service.metrics.lagged.Inc()
	} else {
		l.queue, l.bytes = append(l.queue, t), l.bytes+len(t.JSON)
	}
	l.mu.Unlock()
	l.Wake()
}
