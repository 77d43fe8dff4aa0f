package events

import (
	"context"
	"errors"
	"sync"
	"time"
)

// How much may wait for a listener. One that is further behind has to come again.
const (
	queueEvents = 4096
	queueBytes  = 1 << 20
)

// ErrLagged is what a Listener gets that did not keep up. It may go on from where it came to.
var ErrLagged = errors.New("the listener did not keep up")

// Told is one thing that listeners are told, encoded once for all of them. It is shared: do not change it.
type Told struct {
	Event  *Event // nil: it is a Gap
	Gap    *Gap   // in what was to come
	Cursor string // goes on behind it
	JSON   []byte // of the event

	epoch uint32
}

func eventTold(e *Event, cursor string, epoch uint32) *Told {
	return &Told{Event: e, Cursor: cursor, JSON: e.AppendJSON(nil), epoch: epoch}
}

func gapTold(g *Gap, cursor string) *Told { return &Told{Gap: g, Cursor: cursor} }

// Listener hears what happens from a cursor on. Next is for one goroutine, the other methods are for any. Close it.
type Listener struct {
	hub    *hub
	filter Filter
	woken  chan struct{}

	walk   *walk     // goes from its cursor to where the hub is; nil: it is there
	at     Positions // behind what it was told while it went there
	epochs []uint32  // of the hub when it began to tell it what comes; nil: it does not yet
	last   string    // cursor behind what it was told last

	mu     sync.Mutex
	queue  []*Told
	bytes  int
	lagged bool
}

// FollowEvents returns a listener behind a cursor or a time, or from now on. field names that in refusals.
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

// Close ends the listening. It must be called once, and not while Next runs.
func (l *Listener) Close() {
	l.hub.service.metrics.listeners.Dec()
	if l.walk != nil {
		l.walk.rest()
	}
	l.hub.leave(l)
}

// Woken has something to read when Next may have more.
func (l *Listener) Woken() <-chan struct{} { return l.woken }

// Wake has whoever waits for Woken look again.
func (l *Listener) Wake() {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

// Cursor goes on behind what Next has returned last.
func (l *Listener) Cursor() string { return l.last }

// Next returns what is to be told now; nothing: wait for Woken. It asks the store while the listener goes from its cursor to
// where the others are, and then never. ErrLagged ends it; any other error is one of the store's, and may pass.
func (l *Listener) Next(ctx context.Context) ([]*Told, error) {
	if l.walk != nil {
		told, err := l.follow(ctx)
		switch {
		case l.walk == nil || err != nil:
		case l.walk.paced > 0:
			time.AfterFunc(l.walk.paced, l.Wake)
		default:
			l.Wake()
		}
		if l.walk != nil || len(told) > 0 {
			return told, err
		}
	}
	here := l.hub.here() // before the queue is looked at: all of it is queued
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

// follow goes on with the way to where the hub is: to the end of the streams, and from where the hub tells it what comes to
// their end once more.
func (l *Listener) follow(ctx context.Context) ([]*Told, error) {
	w := l.walk
	page, err := w.page(w.service.store.Within(ctx, 0))
	if err != nil {
		return nil, err
	}
	var told []*Told
	if page.Gap != nil {
		told = append(told, gapTold(page.Gap, l.last))
	}
	for i, e := range page.Events {
		told = append(told, eventTold(e, w.cursors[i], 0))
	}
	w.cursors, l.last = nil, w.service.Cursor(w.at, false)
	switch {
	case w.left():
	case l.epochs != nil:
		l.at, l.walk = w.at, nil
		if len(told) > 0 {
			l.Wake()
		}
	default:
		if err := l.hub.join(ctx, l); err != nil && len(told) == 0 {
			return nil, err
		}
		w.again()
	}
	return told, nil
}

// fresh leaves out what the listener was told on its way to where the hub is. Once the store has lost writes ids say nothing
// about what was told.
func (l *Listener) fresh(queue []*Told) []*Told {
	if l.at == nil {
		return queue
	}
	kept := queue[:0]
	for _, t := range queue {
		if e := t.Event; e != nil && l.epochs[e.Shard] == t.epoch && !l.at[e.Shard].Before(e.At) {
			continue
		}
		kept = append(kept, t)
	}
	return kept
}

// push is told by the hub.
func (l *Listener) push(t *Told) {
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
