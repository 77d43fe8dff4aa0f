package webhooks

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

const (
	// repairDeliveries is how many deliveries one script looks at where something is wrong with those of a webhook.
	repairDeliveries = 50
	// repairSteps is for how many such scripts one look at a webhook goes on.
	repairSteps = 200
)

// Repair holds entries that name webhooks of a shard against their records, and these against all that must know of them. It
// counts what was repaired.
func (s *Service) Repair(ctx context.Context, shard int, entries []string) (map[string]int, error) {
	repairs := map[string]int{}
	for _, name := range entries {
		scope, id, ok := schema.SplitName(name)
		if !ok || s.store.ShardOf(scope, id) != shard {
			continue
		}
		r, from := s.ref(scope, id), ""
		for range repairSteps {
			c := s.repairCall(r, from)
			if s.store.DoBulk(ctx, "reconcile", []*store.Call{c}); c.Err != nil {
				return repairs, c.Err
			}
			done, next := readRepair(c.Reply)
			for _, what := range done {
				repairs[what]++
			}
			if from = next; from == "" {
				break
			}
		}
	}
	return repairs, nil
}

// resume has events be taken again in shards of a node where that is not recorded though there are webhooks: whoever made the
// first one has died before it was told everywhere, or the store has lost it.
func (c *Courier) resume(ctx context.Context, n *store.Node, shards []int) (begun bool, err error) {
	s := c.service
	if total, err := c.known.count(ctx, s); err != nil || total == 0 {
		return false, nil // what cannot be counted now, since some other node is away, is counted later
	}
	calls := store.CallEach(shards, s.resumeCall)
	s.store.Exec(ctx, n, calls)
	for _, call := range calls {
		if call.Err == nil && readCode(call.Reply) == 1 {
			begun = true
			s.log.Warn("what happens was not taken for webhooks; it is now, from the first event that is kept", "shard", call.Shard)
		}
	}
	return begun, store.FirstError(calls)
}
