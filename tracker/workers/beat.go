package workers

import (
	"context"
	"slices"

	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// WorkerBeat is one heartbeat of a worker, which keeps everything alive that it holds.
type WorkerBeat struct {
	Active         *int   // nil: not sent
	Seq            *int64 // rises with each heartbeat that includes deltas; required with them
	CompletedDelta int64
	FailedDelta    int64
	Deltas         bool                     // deltas were sent, possibly 0
	Inventory      []holdings.InventoryItem // all the attempts that it has; nil: not sent
	Progress       []holdings.InventoryItem // of some of its attempts, which need not be in the inventory
}

// MaxDelta bounds what one heartbeat may add to a total.
const MaxDelta = 1 << 40

// Validate checks what can be checked without the store.
func (b *WorkerBeat) Validate() error {
	switch {
	case b.Active != nil && (*b.Active < 0 || *b.Active > model.MaxMaxConcurrent):
		return model.Invalidf("activeCount", "is %d; use 0 to %d", *b.Active, model.MaxMaxConcurrent)
	case b.Seq != nil && (*b.Seq < 0 || *b.Seq > 1<<53):
		return model.Invalidf("seq", "is %d; use 0 to 2^53, rising from beat to beat", *b.Seq)
	case b.CompletedDelta < 0 || b.CompletedDelta > MaxDelta:
		return model.Invalidf("completedDelta", "is %d; send how many were completed since the last beat that was answered, 0 or more",
			b.CompletedDelta)
	case b.FailedDelta < 0 || b.FailedDelta > MaxDelta:
		return model.Invalidf("failedDelta", "is %d; send how many failed since the last beat that was answered, 0 or more", b.FailedDelta)
	case b.Seq == nil && (b.Deltas || b.CompletedDelta != 0 || b.FailedDelta != 0):
		return model.Invalidf("seq",
			"is missing; with completedDelta or failedDelta it is required, so that a repeated beat adds nothing twice")
	}
	return nil
}

// moreInInventory is how many attempts a worker may list beyond what it may hold, for attempts that ended without its knowledge.
const moreInInventory = 1000

// Codes of refusals about workers.
const (
	WorkerOffline  model.Code = "worker_offline"      // it has ended for good; Message has the reason
	WorkerDraining model.Code = "worker_draining"     // it gets no new tasks
	WorkerHeld     model.Code = "worker_held_offline" // its registration is refused until an operator lifts the hold
)

// Beat stores a worker's heartbeat.
func (s *registrar) Beat(ctx context.Context, scope model.Scope, id string, b WorkerBeat) (*holdings.WorkerBeatResponse, error) {
	ctx = s.store.Within(ctx, 0)
	h, err := s.storeBeat(ctx, scope, id, b)
	if reported := slices.Concat(b.Progress, b.Inventory); err == nil && (b.Inventory != nil || len(reported) > 0) {
		err = s.holdings.TakeInventory(ctx, h, reported)
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// storeBeat processes the heartbeat except for its inventory.
func (s *registrar) storeBeat(ctx context.Context, scope model.Scope, id string, b WorkerBeat) (*holdings.WorkerBeatResponse, error) {
	const op = "worker beat"
	r, ok := s.store.WorkerRef(scope, id)
	if !ok {
		return nil, NoWorker(op)
	}
	reply, err := s.store.DoVital(ctx, op, s.scripts.beatCall(r, &b, s.opts.Interval))
	s.beats.RecordResult(r.Shard, 1, err)
	if err != nil {
		return nil, err
	}
	re := readBeat(reply)
	if re.code == schema.CodeRefused {
		return nil, model.Invalidf("tasks", "has %d entries; a worker of maxConcurrent %d may list at most %d "+
			"(what it may hold, and some that may have ended meanwhile); list each attempt only once",
			len(b.Inventory), re.maxConcurrent, re.maxConcurrent+moreInInventory)
	}
	if err := WorkerRefusal(op, re.code, re.reason); err != nil {
		return nil, err
	}
	if re.limit > 0 {
		s.beats.WorkerGap(re.silent, re.limit)
	}
	h := &holdings.WorkerBeatResponse{
		Scope: scope, Worker: id, Inventory: re.inventory,
		At: re.at, ShouldDrain: re.status != model.Online, Ended: re.status == model.Offline, DrainDeadline: re.drainDeadline,
		Interval: re.interval, Timeout: re.timeout,
	}
	s.holdings.AddNotices(h, re.notices)
	return h, nil
}

// WorkerRefusal returns the error for the reply code of a script about a worker, nil for success.
func WorkerRefusal(op string, code int64, reason model.WorkerReason) error {
	switch code {
	case schema.CodeOK, schema.CodeRepeated:
		return nil
	case schema.CodeNotFound:
		return NoWorker(op)
	case schema.CodeOffline:
		return &model.Error{Code: WorkerOffline, Op: op, Reason: model.Reason(reason), Message: offlineMessage(reason)}
	case schema.CodeDraining:
		return &model.Error{Code: WorkerDraining, Op: op,
			Message: "the worker is draining and gets no new tasks; let it finish what it holds and deregister"}
	}
	return &model.Error{Code: model.Unavailable, Op: op,
		Message: "the store gave an answer that this version does not know; are all replicas of one version?"}
}

// offlineMessage explains why a worker is OFFLINE and what to do.
func offlineMessage(r model.WorkerReason) string {
	switch r {
	case model.WorkerStale:
		return "the worker was silent for its timeout and is OFFLINE; stop its tasks, which others may run by now, " +
			"and register again, with a new registrationId"
	case model.WorkerSuperseded:
		return "another worker with the same queue, machine, name, hostname and pid has registered and takes its place; " +
			"stop this one, or, where both are to run, " + ownIdentity
	case model.WorkerDrained, model.WorkerDrainDeadline:
		return "the worker was drained and is OFFLINE; stop it, and register again only when it should work again"
	case model.WorkerForced:
		return "an operator has taken the worker OFFLINE and holds it so; stop it: its registrations are refused until an operator " +
			"resumes it (`lubdub worker resume`), or its machine where that was taken offline (`lubdub machine resume`)"
	}
	return "the worker is OFFLINE; register again, with a new registrationId"
}
