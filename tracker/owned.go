package tracker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"
)

// OwnedAttempt names an attempt as a worker does that shows its own token and not the attempt's.
type OwnedAttempt struct {
	TaskID string
	Number int
}

// Owned gives the attempts that were dispatched to the worker, with all that their own tokens would say; nil for any
// other, and for those that the store does not know; AttemptInDoubt when it may have lost them. Whether they are live is
// for the callbacks to judge.
func (t *Tracker) Owned(ctx context.Context, scope Scope, workerID string, names []OwnedAttempt) ([]*Attempt, error) {
	t = t.within(ctx, 0)
	attempts, known, err := t.owned("owned", scope, workerID, names)
	for i, a := range attempts {
		if a == nil && !known[i] && t.keeper.mayHaveLost(t.store.shardOf(scope, names[i].TaskID)) {
			attempts[i] = AttemptInDoubt
		}
	}
	return attempts, err
}

// owned tells besides which of them belong to a task that there is.
func (t *Tracker) owned(op string, scope Scope, workerID string, names []OwnedAttempt) (attempts []*Attempt, known []bool, err error) {
	attempts, known = make([]*Attempt, len(names)), make([]bool, len(names))
	byShard := map[int][]int{}
	first := make(map[OwnedAttempt]int, len(names))
	for i, n := range names {
		if attempts[i] = t.ownedBy.get(scope, workerID, n); attempts[i] != nil {
			known[i] = true
			continue
		}
		if _, asked := first[n]; !asked {
			first[n] = i
			shard := t.store.shardOf(scope, n.TaskID)
			byShard[shard] = append(byShard[shard], i)
		}
	}
	var calls []*call
	var groups [][]int
	for shard, group := range byShard {
		for part := range slices.Chunk(group, ownedLimit) {
			calls = append(calls, t.ownedCall(shard, scope, workerID, names, part))
			groups = append(groups, part)
		}
	}
	t.store.doAll(op, calls)
	for g, c := range calls {
		if c.err != nil {
			return nil, nil, c.err
		}
		for j, i := range groups[g] {
			re := c.reply.list(j)
			known[i] = len(re) > 1 || re.int(0) == 0
			if len(re) > 1 {
				attempts[i] = t.attemptOf(scope, workerID, names[i], re)
				t.ownedBy.put(scope, workerID, names[i], attempts[i])
			}
		}
	}
	for i, n := range names {
		if at, asked := first[n]; asked {
			attempts[i], known[i] = attempts[at], known[at]
		}
	}
	return attempts, known, nil
}

// ownedLimit is how many attempts one script looks up.
const ownedLimit = 50

func (t *Tracker) ownedCall(shard int, scope Scope, workerID string, names []OwnedAttempt, which []int) *call {
	k := t.store.keys[shard]
	keys := make([]string, 0, 2*len(which))
	args := []any{workerID}
	for _, i := range which {
		name := taskName(scope, names[i].TaskID)
		keys = append(keys, k.task(name), k.history(name))
		args = append(args, names[i].Number)
	}
	return newCall(shard, t.store.scripts.Get("owned"), keys, args...)
}

func (t *Tracker) attemptOf(scope Scope, workerID string, n OwnedAttempt, re reply) *Attempt {
	run := re.str(1)
	if run == "" {
		run = runOf(n.TaskID)
	}
	return t.Attempt(Attempt{
		Scope: scope, TaskID: n.TaskID, RunID: run, Number: n.Number, Fence: re.str(0), Timeout: duration(re.str(2), 0),
		Interval: duration(re.str(3), DefaultHeartbeatInterval), IssuedAt: parseMs(re.str(4)), WorkerID: workerID,
		Deadline: re.int(5),
	})
}

// ownedCache remembers whose an attempt is, also when the store has lost it: then it is adopted by what is remembered
// here. That does not change while the store keeps the task: an entry ends long
// before retention could have removed it, since another task may then have its name. A beat is guarded by the attempt's
// membership whatever is remembered here.
type ownedCache struct {
	mu       sync.RWMutex
	of, past map[string]ownedEntry // past: those that were remembered before there were too many
}

type ownedEntry struct {
	attempt *Attempt
	until   time.Time
}

const ownedLife = time.Hour

const maxOwned = 1 << 15 // of each of the two

func ownedKey(scope Scope, workerID string, n OwnedAttempt) string {
	return workerID + "/" + taskName(scope, n.TaskID) + "#" + strconv.Itoa(n.Number)
}

func (c *ownedCache) get(scope Scope, workerID string, n OwnedAttempt) *Attempt {
	c.mu.RLock()
	defer c.mu.RUnlock()
	key := ownedKey(scope, workerID, n)
	e, ok := c.of[key]
	if !ok {
		e = c.past[key]
	}
	if !time.Now().Before(e.until) {
		return nil
	}
	return e.attempt
}

func (c *ownedCache) put(scope Scope, workerID string, n OwnedAttempt, a *Attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil || len(c.of) >= maxOwned {
		c.of, c.past = make(map[string]ownedEntry), c.of
	}
	c.of[ownedKey(scope, workerID, n)] = ownedEntry{a, time.Now().Add(ownedLife)}
}

// InventoryItem is one attempt that a worker says it has.
type InventoryItem struct {
	OwnedAttempt
	Report string // packed by AppendReport; empty: none
}

// TaskNotice tells a worker about one of its attempts.
type TaskNotice struct {
	TaskID  string
	Attempt int
	Reason  string // of a cancel; may be empty
	Error   Code   // why a lost one is lost
}

// takeInventory holds what a worker says it has against what it holds. What it has is heard, as by beats of its own;
// what it holds no more is told to it; what two of its beats running miss is taken from it.
func (t *Tracker) takeInventory(h *WorkerHeard, items []InventoryItem) error {
	held, err := t.heldBy("worker beat", h.scope, h.worker)
	if err != nil {
		return err
	}
	holds := make(map[OwnedAttempt]holding, len(held))
	for _, k := range held {
		holds[k.name()] = k
	}
	var beats []*Beat
	var strange []InventoryItem
	listed := make(map[OwnedAttempt]bool, len(items))
	for _, item := range items {
		if listed[item.OwnedAttempt] {
			continue
		}
		listed[item.OwnedAttempt] = true
		k, ok := holds[item.OwnedAttempt]
		if !ok {
			strange = append(strange, item)
			continue
		}
		delete(holds, item.OwnedAttempt)
		beats = append(beats, &Beat{Attempt: k.attempt(t, h.At), Report: item.Report})
	}
	more, err := t.explainStrange(h, strange)
	if err != nil {
		return err
	}
	beats = append(beats, more...)
	t.Beats(beats)
	for _, b := range beats {
		n := TaskNotice{TaskID: b.Attempt.TaskID, Attempt: b.Attempt.Number}
		switch code := CodeOf(b.Err); {
		case code == Unavailable || code == Overloaded:
			return b.Err
		case b.Err != nil:
			n.Error = code
			h.lose(n)
		case b.Cancel != nil:
			n.Reason = b.Cancel.Reason
			h.cancel(n, b.Attempt)
		}
	}
	return t.loseMissed(h, holds)
}

// explainStrange finds what became of attempts that a worker lists and does not hold. Those that are its own are
// beaten, and so explained; those of others are lost to it; and an unknown one is not lost: perhaps the store is what
// lost it, and its own token can tell.
func (t *Tracker) explainStrange(h *WorkerHeard, items []InventoryItem) ([]*Beat, error) {
	names := make([]OwnedAttempt, len(items))
	for i, item := range items {
		names[i] = item.OwnedAttempt
	}
	attempts, known, err := t.owned("worker beat", h.scope, h.worker, names)
	if err != nil {
		return nil, err
	}
	var beats []*Beat
	for i, a := range attempts {
		switch {
		case a != nil:
			beats = append(beats, &Beat{Attempt: a, Report: items[i].Report})
		case known[i]:
			h.lose(TaskNotice{TaskID: names[i].TaskID, Attempt: names[i].Number, Error: AttemptMismatch})
		}
	}
	return beats, nil
}

// maxMissed bounds what one inventory can miss. Of more the first in their order count, so that the next beat misses
// the same ones and those after it find the rest.
const maxMissed = 500

// loseMissed takes from the worker what two of its beats running have missed, and tells it so: should it have it all
// the same, because a claim's answer came late, it must stop. An inventory that is older than another, or that comes
// twice, says nothing about what is missing.
func (t *Tracker) loseMissed(h *WorkerHeard, missed map[OwnedAttempt]holding) error {
	shard, ok := t.store.workerShard(h.worker)
	if !ok || h.inventory == "" {
		return nil
	}
	byText := make(map[string]holding, len(missed))
	for _, k := range missed {
		byText[k.text] = k
	}
	texts := slices.Sorted(maps.Keys(byText))
	args := []any{h.inventory, ms(time.Hour)}
	for _, text := range texts[:min(len(texts), maxMissed)] {
		args = append(args, text)
	}
	k, name := t.store.keys[shard], taskName(h.scope, h.worker)
	re, err := t.store.do("worker beat", newCall(shard, t.store.scripts.Get("missed"), []string{k.missed(name), k.worker(name), k.reserved(name)}, args...))
	if err != nil {
		return err
	}
	var lost []holding
	for _, text := range re.strings() {
		lost = append(lost, byText[text])
	}
	if _, err = t.takeFrom("worker beat", t.sweeperID(), lost, lostEvidence{loss: true, reason: NotInInventory, lastBeat: h.At}); err != nil {
		return err
	}
	for _, k := range lost {
		n := k.name()
		h.lose(TaskNotice{TaskID: n.TaskID, Attempt: n.Number, Error: Expired})
	}
	return nil
}

// name gives the attempt of a holding.
func (k *holding) name() OwnedAttempt {
	number, _, _ := splitAttempt(k.member)
	return OwnedAttempt{k.ref.id, number}
}

func (k *holding) attempt(t *Tracker, now time.Time) *Attempt {
	number, fence, _ := splitAttempt(k.member)
	return t.Attempt(Attempt{
		Scope: k.ref.scope, TaskID: k.ref.id, RunID: k.ref.run, Number: number, Fence: fence, Timeout: duration(k.ref.timeoutMs, 0),
		Interval: DefaultHeartbeatInterval, IssuedAt: now, WorkerID: k.worker,
	})
}

func (n OwnedAttempt) String() string { return fmt.Sprintf("%s#%d", n.TaskID, n.Number) }
