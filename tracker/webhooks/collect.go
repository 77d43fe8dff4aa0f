package webhooks

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// collect puts the events in shards of a node into the queues of the webhooks that subscribe to them, and only then records that they
// were taken: if the process dies in between, the next one repeats it, and the queues recognise repeated messages. It reports whether
// there is more to collect.
func (c *Courier) collect(ctx context.Context, n *store.Node, mine map[int]peekReply) (more bool, err error) {
	s := c.service
	byScope, total, err := c.known.targets(ctx, s, mine)
	if err != nil {
		return false, err
	}
	var taken []*store.Call
	if total == 0 {
		for shard, l := range mine {
			taken = append(taken, s.takenCall(shard, l, events.Position{}, true))
		}
		s.store.Exec(ctx, n, taken)
		return false, store.FirstError(taken)
	}
	shards := make([]int, 0, len(mine))
	for shard := range mine {
		shards = append(shards, shard)
	}
	slices.Sort(shards)
	reads, err := s.events.ReadNode(ctx, n, shards, func(shard int) events.Position { return mine[shard].at })
	if err != nil {
		return false, err
	}
	var all []*events.Event
	for i := range reads {
		all = append(all, reads[i].Events...)
	}
	if err := s.events.Resolve(ctx, all); err != nil {
		return false, err
	}
	var pushes []push
	for i := range reads {
		pushes = append(pushes, s.pushes(&reads[i], byScope, c.rereadName(&reads[i]))...)
	}
	for len(pushes) > 0 {
		if pushes, err = s.pushAll(ctx, pushes); err != nil {
			return false, err
		}
	}
	for i := range reads {
		l := &reads[i]
		more = more || l.More
		if l.At != l.From || l.Lost {
			taken = append(taken, s.takenCall(l.Shard, mine[l.Shard], l.At, false))
		}
		if k := len(l.Events); k > 0 {
			s.metrics.collected.Set(time.Since(time.UnixMilli(l.Events[k-1].Ms)).Seconds())
		}
	}
	s.store.Exec(ctx, n, taken)
	for _, call := range taken {
		if call.Err == nil && readCode(call.Reply) == 1 {
			c.endReread(call.Shard)
		}
	}
	return more, store.FirstError(taken)
}

// rereadName returns a name for a look that reads a shard from its beginning, since IDs then do not show what queues have received. The
// name stays the same until the look is recorded as taken, so that a look which is repeated, because some queue was out of reach, adds
// nothing to the other queues twice. "": the shard is read on.
func (c *Courier) rereadName(l *events.ShardRead) string {
	if !l.Lost && !l.From.IsStart() {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rereads[l.Shard] == "" {
		c.rereads[l.Shard] = ulid.Make().String()
	}
	return c.rereads[l.Shard]
}

func (c *Courier) endReread(shard int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.rereads, shard)
}

// push is a call that adds messages to a webhook's queue.
type push struct {
	to       hookRef
	args     pushArgs
	messages []message
}

// pushes returns the calls that add the events of one look to queues, one for each webhook. Their script skips messages of an earlier
// call, so two calls for the same shard and webhook must not run concurrently.
func (s *Service) pushes(l *events.ShardRead, byScope map[model.Scope][]*target, reread string) (all []push) {
	if len(l.Events) == 0 {
		return nil
	}
	messages, order := map[*target][]message{}, []*target{}
	add := func(t *target, m message) {
		if messages[t] == nil {
			order = append(order, t)
		}
		messages[t] = append(messages[t], m)
	}
	if l.Gap != nil {
		s.metrics.gaps.Inc()
		s.log.Warn("events were dropped before webhooks had received them; the webhooks receive a gap", "shard", l.Shard,
			"from", l.Gap.From, "to", l.Gap.To)
		for scope, targets := range byScope {
			for _, t := range targets {
				if t.sinceMs <= l.Gap.To.UnixMilli() {
					add(t, trimmedGap(scope, t.id, t.suffix, l.Events[0], l.Gap))
				}
			}
		}
	}
	for _, e := range l.Events {
		for _, t := range byScope[e.Scope] {
			if e.Ms >= t.sinceMs && t.filter.Match(e) {
				add(t, messageOf(e, t.suffix))
			}
		}
	}
	last := l.Events[len(l.Events)-1]
	for _, t := range order {
		args := pushArgs{shard: strconv.Itoa(l.Shard), last: last.At.ID(), reread: reread, most: t.most}
		all = append(all, push{t.hookRef, args, messages[t]})
	}
	return all
}

// pushAll adds messages to queues. It returns the calls to repeat, since more must be dropped for them than one call may drop, or the
// first error.
func (s *Service) pushAll(ctx context.Context, all []push) (again []push, err error) {
	calls := store.CallEach(all, func(p push) *store.Call { return s.pushCall(p.to, p.args, p.messages) })
	s.store.DoDurably(ctx, "webhooks", calls...)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	for i, c := range calls {
		if reply := readPush(c.Reply); s.countPushed(reply) && reply.again {
			again = append(again, all[i])
		}
	}
	return again, nil
}

// countPushed counts the result of a push; false: the webhook is off, deleted or full.
func (s *Service) countPushed(reply pushReply) bool {
	s.metrics.taken.Add(float64(reply.put))
	s.metrics.dropped.Add(float64(reply.dropped))
	return reply.code == schema.CodeOK
}
