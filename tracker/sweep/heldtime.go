package sweep

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/store"
)

// While balancers may keep clients from the replicas, empty beats slow shard time down (lua/lib/cutoff.lua). A balancer that does so
// makes many members late together, so where only a few are late time need not be slowed: it runs as long as, of each heartbeat timeout
// and of the workers, at most one in fewLate has been silent for half of its timeout. Of fewer members than that none may be late: in a
// small deployment one that is late may be the one that is cut off. Half a timeout is at least an interval, so whoever is late when time is
// slowed can still beat before it is over.
const (
	fewLate     = 50
	lateFrom    = 50 // percent of its timeout from which on a member counts as late
	byItsWorker = "0"
)

func (h headcount) few() bool { return h.silent <= h.live/fewLate }

// releaseTime has the time of shards run at full speed where only a few are late. All shards of the node are counted together. What fails
// leaves time as slow as it was.
func (t *taskSweep) releaseTime(ctx context.Context, n *store.Node, held []int) {
	if len(held) == 0 {
		return
	}
	counts, release := make([]*store.Call, len(held)), make([]*store.Call, len(held))
	asked := make([][]string, len(held))
	for i, shard := range held {
		asked[i] = t.timeouts.of(shard)
		counts[i] = t.service.scripts.censusCall(shard, lateFrom, asked[i], nil)
		release[i] = t.service.beats.AllButFewBeatCall(shard)
	}
	if t.service.exec(ctx, n, counts) != nil {
		return
	}
	members := map[string]headcount{} // by timeout, and of workers by byItsWorker
	for i, c := range counts {
		is := readCensus(c.Reply)
		if len(is.timeouts) > len(asked[i])+1 { // one that this sweeper does not know yet, besides the sentinel
			return
		}
		members[byItsWorker] = members[byItsWorker].plus(is.workers)
		for j, timeout := range asked[i] {
			if timeout != byItsWorker {
				members[timeout] = members[timeout].plus(is.attempts[j])
			}
		}
	}
	for _, h := range members {
		if !h.few() {
			return
		}
	}
	_ = t.service.exec(ctx, n, release)
}

func (h headcount) plus(more headcount) headcount {
	return headcount{live: h.live + more.live, silent: h.silent + more.silent}
}
