package holdings

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// FenceEverywhere sets a worker's fence in every shard, as the first step of its recovery does.
func (s *Service) FenceEverywhere(scope model.Scope, id string) error {
	_, err := s.store.EachShard(context.Background(), "test", func(shard int, _ *schema.ShardKeys) *store.Call {
		return s.fenceCall(shard, id, 0, true, model.WorkerForced)
	})
	return err
}

// Holding returns the held entry of an attempt that was claimed without an ID and has its own run.
func (s *Service) Holding(a *model.Attempt) string { return a.WorkerID + "/" + a.Member + "/0//" }

// AddLost adds attempts as lost to a worker's response, and returns how many it then contains.
func AddLost(lists ...[]OwnedAttempt) int {
	h := &WorkerBeatResponse{}
	for _, list := range lists {
		for _, n := range list {
			h.lose(TaskNotice{TaskID: n.TaskID, Attempt: n.Number})
		}
	}
	return len(h.Lost)
}

// MaxMissed is how many attempts one inventory can miss.
const MaxMissed = maxMissed

// OpenRecovery is the remaining recovery of a worker.
type OpenRecovery struct {
	Queue  string
	Shards []int
}

// OpenRecoveries reads the recoveries of workers, in one call for each shard.
func (s *Service) OpenRecoveries(scope model.Scope, ids ...string) (open []OpenRecovery, err error) {
	var refs []*schema.WorkerRef
	for _, id := range ids {
		r, _ := s.store.WorkerRef(scope, id)
		refs = append(refs, r)
	}
	found, err := s.ReadRecoveries(context.Background(), "test", "swp_test", refs)
	for _, rec := range found {
		open = append(open, OpenRecovery{rec.queue, rec.shards})
	}
	return open, err
}
