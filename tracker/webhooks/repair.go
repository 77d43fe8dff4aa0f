package webhooks

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

const (
	// repairDeliveries is how many deliveries one script checks when those of a webhook are inconsistent.
	repairDeliveries = 50
	// repairSteps is the largest number of such scripts for one webhook at a time.
	repairSteps = 200
)

// Repair compares entries for webhooks of a shard with their records, and the records with everything that must refer to them. It returns
// how many repairs of each kind it made, and the first error.
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

// resume restarts collection in shards of a node where it is not recorded although there are webhooks: the process that created the first
// one died before it had notified every shard, or the store has lost the record.
func (c *Courier) resume(ctx context.Context, n *store.Node, shards []int) (begun bool, err error) {
	s := c.service
	if total, err := c.known.count(ctx, s); err != nil || total == 0 {
		return false, nil // when another node is down, the count is repeated later
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
