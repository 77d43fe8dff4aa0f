package stats

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// fleetCounts are counts of the workers and machines of all scopes. Only metrics use them.
type fleetCounts struct {
	queues   []queueWorkers
	flapping map[string]int // how many are flapping, by kind: worker, machine
}

// queueWorkers are the workers of a queue.
type queueWorkers struct {
	scope model.Scope
	queue string
	count map[model.WorkerStatus]int // ONLINE and DRAINING
}

const (
	queuesAtOnce = 500    // in one script
	maxQueues    = 10_000 // of all shards together: once that many are counted, no more are read
)

// fleet counts the workers of the queues with the most workers and of the other queues together, and counts what flaps.
func (s *Service) fleet(ctx context.Context, most int) (*fleetCounts, error) {
	calls := make([]*store.Call, len(s.store.Keys))
	for shard := range s.store.Keys {
		calls[shard] = s.flappingCall(shard)
	}
	s.store.DoBulk(ctx, "stats", calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	f := &fleetCounts{flapping: map[string]int{}}
	for _, c := range calls {
		workers, machines := readFlapping(c.Reply)
		f.flapping["worker"] += workers
		f.flapping["machine"] += machines
	}
	all, err := s.workersByQueue(ctx)
	if err != nil {
		return nil, err
	}
	f.queues = bounded(all, most)
	return f, nil
}

// workersByQueue counts the workers of every queue, <scope>/<queue>.
func (s *Service) workersByQueue(ctx context.Context) (map[string]map[model.WorkerStatus]int, error) {
	all, after := map[string]map[model.WorkerStatus]int{}, map[int]string{}
	for shard := range s.store.Keys {
		after[shard] = ""
	}
	for len(after) > 0 && len(all) < maxQueues {
		var calls []*store.Call
		for shard, last := range after {
			calls = append(calls, s.queueWorkersCall(shard, last))
		}
		s.store.DoBulk(ctx, "stats", calls)
		if err := store.FirstError(calls); err != nil {
			return nil, err
		}
		for _, c := range calls {
			last, queues := readQueueWorkers(c.Reply, all)
			if after[c.Shard] = last; queues < queuesAtOnce {
				delete(after, c.Shard)
			}
		}
	}
	return all, nil
}

// bounded returns the queues with the most workers, and all others as one that is named other.
func bounded(all map[string]map[model.WorkerStatus]int, most int) (queues []queueWorkers) {
	names := make([]string, 0, len(all))
	size := func(name string) int { return all[name][model.Online] + all[name][model.Draining] }
	for name := range all {
		if size(name) > 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(size(b)-size(a), strings.Compare(a, b)) })
	for _, name := range names[:min(most, len(names))] {
		scope, queue, _ := schema.SplitName(name)
		queues = append(queues, queueWorkers{scope, queue, all[name]})
	}
	rest := queueWorkers{model.Scope{Tenant: schema.OtherLabel, Workspace: schema.OtherLabel}, schema.OtherLabel, map[model.WorkerStatus]int{}}
	for _, name := range names[min(most, len(names)):] {
		for status, n := range all[name] {
			rest.count[status] += n
		}
	}
	if len(names) > most {
		queues = append(queues, rest)
	}
	return queues
}
