package events

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/store"
)

// hub reads all shards for all listeners, in one loop per Redis node, and in none while there is no listener. Each event is encoded once.
type hub struct {
	service *Service

	starting sync.Mutex // serialises starting the loops

	mu        sync.Mutex
	stop      context.CancelFunc // ends the loops; nil: none runs
	running   sync.WaitGroup
	listeners map[*Listener]struct{}
	at        Positions
	epochs    []uint32 // by shard: how often the store was found to have lost writes
	trails    []trail  // by shard
	cursor    string   // the cursor of at
}

// pollPause is the pause between two reads of a node without more events.
const pollPause = 50 * time.Millisecond

func newHub(s *Service) *hub { return &hub{service: s, listeners: map[*Listener]struct{}{}} }

// join adds a listener, which gets every event from here on.
func (h *hub) join(ctx context.Context, l *Listener) error {
	for {
		h.mu.Lock()
		if h.stop != nil {
			h.listeners[l] = struct{}{}
			if l.epochs = slices.Clone(h.epochs); l.last == "" {
				l.last = h.cursor
			}
			h.mu.Unlock()
			return nil
		}
		h.mu.Unlock()
		if err := h.start(ctx); err != nil {
			return err
		}
	}
}

// leave removes a listener. With the last one the loops end.
func (h *hub) leave(l *Listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, l)
	if len(h.listeners) == 0 && h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

// close ends the loops, even if there are listeners.
func (h *hub) close() {
	h.mu.Lock()
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
	h.mu.Unlock()
	h.running.Wait()
}

// start begins to read at the present.
func (h *hub) start(ctx context.Context) error {
	h.starting.Lock()
	defer h.starting.Unlock()
	h.mu.Lock()
	started := h.stop != nil
	h.mu.Unlock()
	if started {
		return nil
	}
	h.running.Wait() // an earlier loop may still be publishing
	at, err := h.service.Now(h.service.store.Within(ctx, 0))
	if err != nil {
		return err
	}
	life, stop := context.WithCancel(context.Background())
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at, h.stop, h.cursor = at, stop, h.service.Cursor(at, false)
	h.epochs, h.trails = make([]uint32, len(at)), make([]trail, len(at))
	for shard, p := range at {
		h.trails[shard].note(p, time.Now())
	}
	h.running.Go(func() {
		h.service.store.RunOnEachNode(life, store.NodeWork{Name: "reading events", Errors: h.service.metrics.readErrors, Round: h.round})
	})
	return nil
}

func (h *hub) round(ctx context.Context, n *store.Node) (time.Duration, error) {
	more, err := h.poll(ctx, n)
	if more && err == nil {
		return 0, nil
	}
	return pollPause, err
}

// poll reads the shards of a node, and publishes new events. When some shards fail, the events of the others are still published.
func (h *hub) poll(ctx context.Context, n *store.Node) (more bool, err error) {
	shards := h.service.store.ByNode()[n]
	if len(shards) == 0 {
		return false, nil
	}
	h.mu.Lock()
	from := slices.Clone(h.at)
	h.mu.Unlock()
	reads, err := h.service.ReadNode(ctx, n, shards, func(shard int) Position { return from[shard] })
	var found []*Event
	for _, l := range reads {
		found = append(found, l.Events...)
		more = more || l.More
	}
	if resolved := h.service.Resolve(ctx, found); resolved != nil {
		return false, resolved
	}
	if ctx.Err() == nil {
		h.publish(reads)
	}
	return more, err
}

// publish publishes what some reads have found.
func (h *hub) publish(reads []ShardRead) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stop == nil {
		return
	}
	reads = slices.DeleteFunc(reads, func(l ShardRead) bool { return h.at[l.Shard] != l.From }) // another loop has published it
	for i := range reads {
		l := &reads[i]
		if l.Lost {
			h.goBack(l)
		}
		if l.Gap != nil {
			h.broadcast(gapMessage(l.Gap, h.cursor))
		}
	}
	for e := first(reads); e != nil; e = first(reads) {
		h.at[e.Shard] = e.At
		h.trails[e.Shard].note(e.At, time.Now())
		h.cursor = h.service.Cursor(h.at, false)
		h.service.metrics.read.Inc()
		h.broadcast(eventMessage(e, h.cursor, h.epochs[e.Shard]))
	}
}

// goBack makes a shard that has lost writes be read again from the newest entry seen that may still exist, or from its first entry.
func (h *hub) goBack(l *ShardRead) {
	h.epochs[l.Shard]++
	h.at[l.Shard] = h.trails[l.Shard].pop()
	l.Events = nil
}

// first removes and returns the earliest event of several shards, each in its order; nil: none is left.
func first(reads []ShardRead) *Event {
	next := -1
	for i := range reads {
		if len(reads[i].Events) > 0 && (next < 0 || reads[i].Events[0].Ms < reads[next].Events[0].Ms) {
			next = i
		}
	}
	if next < 0 {
		return nil
	}
	e := reads[next].Events[0]
	reads[next].Events = reads[next].Events[1:]
	return e
}

func (h *hub) broadcast(t *Message) {
	for l := range h.listeners {
		if t.Event == nil || l.filter.Match(t.Event) {
			l.push(t)
		}
	}
}

// here returns the cursor behind everything published.
func (h *hub) here() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cursor
}

// trail is the reader's positions in a shard, about one per second, to which it goes back when the store has lost writes.
type trail struct {
	been []Position // oldest first
	last time.Time  // when the newest was added
}

const longestTrail = 64

func (t *trail) note(p Position, now time.Time) {
	if len(t.been) > 0 && now.Sub(t.last) < time.Second {
		return
	}
	if t.last = now; len(t.been) == longestTrail {
		t.been = slices.Delete(t.been, 0, 1)
	}
	t.been = append(t.been, p)
}

// pop removes and returns the newest position; without one it returns the shard's beginning.
func (t *trail) pop() (p Position) {
	if n := len(t.been); n > 0 {
		p, t.been = t.been[n-1], t.been[:n-1]
	}
	return p
}
