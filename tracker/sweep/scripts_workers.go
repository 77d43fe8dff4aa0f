package sweep

import (
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

func (s *scripts) workerPeekCall(shards []int) *store.Call {
	var keys []string
	for _, shard := range shards {
		k := s.keys[shard]
		keys = append(keys, k.Clock, k.WorkerBeats, k.WorkerDue, k.Recoveries, k.Sweepers)
	}
	return store.NewCall(shards[0], s.workerPeek, keys)
}

// workerDues is when the first entry of each worker set of a shard is due.
type workerDues struct {
	time     int64 // shard time, ms
	check    int64 // next check of a worker, in shard time, ms
	due      int64 // wall ms
	recovery int64 // wall ms
	sweepers []string
}

func readWorkerPeek(r store.Reply) workerDues {
	return workerDues{time: r.Int(0), check: r.Int(1), due: r.Int(2), recovery: r.Int(3), sweepers: r.List(4).Strings()}
}

// workerExpireCall checks workers of one shard whose keys are resolved.
func (s *scripts) workerExpireCall(by sweeperID, o *Options, workers []dueWorker) *store.Call {
	shard := workers[0].ref.Shard
	k := s.keys[shard]
	keys := append(slices.Clone(k.OfWorkers), k.Flapping)
	args := []any{string(by), model.Millis(o.Retention), len(s.keys), schema.Flag(o.Probe != nil), model.FlappingThreshold}
	for _, w := range workers {
		keys = k.OfWorker(keys, w.ref)
		args = append(args, w.ref.Scope.String(), w.ref.ID, schema.Flag(!w.waits))
	}
	return store.NewCall(shard, s.workerExpire, keys, args...)
}

// expired is the result of the check of a due worker.
type expired struct {
	late, stale bool // neither: there was nothing to do
	lag         time.Duration
	machine     string
	probeURL    string    // of a late one; empty: it is not to be probed
	lastSeen    time.Time // zero: no heartbeat is recorded
	// Whether they flap.
	workerFlaps, machineFlaps bool
	queue                     string
}

func readWorkerExpire(r store.Reply) []expired {
	const each = 7
	all := make([]expired, len(r)/each)
	for i := range all {
		at := each * i
		all[i] = expired{
			late: r.Int(at) == 1, stale: r.Int(at) == 2, lag: time.Duration(r.Int(at+1)) * time.Millisecond,
			machine: r.Str(at + 2), probeURL: r.Str(at + 3), lastSeen: schema.ParseMillis(r.Str(at + 4)),
			workerFlaps: strings.Contains(r.Str(at+5), "w"), machineFlaps: strings.Contains(r.Str(at+5), "m"),
			queue: r.Str(at + 6),
		}
	}
	return all
}

// workerDueCall handles workers of one shard whose keys are resolved; again is the time until the next check of a drain.
func (s *scripts) workerDueCall(retention, again time.Duration, workers []dueWorker, drains map[*schema.WorkerRef]drain) *store.Call {
	shard := workers[0].ref.Shard
	k := s.keys[shard]
	keys, args := slices.Clone(k.OfWorkers), []any{model.Millis(retention), len(s.keys), model.Millis(again)}
	for _, w := range workers {
		keys = k.OfWorker(keys, w.ref)
		d := drains[w.ref]
		args = append(args, w.ref.Scope.String(), w.ref.ID, w.entry, d.began, schema.Flag(d.empty))
	}
	return store.NewCall(shard, s.workerDue, keys, args...)
}

// workerTaken is what was done with a due worker.
type workerTaken struct{ offline, removed bool }

func readWorkerDue(r store.Reply) []workerTaken {
	all := make([]workerTaken, len(r)/2)
	for i := range all {
		all[i] = workerTaken{offline: r.Int(2*i) == 1, removed: r.Int(2*i) == 2}
	}
	return all
}

// workerDrainsCall reads the drains of workers of one shard.
func (s *scripts) workerDrainsCall(workers []*schema.WorkerRef) *store.Call {
	k := s.keys[workers[0].Shard]
	var keys []string
	for _, r := range workers {
		name := schema.TaskName(r.Scope, r.ID)
		keys = append(keys, k.Worker(name), k.Reserved(name))
	}
	return store.NewCall(workers[0].Shard, s.workerDrains, keys)
}

// readWorkerDrains returns when the drain of each worker began, wall ms; "": it does not drain, or a claim is in progress.
func readWorkerDrains(r store.Reply) []string { return r.Strings() }

// workerProbedCall records the response to a probe of a worker with these keys.
func (s *scripts) workerProbedCall(r *schema.WorkerRef, keys []string) *store.Call {
	return store.NewCall(r.Shard, s.workerProbed, keys, r.Scope.String(), r.ID)
}

// repinCall assigns a task with these keys to a worker.
func (s *scripts) repinCall(r *schema.TaskRef, keys []string, worker string) *store.Call {
	return store.NewCall(r.Shard, s.repin, append(keys, s.keys[r.Shard].Fences), r.Scope.String(), r.ID, worker)
}
