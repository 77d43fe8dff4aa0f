package workers

import (
	"strconv"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// beatCall records a worker's beat (worker_beat.lua); it is to beat at this interval.
func (s *scripts) beatCall(r *schema.WorkerRef, b *WorkerBeat, interval time.Duration) *store.Call {
	k, name, lists := s.store.Keys[r.Shard], schema.TaskName(r.Scope, r.ID), ""
	if b.Inventory != nil {
		lists = strconv.Itoa(len(b.Inventory))
	}
	return store.NewCall(r.Shard, s.beat, []string{k.Clock, k.WorkerBeats, k.Worker(name), k.Notices(name), k.Workers, k.Events},
		r.Scope.String(), r.ID, numberOrEmpty(b.Active), numberOrEmpty(b.Seq), b.CompletedDelta, b.FailedDelta,
		model.Millis(interval), s.opts.TimeoutMultiplier, lists, moreInInventory)
}

type beatReply struct {
	code          int64
	at            time.Time
	status        model.WorkerStatus // OFFLINE: it has ended, and is told of its drain
	drainDeadline time.Time          // zero: none
	interval      time.Duration
	timeout       time.Duration
	notices       []string
	inventory     string             // its number; "": none, or one that is older than the last
	silent        time.Duration      // since the beat before
	limit         time.Duration      // its timeout until now; 0: the beat before is not on record
	reason        model.WorkerReason // of a worker that is OFFLINE
	maxConcurrent int                // of a worker whose inventory is refused
}

func readBeat(re store.Reply) beatReply {
	r := beatReply{code: re.Int(0), at: re.Time(1)}
	switch r.code {
	case schema.CodeOK:
		r.status, r.drainDeadline = model.StatusOf(re.Str(2)), schema.ParseMillis(re.Str(3))
		r.interval, r.timeout = time.Duration(re.Int(4))*time.Millisecond, time.Duration(re.Int(5))*time.Millisecond
		r.notices, r.inventory = re.List(6).Strings(), re.Str(7)
		if re.Str(8) != "" {
			r.silent, r.limit = time.Duration(re.Int(8))*time.Millisecond, time.Duration(re.Int(9))*time.Millisecond
		}
	case schema.CodeRefused:
		r.maxConcurrent = int(re.Int(2))
	default:
		r.reason = model.WorkerReason(re.Str(2))
	}
	return r
}

// action is what worker_status.lua and machine_drain.lua are to do.
type action string

const (
	drain  action = "drain"
	resume action = "resume"
	retire action = "retire"
)

// statusArgs are what worker_status.lua is told besides the worker.
type statusArgs struct {
	action      action
	end         model.WorkerReason // of one that is retired
	deadline    time.Duration      // of the drain, from now; 0: none
	bySelf      bool               // the worker asked for it itself
	loss        bool               // what it holds counts as lost
	given       string             // reason that somebody gave
	withMachine bool               // it is part of its machine's drain, or of the machine's being resumed
	silentFor   time.Duration      // one that is retired must have been, else it is left alone; 0: whatever it was
	hold        bool               // one that is retired is held offline
}

// statusCall drains a worker, takes a drain or a hold back, or ends the worker at once (worker_status.lua).
func (s *scripts) statusCall(r *schema.WorkerRef, a statusArgs) *store.Call {
	return store.NewCall(r.Shard, s.status, s.keysWithHold(r),
		r.Scope.String(), r.ID, string(a.action), string(a.end), millisOrEmpty(a.deadline), schema.Flag(a.bySelf),
		s.store.Shards(), model.Millis(s.opts.OfflineRetention), schema.Flag(a.loss), a.given, jsonOrNull(a.given),
		schema.Flag(a.withMachine), millisOrEmpty(a.silentFor), schema.Flag(a.hold))
}

// cordonCall cordons a worker, or takes that back (worker_cordon.lua), for the reason that somebody gave.
func (s *scripts) cordonCall(r *schema.WorkerRef, on bool, given string) *store.Call {
	return store.NewCall(r.Shard, s.cordon, s.Keys(r), r.Scope.String(), r.ID, schema.Flag(on), jsonOrNull(given))
}

// statusReply is what worker_status.lua and worker_cordon.lua reply.
type statusReply struct {
	code   int64
	reason model.WorkerReason // of a worker that is OFFLINE
}

func readStatus(re store.Reply) statusReply {
	return statusReply{code: re.Int(0), reason: model.WorkerReason(re.Str(2))}
}

// machineDrainCall drains a machine, holds it offline, or takes both back, without its workers (machine_drain.lua).
func (s *scripts) machineDrainCall(scope model.Scope, id string, a action, d Drain) *store.Call {
	shard := s.store.MachineShard(scope, id)
	k := s.store.Keys[shard]
	return store.NewCall(shard, s.machineDrain, append(append([]string(nil), k.OfWorkers...), machineKeys(k, scope, id)...),
		scope.String(), id, string(a), millisOrEmpty(d.Deadline), d.Reason, jsonOrNull(d.Reason))
}

// readMachineDrain reports whether there is such a machine.
func readMachineDrain(re store.Reply) bool { return re.Int(0) != schema.CodeNotFound }

// millisOrEmpty is how scripts are told of a time that may be none.
func millisOrEmpty(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return strconv.FormatInt(model.Millis(d), 10)
}
