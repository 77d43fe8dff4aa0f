package holdings

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// OwnedAttempt names an attempt as a worker does that shows its own token and not the attempt's.
type OwnedAttempt struct {
	TaskID string
	Number int
}

// Remember has this replica know that an attempt was dispatched to a worker, also when the store has lost it.
func (s *Service) Remember(workerID string, a *model.Attempt) {
	s.ownedBy.put(a.Scope, workerID, OwnedAttempt{TaskID: a.TaskID, Number: a.Number}, a)
}

// Owned gives the attempts that were dispatched to the worker, with all that their own tokens would say; nil for any
// other, and for those that the store does not know; AttemptInDoubt when it may have lost them. Whether they are live is
// for the callbacks to judge.
func (s *Service) Owned(ctx context.Context, scope model.Scope, workerID string, names []OwnedAttempt) ([]*model.Attempt, error) {
	ctx = s.store.Within(ctx, 0)
	attempts, known, err := s.owned(ctx, "owned", scope, workerID, names)
	for i, a := range attempts {
		if a == nil && !known[i] && s.beats.MayHaveLost(s.store.ShardOf(scope, names[i].TaskID)) {
			attempts[i] = beats.AttemptInDoubt
		}
	}
	return attempts, err
}

// owned tells besides which of them belong to a task that there is.
func (s *Service) owned(ctx context.Context, op string, scope model.Scope, workerID string, names []OwnedAttempt) (attempts []*model.Attempt, known []bool, err error) {
	attempts, known = make([]*model.Attempt, len(names)), make([]bool, len(names))
	byShard := map[int][]int{}
	first := make(map[OwnedAttempt]int, len(names))
	for i, n := range names {
		if attempts[i] = s.ownedBy.get(scope, workerID, n); attempts[i] != nil {
			known[i] = true
			continue
		}
		if _, asked := first[n]; !asked {
			first[n] = i
			shard := s.store.ShardOf(scope, n.TaskID)
			byShard[shard] = append(byShard[shard], i)
		}
	}
	var calls []*store.Call
	var groups [][]int
	for shard, group := range byShard {
		for part := range slices.Chunk(group, ownedLimit) {
			calls = append(calls, s.ownedCall(shard, scope, workerID, names, part))
			groups = append(groups, part)
		}
	}
	s.store.DoAll(ctx, op, calls)
	for g, c := range calls {
		if c.Err != nil {
			return nil, nil, c.Err
		}
		for j, i := range groups[g] {
			re := c.Reply.List(j)
			known[i] = len(re) > 1 || re.Int(0) == 0
			if len(re) > 1 {
				attempts[i] = s.attemptOf(scope, workerID, names[i], re)
				s.ownedBy.put(scope, workerID, names[i], attempts[i])
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

func (s *Service) ownedCall(shard int, scope model.Scope, workerID string, names []OwnedAttempt, which []int) *store.Call {
	k := s.store.Keys[shard]
	keys := make([]string, 0, 2*len(which))
	args := []any{workerID}
	for _, i := range which {
		name := schema.TaskName(scope, names[i].TaskID)
		keys = append(keys, k.Task(name), k.History(name))
		args = append(args, names[i].Number)
	}
	return store.NewCall(shard, s.store.Scripts.Get("owned"), keys, args...)
}

func (s *Service) attemptOf(scope model.Scope, workerID string, n OwnedAttempt, re store.Reply) *model.Attempt {
	run := re.Str(1)
	if run == "" {
		run = schema.RunOf(n.TaskID)
	}
	return s.beats.Attempt(model.Attempt{
		Scope: scope, TaskID: n.TaskID, RunID: run, Number: n.Number, Fence: re.Str(0), Timeout: schema.Duration(re.Str(2), 0),
		Interval: schema.Duration(re.Str(3), model.DefaultHeartbeatInterval), IssuedAt: schema.ParseMillis(re.Str(4)), WorkerID: workerID,
		Deadline: re.Int(5),
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
	attempt *model.Attempt
	until   time.Time
}

const ownedLife = time.Hour

const maxOwned = 1 << 15 // of each of the two

func ownedKey(scope model.Scope, workerID string, n OwnedAttempt) string {
	return workerID + "/" + schema.TaskName(scope, n.TaskID) + "#" + strconv.Itoa(n.Number)
}

func (c *ownedCache) get(scope model.Scope, workerID string, n OwnedAttempt) *model.Attempt {
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

func (c *ownedCache) put(scope model.Scope, workerID string, n OwnedAttempt, a *model.Attempt) {
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
	Reason  string     // of a cancel; may be empty
	Error   model.Code // why a lost one is lost
}

// TakeInventory holds what a worker says it has against what it holds. What it has is heard, as by beats of its own;
// what it holds no more is told to it; what two of its beats running miss is taken from it.
func (s *Service) TakeInventory(ctx context.Context, h *WorkerHeard, items []InventoryItem) error {
	held, err := s.HeldBy(ctx, "worker beat", h.Scope, h.Worker)
	if err != nil {
		return err
	}
	holds := make(map[OwnedAttempt]Holding, len(held))
	for _, k := range held {
		holds[k.name()] = k
	}
	var explained []*beats.Beat
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
		explained = append(explained, &beats.Beat{Attempt: k.attempt(s, h.At), Report: item.Report})
	}
	more, err := s.explainStrange(ctx, h, strange)
	if err != nil {
		return err
	}
	explained = append(explained, more...)
	s.beats.Beats(explained)
	for _, b := range explained {
		n := TaskNotice{TaskID: b.Attempt.TaskID, Attempt: b.Attempt.Number}
		switch code := model.CodeOf(b.Err); {
		case code == model.Unavailable || code == model.Overloaded:
			return b.Err
		case b.Err != nil:
			n.Error = code
			h.lose(n)
		case b.Cancel != nil:
			n.Reason = b.Cancel.Reason
			h.cancel(n, b.Attempt)
		}
	}
	return s.loseMissed(ctx, h, holds)
}

// explainStrange finds what became of attempts that a worker lists and does not hold. Those that are its own are
// beaten, and so explained; those of others are lost to it; and an unknown one is not lost: perhaps the store is what
// lost it, and its own token can tell.
func (s *Service) explainStrange(ctx context.Context, h *WorkerHeard, items []InventoryItem) ([]*beats.Beat, error) {
	names := make([]OwnedAttempt, len(items))
	for i, item := range items {
		names[i] = item.OwnedAttempt
	}
	attempts, known, err := s.owned(ctx, "worker beat", h.Scope, h.Worker, names)
	if err != nil {
		return nil, err
	}
	var explained []*beats.Beat
	for i, a := range attempts {
		switch {
		case a != nil:
			explained = append(explained, &beats.Beat{Attempt: a, Report: items[i].Report})
		case known[i]:
			h.lose(TaskNotice{TaskID: names[i].TaskID, Attempt: names[i].Number, Error: model.AttemptMismatch})
		}
	}
	return explained, nil
}

// maxMissed bounds what one inventory can miss. Of more the first in their order count, so that the next beat misses
// the same ones and those after it find the rest.
const maxMissed = 500

// loseMissed takes from the worker what two of its beats running have missed, and tells it so: should it have it all
// the same, because a claim's answer came late, it must stop. An inventory that is older than another, or that comes
// twice, says nothing about what is missing.
func (s *Service) loseMissed(ctx context.Context, h *WorkerHeard, missed map[OwnedAttempt]Holding) error {
	shard, ok := s.store.WorkerShard(h.Worker)
	if !ok || h.Inventory == "" {
		return nil
	}
	byText := make(map[string]Holding, len(missed))
	for _, k := range missed {
		byText[k.text] = k
	}
	texts := slices.Sorted(maps.Keys(byText))
	args := []any{h.Inventory, model.Millis(time.Hour)}
	for _, text := range texts[:min(len(texts), maxMissed)] {
		args = append(args, text)
	}
	k, name := s.store.Keys[shard], schema.TaskName(h.Scope, h.Worker)
	re, err := s.store.Do(ctx, "worker beat", store.NewCall(shard, s.store.Scripts.Get("missed"), []string{k.Missed(name), k.Worker(name), k.Reserved(name)}, args...))
	if err != nil {
		return err
	}
	var lost []Holding
	for _, text := range re.Strings() {
		lost = append(lost, byText[text])
	}
	if _, err = s.takeFrom(ctx, "worker beat", s.store.SweeperID(), lost, lostEvidence{loss: true, reason: model.NotInInventory, lastBeat: h.At}); err != nil {
		return err
	}
	for _, k := range lost {
		n := k.name()
		h.lose(TaskNotice{TaskID: n.TaskID, Attempt: n.Number, Error: model.Expired})
	}
	return nil
}

// name gives the attempt of a holding.
func (k *Holding) name() OwnedAttempt {
	number, _, _ := schema.SplitAttempt(k.member)
	return OwnedAttempt{k.Ref.ID, number}
}

func (k *Holding) attempt(s *Service, now time.Time) *model.Attempt {
	number, fence, _ := schema.SplitAttempt(k.member)
	return s.beats.Attempt(model.Attempt{
		Scope: k.Ref.Scope, TaskID: k.Ref.ID, RunID: k.Ref.Run, Number: number, Fence: fence, Timeout: schema.Duration(k.Ref.TimeoutMs, 0),
		Interval: model.DefaultHeartbeatInterval, IssuedAt: now, WorkerID: k.Worker,
	})
}

func (n OwnedAttempt) String() string { return fmt.Sprintf("%s#%d", n.TaskID, n.Number) }
