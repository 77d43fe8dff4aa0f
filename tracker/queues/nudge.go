package queues

import (
	"context"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// nudges are the waiting claims of this replica, by worker. Changes that affect them (a drain, the end of the worker, the end of
// an attempt of a full worker) are announced on the channel that also wakes claims (lua/lib/wake.lua).
type nudges struct {
	mu sync.Mutex
	of map[string]map[*claim]bool // <scope>/<worker>
}

// join registers a claim for nudges; call leave when it is over.
func (n *nudges) join(c *claim) (leave func()) {
	c.queues.store.ListenForWakes()
	name := schema.TaskName(c.Scope, c.WorkerID)
	c.nudge = make(chan struct{}, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = map[string]map[*claim]bool{}
	}
	if n.of[name] == nil {
		n.of[name] = map[*claim]bool{}
	}
	n.of[name][c] = true
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.of[name], c)
		if len(n.of[name]) == 0 {
			delete(n.of, name)
		}
	}
}

// nudge makes the claims of a worker check their state.
func (n *nudges) nudge(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.of[name] {
		c.wake()
	}
}

func (n *nudges) all() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, of := range n.of {
		for c := range of {
			c.wake()
		}
	}
}

// listen registers the claim for nudges; false: it already was.
func (c *claim) listen() bool {
	if c.leave != nil {
		return false
	}
	c.leave = c.queues.nudges.join(c)
	return true
}

// awaitNudge waits for a nudge, for at most this long, until the claim must return, or until the server stops.
func (c *claim) awaitNudge(ctx context.Context, atMost time.Duration) {
	timer := time.NewTimer(min(atMost, time.Until(store.Until(ctx))-c.queues.store.LeastTrip(nil)))
	defer timer.Stop()
	select {
	case <-c.nudge:
	case <-timer.C:
	case <-c.server.Done():
	}
}

func (c *claim) wake() {
	select {
	case c.nudge <- struct{}{}:
	default: // it has not handled the last one yet
	}
}

// notifyWhenFree makes every shard announce the end of an attempt that the worker holds there. If that fails, the claim still checks
// periodically.
func (s *Service) notifyWhenFree(ctx context.Context, workerID string) {
	_, _ = s.store.EachShard(ctx, "claim", func(shard int, _ *schema.ShardKeys) *store.Call { return s.notifyWhenFreeCall(shard, workerID) })
}
