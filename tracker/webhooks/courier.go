package webhooks

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// These determine how couriers share the work.
const (
	lease    = 1500 * time.Millisecond // how long a courier keeps a shard after its last look
	rankWait = 500 * time.Millisecond  // how long a courier of rank r leaves a free shard to those of lower rank, times r
	busyNap  = 50 * time.Millisecond   // between two looks
	idleNap  = time.Second             // while there are no webhooks
	allSlots = 1024                    // concurrent requests in total
)

// Courier collects events into the queues of webhooks, and posts what is due. Any number of couriers may run concurrently: each shard
// belongs to one at a time. If two had the same shard, nothing would be lost, but messages might be sent twice.
type Courier struct {
	service *Service
	who     string
	rank    func(shard int, live []string) int // among sweepers
	known   known
	slots   *slots
	shards  []myShard

	running sync.WaitGroup
	mu      sync.Mutex
	serving map[string]context.CancelFunc // by webhook name: cancels the requests in progress to it
	rereads map[int]string                // by shard: names of readings that are not recorded yet
}

// myShard is a courier's state of a shard.
type myShard struct {
	mine atomic.Bool
	rank atomic.Int32 // below 0: unknown
}

// NewCourier returns a courier for the sweeper with this ID. `rank` returns its rank for a shard among the live sweepers.
func NewCourier(s *Service, id string, rank func(shard int, live []string) int) *Courier {
	c := &Courier{
		service: s, who: id + "." + ulid.Make().String(), rank: rank, slots: newSlots(allSlots, s.metrics.waits),
		shards: make([]myShard, s.store.Shards()), serving: map[string]context.CancelFunc{}, rereads: map[int]string{},
	}
	c.known.loadedAgain = c.endOthers
	for i := range c.shards {
		c.shards[i].rank.Store(-1)
	}
	return c
}

// Run collects and delivers until ctx ends. Work in progress is then left to the next courier.
func (c *Courier) Run(ctx context.Context) {
	defer c.running.Wait()
	st := c.service.store
	st.RunOnEachNode(ctx, store.NodeWork{
		Name: "webhooks", Errors: c.service.metrics.heldUp,
		Round: func(ctx context.Context, n *store.Node) (time.Duration, error) {
			r, err := c.round(ctx, n, st.Settled(n), c.patience)
			switch {
			case err == nil && r.more:
				return 0, nil
			case err == nil && r.idle:
				return idleNap, nil
			}
			return busyNap, err
		},
	})
}

// patience returns for how long a shard must have been free before it is taken; negative: it is neither taken nor kept.
func (c *Courier) patience(shard int) time.Duration {
	my := &c.shards[shard]
	rank := my.rank.Load()
	if rank < 0 || rank > 0 && my.mine.Load() { // a courier of better rank takes it when this one's lease expires
		return -1
	}
	return time.Duration(rank) * rankWait
}

// round is the result of one look at the shards of a node.
type round struct {
	more bool // there is more to collect now
	idle bool // there are no webhooks
}

// round looks at shards of a node, starts serving due webhooks, and collects events.
func (c *Courier) round(ctx context.Context, n *store.Node, shards []int, wait func(shard int) time.Duration) (r round, err error) {
	s := c.service
	groups := s.store.Together(shards)
	calls := store.CallEach(groups, func(group []int) *store.Call { return s.peekCall(c.who, group, wait) })
	mine, untaken := map[int]peekReply{}, []int{}
	r.idle = true
	if err := s.store.ExecEach(ctx, n, calls, groups, func(shard int, _ int64, reply store.Reply) {
		l := readPeek(reply)
		c.shards[shard].mine.Store(l.mine)
		c.shards[shard].rank.Store(int32(c.rank(shard, l.live)))
		if r.idle = r.idle && !l.taken && len(l.due) == 0; !l.mine {
			return
		}
		c.serve(ctx, l.due)
		if l.taken {
			mine[shard] = l
		} else {
			untaken = append(untaken, shard)
		}
	}); err != nil {
		return r, err
	}
	begun, more := false, false
	if len(untaken) > 0 {
		if begun, err = c.resume(ctx, n, untaken); err != nil {
			return r, err
		}
	}
	if len(mine) > 0 {
		more, err = c.collect(ctx, n, mine)
	}
	r.more = begun || more
	return r, err
}

// serve starts serving webhooks, except those that are being served.
func (c *Courier) serve(ctx context.Context, due []string) {
	for _, name := range due {
		scope, id, ok := schema.SplitName(name)
		c.mu.Lock()
		begin := ok && c.serving[name] == nil
		var posting context.Context
		if begin {
			posting, c.serving[name] = context.WithCancel(ctx)
		}
		c.mu.Unlock()
		if begin {
			c.running.Go(c.service.store.Guard("a webhook", func() {
				defer func() {
					c.mu.Lock()
					defer c.mu.Unlock()
					c.serving[name]()
					delete(c.serving, name)
				}()
				c.deliver(ctx, posting, c.service.ref(scope, id))
			}))
		}
	}
}

// endOthers cancels the requests in progress to webhooks that are off or deleted.
func (c *Courier) endOthers(on map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, end := range c.serving {
		if !on[name] {
			end()
		}
	}
}

// Once collects all events and posts everything due, whatever its rank, and returns when no work is in progress. It returns the first
// error.
func (c *Courier) Once(ctx context.Context) error {
	for again := true; again && ctx.Err() == nil; {
		again = false
		for n, shards := range c.service.store.ByNode() {
			r, err := c.round(ctx, n, shards, func(int) time.Duration { return 0 })
			c.running.Wait()
			if err != nil {
				return store.AsUnavailable("webhooks", err)
			}
			again = again || r.more
		}
	}
	for n, shards := range c.service.store.ByNode() { // what was collected last is due now
		_, err := c.round(ctx, n, shards, func(int) time.Duration { return 0 })
		c.running.Wait()
		if err != nil {
			return store.AsUnavailable("webhooks", err)
		}
	}
	return nil
}
