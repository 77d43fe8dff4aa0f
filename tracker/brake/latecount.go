package brake

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/store"
)

// While balancers may keep clients from the replicas, empty beats slow shard time down (lua/lib/cutoff.lua). Such a balancer makes
// many members late at once, so time need not be slowed where only a few are late: it runs as long as at most one in fewLate
// members of each heartbeat timeout, and of the workers, has been silent for half of its timeout. With fewer members than that
// none may be late, since in a small deployment a late one may be the one that is cut off. Half a timeout is at least an interval,
// so a member that is late when time is slowed can still send a heartbeat before its timeout.
const (
	fewLate  = 50
	lateFrom = 50 // percent of its timeout after which a member counts as late
)

// noTimeout is the timeout of tasks that stay alive by their worker's heartbeats.
const noTimeout = "0"

// FewLate reports whether only a few members are late in these shards of one node, which are counted together. It reports false if
// they cannot be counted.
func (b *Brake) FewLate(ctx context.Context, n *store.Node, shards []int) bool {
	calls, timeouts := make([]*store.Call, len(shards)), make([][]string, len(shards))
	for i, shard := range shards {
		timeouts[i] = b.timeouts.Of(shard)
		calls[i] = b.service.scripts.censusCall(shard, lateFrom, timeouts[i], nil)
	}
	if b.service.store.Exec(ctx, n, calls); store.FirstError(calls) != nil {
		return false
	}
	members := map[string]headcount{} // by timeout; workers are under noTimeout
	for i, c := range calls {
		is := readCensus(c.Reply)
		if len(is.timeouts) > len(timeouts[i])+1 { // one that this sweeper does not know yet, in addition to the sentinel
			return false
		}
		members[noTimeout] = members[noTimeout].plus(is.workers)
		for j, timeout := range timeouts[i] {
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
