package brake

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/store"
)

// While balancers may keep clients from the replicas, empty beats slow shard time down (lua/lib/cutoff.lua). A balancer that does so
// makes many members late together, so where only a few are late time need not be slowed: it runs as long as, of each heartbeat timeout
// and of the workers, at most one in fewLate has been silent for half of its timeout. With fewer members than that none may be late: in a
// small deployment a late one may be the one that is cut off. Half a timeout is at least an interval, so a member that is late when time is
// slowed can still beat before its timeout.
const (
	fewLate  = 50
	lateFrom = 50 // percent of its timeout from which on a member counts as late
)

// noTimeout is the timeout of tasks whose worker beats for them.
const noTimeout = "0"

// FewLate reports whether only a few members are late in these shards of one node, which are counted together. It reports false when
// they cannot be counted.
func (b *Brake) FewLate(ctx context.Context, n *store.Node, shards []int) bool {
	calls, asked := make([]*store.Call, len(shards)), make([][]string, len(shards))
	for i, shard := range shards {
		asked[i] = b.timeouts.Of(shard)
		calls[i] = b.service.scripts.censusCall(shard, lateFrom, asked[i], nil)
	}
	if b.service.store.Exec(ctx, n, calls); store.FirstError(calls) != nil {
		return false
	}
	members := map[string]headcount{} // by timeout, and of workers by noTimeout
	for i, c := range calls {
		is := readCensus(c.Reply)
		if len(is.timeouts) > len(asked[i])+1 { // one that this sweeper does not know yet, besides the sentinel
			return false
		}
		members[noTimeout] = members[noTimeout].plus(is.workers)
		for j, timeout := range asked[i] {
			if timeout != noTimeout {
				members[timeout] = members[timeout].plus(is.attempts[j])
			}
		}
	}
	for _, h := range members {
		if h.silent > h.live/fewLate {
			return false
		}
	}
	return true
}

func (h headcount) plus(more headcount) headcount {
	return headcount{live: h.live + more.live, silent: h.silent + more.silent}
}
