package workers

import (
	"strconv"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// beatCall records a worker's heartbeat (worker_beat.lua); interval is the time to its next one.
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
	status        model.WorkerStatus // OFFLINE: it has ended, and this reports its drain
	drainDeadline time.Time          // zero: none
	interval      time.Duration
	timeout       time.Duration
	notices       []string
	inventory     string             // its number; "": none, or older than the last one
	silent        time.Duration      // since the previous heartbeat
	limit         time.Duration      // its timeout until now; 0: no previous heartbeat is recorded
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

// action is the operation of worker_status.lua and machine_drain.lua.
type action string

const (
	drain  action = "drain"
	resume action = "resume"
	retire action = "retire"
)

// statusArgs are the arguments of worker_status.lua in addition to the worker.
type statusArgs struct {
	action      action
	end         model.WorkerReason // for a retired worker
	deadline    time.Duration      // of the drain, from now; 0: none
	bySelf      bool               // the worker requested it itself
	loss        bool               // what it holds counts as lost
	reason      string             // the reason from the request
	withMachine bool               // it is part of its machine's drain or resume
	silentFor   time.Duration      // retire only if it has been silent for this long; 0: in any case
	hold        bool               // a retired worker is held offline
}

// statusCall drains a worker, undoes a drain or a hold, or ends the worker at once (worker_status.lua).
func (s *scripts) statusCall(r *schema.WorkerRef, a statusArgs) *store.Call {
	return store.NewCall(r.Shard, s.status, s.keysWithHold(r),
		r.Scope.String(), r.ID, string(a.action), string(a.end), millisOrEmpty(a.deadline), schema.Flag(a.bySelf),
		s.store.Shards(), model.Millis(s.opts.OfflineRetention), schema.Flag(a.loss), a.reason, jsonOrNull(a.reason),
		schema.Flag(a.withMachine), millisOrEmpty(a.silentFor), schema.Flag(a.hold))
}

// cordonCall cordons or uncordons a worker (worker_cordon.lua), with the reason from the request.
func (s *scripts) cordonCall(r *schema.WorkerRef, on bool, reason string) *store.Call {
	return store.NewCall(r.Shard, s.cordon, s.Keys(r), r.Scope.String(), r.ID, schema.Flag(on), jsonOrNull(reason))
}

// statusReply is the reply of worker_status.lua and worker_cordon.lua.
type statusReply struct {
	code   int64
	reason model.WorkerReason // of a worker that is OFFLINE
}

func readStatus(re store.Reply) statusReply {
	return statusReply{code: re.Int(0), reason: model.WorkerReason(re.Str(2))}
}

// machineDrainCall drains a machine, holds it offline or undoes both, without its workers (machine_drain.lua).
func (s *scripts) machineDrainCall(scope model.Scope, id string, a action, d Drain) *store.Call {
	shard := s.store.MachineShard(scope, id)
	k := s.store.Keys[shard]
	return store.NewCall(shard, s.machineDrain, append(append([]string(nil), k.OfWorkers...), machineKeys(k, scope, id)...),
		scope.String(), id, string(a), millisOrEmpty(d.Deadline), d.Reason, jsonOrNull(d.Reason))
}

// readMachineDrain reports whether the machine exists.
func readMachineDrain(re store.Reply) bool { return re.Int(0) != schema.CodeNotFound }

// millisOrEmpty encodes an optional time for scripts.
func millisOrEmpty(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return strconv.FormatInt(model.Millis(d), 10)
}
