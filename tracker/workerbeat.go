package tracker

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// WorkerBeat is one heartbeat of a worker, which keeps all alive that it holds.
type WorkerBeat struct {
	Active         *int   // nil: not said
	Seq            *int64 // rises with each beat that carries deltas; required with them
	CompletedDelta int64
	FailedDelta    int64
	Deltas         bool            // deltas were sent, though perhaps 0
	Inventory      []InventoryItem // all the attempts that it has; nil: it does not list them
}

// MaxDelta bounds what one beat may add to a total.
const MaxDelta = 1 << 40

// Validate checks what can be judged without the store.
func (b *WorkerBeat) Validate() error {
	switch {
	case b.Active != nil && (*b.Active < 0 || *b.Active > MaxMaxConcurrent):
		return invalid("activeCount", "is %d; use 0 to %d", *b.Active, MaxMaxConcurrent)
	case b.Seq != nil && (*b.Seq < 0 || *b.Seq > 1<<53):
		return invalid("seq", "is %d; use 0 to 2^53, rising from beat to beat", *b.Seq)
	case b.CompletedDelta < 0 || b.CompletedDelta > MaxDelta:
		return invalid("completedDelta", "is %d; send how many were completed since the last beat that was answered, 0 or more", b.CompletedDelta)
	case b.FailedDelta < 0 || b.FailedDelta > MaxDelta:
		return invalid("failedDelta", "is %d; send how many failed since the last beat that was answered, 0 or more", b.FailedDelta)
	case b.Seq == nil && (b.Deltas || b.CompletedDelta != 0 || b.FailedDelta != 0):
		return invalid("seq", "is missing; with completedDelta or failedDelta it is required, so that a repeated beat adds nothing twice")
	}
	return nil
}

// WorkerHeard is the answer to a worker's beat.
type WorkerHeard struct {
	At            time.Time
	ShouldDrain   bool
	Ended         bool      // its drain is over, and it is told so as one that drains: no beat of its is heard any more
	DrainDeadline time.Time // zero: none
	Interval      time.Duration
	Timeout       time.Duration
	Cancels       []TaskNotice // attempts to stop gracefully
	Lost          []TaskNotice // attempts that are not its own any more

	scope     Scope
	worker    string
	inventory string     // number of its inventory; "": none, or one that is older than another
	entries   []string   // word that is repeated until Notified
	cancelled []*Attempt // those of Cancels
	told      map[toldOf]bool
}

// toldOf is one thing that a worker is told about an attempt, once.
type toldOf struct {
	attempt OwnedAttempt
	lost    bool // else it is to be cancelled
}

// moreInInventory is how many attempts a worker may list beyond what it may hold: those that ended without its knowing.
const moreInInventory = 1000

// Codes of refusals about workers.
const (
	WorkerOffline  Code = "worker_offline"  // it is gone for good; Message says why
	WorkerDraining Code = "worker_draining" // it gets no new tasks
)

// BeatWorker lands a worker's beat.
func (t *Tracker) BeatWorker(ctx context.Context, scope Scope, id string, b WorkerBeat) (*WorkerHeard, error) {
	t = t.within(ctx, 0)
	h, err := t.hearWorker(scope, id, b)
	if err == nil && b.Inventory != nil {
		err = t.takeInventory(h, b.Inventory)
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// hearWorker hears the beat but for its inventory.
func (t *Tracker) hearWorker(scope Scope, id string, b WorkerBeat) (*WorkerHeard, error) {
	r, ok := t.workerRef(scope, id)
	if !ok {
		return nil, workerNotFound("worker beat")
	}
	k := t.store.keys[r.shard]
	active, seq := "", ""
	if b.Active != nil {
		active = fmt.Sprint(*b.Active)
	}
	if b.Seq != nil {
		seq = fmt.Sprint(*b.Seq)
	}
	if t.pace.due(time.Now()) {
		t.background.Go(t.store.guard("counting workers", t.root.countWorkers))
	}
	interval, lists := t.pace.interval(), ""
	if b.Inventory != nil {
		lists = strconv.Itoa(len(b.Inventory))
	}
	c := newCall(r.shard, t.store.scripts.Get("worker_beat"), []string{k.clock, k.workerBeats, k.worker(taskName(scope, id)), k.notices(taskName(scope, id))},
		scope.String(), id, active, seq, b.CompletedDelta, b.FailedDelta, ms(interval), t.opts.WorkerTimeoutMultiplier, lists, moreInInventory)
	re, err := t.store.doVital("worker beat", c)
	t.keeper.heard(r.shard, 1, err)
	if err != nil {
		return nil, err
	}
	if re.int(0) == codeRefused {
		return nil, invalid("tasks", "has %d entries; a worker of maxConcurrent %d may list %d, so many as it may hold and some that have ended meanwhile: list each attempt that it has once",
			len(b.Inventory), re.int(2), re.int(2)+moreInInventory)
	}
	if err := workerRefusal("worker beat", re.int(0), WorkerReason(re.str(2))); err != nil {
		return nil, err
	}
	status := statusOf(re.str(2))
	h := &WorkerHeard{
		scope: scope, worker: id, inventory: re.str(7),
		At: re.time(1), ShouldDrain: status != Online, Ended: status == Offline, DrainDeadline: parseMs(re.str(3)),
		Interval: t.pace.jitter(time.Duration(re.int(4)) * time.Millisecond), Timeout: time.Duration(re.int(5)) * time.Millisecond,
	}
	h.hear(t, re.list(6).strings())
	return h, nil
}

// workerRefusal is the error of what a script about a worker answered, nil for its success.
func workerRefusal(op string, code int64, reason WorkerReason) error {
	switch code {
	case codeOK, codeRepeated:
		return nil
	case codeNotFound:
		return workerNotFound(op)
	case codeOffline:
		return &Error{Code: WorkerOffline, Op: op, Reason: Reason(reason), Message: offlineMessage(reason)}
	case codeDraining:
		return &Error{Code: WorkerDraining, Op: op, Message: "the worker is draining and gets no new tasks; let it finish what it holds and deregister"}
	}
	return &Error{Code: Unavailable, Op: op, Message: "the store gave an answer that this version does not know; are all replicas of one version?"}
}

func offlineMessage(r WorkerReason) string {
	switch r {
	case WorkerStale:
		return "the worker was silent for its timeout and is OFFLINE; stop its tasks, which others may run by now, and register again, with a registrationId of its own"
	case WorkerSuperseded:
		return "another worker with the same queue, machine, name, hostname and pid has registered and takes its place; stop this one, or, where both are to run, " + ownIdentity
	case WorkerDrained, WorkerDrainDeadline:
		return "the worker was drained and is OFFLINE; stop it, and register again only when it should work again"
	case WorkerForced:
		return "an operator has taken the worker OFFLINE; stop it, and register again only when it should work again"
	}
	return "the worker is OFFLINE; register again, with a registrationId of its own"
}
