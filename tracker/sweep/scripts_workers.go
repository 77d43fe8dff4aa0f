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

// workerDues is when what stands first in the sets of a shard's workers is due.
type workerDues struct {
	time     int64 // shard time, ms
	look     int64 // check of a worker, in shard time, ms
	due      int64 // wall ms
	recovery int64 // wall ms
	sweepers []string
}

func readWorkerPeek(r store.Reply) workerDues {
	return workerDues{time: r.Int(0), look: r.Int(1), due: r.Int(2), recovery: r.Int(3), sweepers: r.List(4).Strings()}
}

// workerExpireCall is about workers of one shard whose keys are resolved.
func (s *scripts) workerExpireCall(by sweeperID, o *Options, workers []dueWorker) *store.Call {
	shard := workers[0].ref.Shard
	k := s.keys[shard]
	keys := append(slices.Clone(k.OfWorkers), k.Flapping)
	args := []any{string(by), model.Millis(o.Retention), len(s.keys), schema.Flag(o.Probe != nil), o.FlappingThreshold}
	for _, w := range workers {
		keys = k.OfWorker(keys, w.ref)
		args = append(args, w.ref.Scope.String(), w.ref.ID, schema.Flag(!w.waits))
	}
	return store.NewCall(shard, s.workerExpire, keys, args...)
}

// expired is what was found of a worker that was due for a check.
type expired struct {
	late, stale bool // now; neither: there was nothing to do
	lag         time.Duration
	machine     string
	probeURL    string    // of a late one; empty: it is not to be asked
	lastSeen    time.Time // zero: no beat is on record
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

// workerDueCall is for workers of one shard whose keys are resolved; again is until a drain is checked again.
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

// workerTaken is what became of a worker for which something was due.
type workerTaken struct{ offline, removed bool }

func readWorkerDue(r store.Reply) []workerTaken {
	all := make([]workerTaken, len(r)/2)
	for i := range all {
		all[i] = workerTaken{offline: r.Int(2*i) == 1, removed: r.Int(2*i) == 2}
	}
	return all
}

// workerDrainsCall is about workers of one shard.
func (s *scripts) workerDrainsCall(workers []*schema.WorkerRef) *store.Call {
	k := s.keys[workers[0].Shard]
	var keys []string
	for _, r := range workers {
		name := schema.TaskName(r.Scope, r.ID)
		keys = append(keys, k.Worker(name), k.Reserved(name))
	}
	return store.NewCall(workers[0].Shard, s.workerDrains, keys)
}

// readWorkerDrains returns of each worker when its drain began, wall ms; "": it does not drain, or a claim is under way.
func readWorkerDrains(r store.Reply) []string { return r.Strings() }

// workerProbedCall is about a worker whose keys are these.
func (s *scripts) workerProbedCall(r *schema.WorkerRef, keys []string) *store.Call {
	return store.NewCall(r.Shard, s.workerProbed, keys, r.Scope.String(), r.ID)
}

// repinCall is for a task whose keys these are.
func (s *scripts) repinCall(r *schema.TaskRef, keys []string, worker string) *store.Call {
	return store.NewCall(r.Shard, s.repin, append(keys, s.keys[r.Shard].Fences), r.Scope.String(), r.ID, worker)
}
