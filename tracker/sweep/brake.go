package sweep

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// The mass expiry brake is for what shard time cannot see: a front end that reaches Redis and is deaf to its workers.
// When so much of a scope goes silent together that this is likelier than as many deaths, the sweeper gives what
// would expire one more timeout, once: what is silent for that long as well has died. So it lets go by itself.
//
// A task is held by a new score in its beats set, a worker by a later look at it. The record keeps which score that
// is and the last beat before, so a second timeout is given only after another beat.
const (
	brakeFloor   = 50               // fewer live ones than this in a scope, or fewer silent ones, engage no brake
	silentFrom   = 60               // percent of its timeout from which on a member counts as silent
	censusEvery  = time.Second      // one census is good for so long,
	censusShare  = 20               // or for so many times what it took
	censusPage   = 1000             // members that one script counts
	censusHeld   = 250              // held ones that one script counts: each is looked for in its set too
	censusForget = 10 * time.Minute // what a scope without verdicts was found to be is forgotten then
)

// What the scripts of the brake answer about each: what is not silent for its timeout when they look must not be taken
// by the script that runs after them either, for then it may be.
const (
	brakeAwaits = 0
	brakeHolds  = 1
	brakeLets   = 2
)

// brake is what one sweeper knows of scopes in which something was about to expire.
type brake struct {
	s *Sweeper

	mu   sync.Mutex // also held while a census is taken: tasks and workers are swept beside each other
	seen map[model.Scope]censusResult
}

// censusResult is what the last census found of a scope.
type censusResult struct {
	at   time.Time
	good time.Duration
	hold bool
}

func newBrake(s *Sweeper) *brake { return &brake{s: s, seen: map[model.Scope]censusResult{}} }

// braked holds what the brake is for and gives the rest, which is to be taken. With an error that is what does not end for
// silence: nobody dies while it is not known whether the brake holds, and nothing else waits for that.
func (s *Sweeper) braked(ctx context.Context, n *store.Node, items []found, result *SweepResult) ([]found, error) {
	if s.t.opts.BrakeShare == 0 {
		return items, nil
	}
	over := overTimeouts{}
	for _, item := range items {
		if item.kind == "expire" {
			over.add(item.ref.Scope, schema.Duration(item.timeout, 0))
		}
	}
	hold, err := s.brake.scopes(ctx, over)
	if err != nil {
		return notSilent(items), err
	}
	if len(hold) == 0 {
		return items, nil
	}
	groups := map[*overdue][]found{}
	var rest []found
	for _, item := range items {
		if item.kind == "expire" && hold[item.ref.Scope] {
			groups[item.overdue] = append(groups[item.overdue], item)
		} else {
			rest = append(rest, item)
		}
	}
	var calls []*store.Call
	var of [][]found
	for o, group := range groups {
		k := s.t.store.Keys[o.shard]
		for part := range slices.Chunk(group, schema.TakeLimit) {
			keys, args := []string{k.Clock, k.Braked, k.Beats(o.timeout)}, []any{"hold", o.timeout}
			for _, item := range part {
				keys = append(keys, k.Task(schema.TaskName(item.ref.Scope, item.ref.ID)))
				args = append(args, item.ref.Scope.String(), item.member)
			}
			calls = append(calls, store.NewCall(o.shard, s.t.store.Scripts.Get("brake_tasks"), keys, args...))
			of = append(of, part)
		}
	}
	s.t.store.Exec(ctx, n, calls)
	for g, c := range calls {
		if c.Err != nil {
			return notSilent(rest), c.Err
		}
		for i, item := range of[g] {
			switch c.Reply.Int(i) {
			case brakeHolds:
				result.Held++
				s.t.brakeMetrics.heldTasks.Inc()
			case brakeLets:
				rest = append(rest, item)
			}
		}
	}
	return rest, nil
}

func notSilent(items []found) []found {
	return slices.DeleteFunc(items, func(item found) bool { return item.kind == "expire" })
}

// brakedWorkers does the same with workers. With an error all are spared.
func (s *Sweeper) brakedWorkers(ctx context.Context, n *store.Node, due []dueWorker, result *SweepResult) ([]dueWorker, error) {
	if s.t.opts.BrakeShare == 0 {
		return due, nil
	}
	over := overTimeouts{}
	for _, w := range due {
		over.add(w.ref.Scope, s.t.workerTimeout())
	}
	hold, err := s.brake.scopes(ctx, over)
	if err != nil {
		return spare(due), err
	}
	if len(hold) == 0 {
		return due, nil
	}
	var rest, held []dueWorker
	for _, w := range due {
		if hold[w.ref.Scope] {
			held = append(held, w)
		} else {
			rest = append(rest, w)
		}
	}
	groups := shardsOf(held)
	calls := make([]*store.Call, len(groups))
	for g, group := range groups {
		k := s.t.store.Keys[group[0].ref.Shard]
		keys, args := []string{k.Clock, k.Braked, k.WorkerBeats}, []any{"hold"}
		for _, w := range group {
			keys = append(keys, k.Worker(schema.TaskName(w.ref.Scope, w.ref.ID)))
			args = append(args, w.ref.Scope.String(), w.ref.ID)
		}
		calls[g] = store.NewCall(group[0].ref.Shard, s.t.store.Scripts.Get("brake_workers"), keys, args...)
	}
	s.t.store.Exec(ctx, n, calls)
	for g, c := range calls {
		if c.Err != nil {
			return spare(due), c.Err
		}
		for i, w := range groups[g] {
			switch c.Reply.Int(i) {
			case brakeHolds:
				result.Held++
				s.t.brakeMetrics.heldWorkers.Inc()
				continue
			case brakeAwaits:
				w.spared = true // it may be late, or have beaten: that is looked at
			}
			rest = append(rest, w)
		}
	}
	return rest, nil
}

func spare(due []dueWorker) []dueWorker {
	for i := range due {
		due[i].spared = true
	}
	return due
}

// overTimeouts has, of each scope with something overdue, the shortest and the longest timeout that is over.
type overTimeouts map[model.Scope]struct{ shortest, longest time.Duration }

func (o overTimeouts) add(scope model.Scope, timeout time.Duration) {
	known, ok := o[scope]
	if !ok || timeout < known.shortest {
		known.shortest = timeout
	}
	known.longest = max(known.longest, timeout)
	o[scope] = known
}

// scopes tells in which of these scopes the brake holds.
func (b *brake) scopes(ctx context.Context, over overTimeouts) (map[model.Scope]bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.s.t.beats.RedisNow()
	var ask []model.Scope
	for scope, timeouts := range over {
		seen, known := b.seen[scope]
		good := seen.good
		if !seen.hold { // whatever is overdue now was silent enough to be counted then
			good = min(good, timeouts.shortest*(100-silentFrom)/100)
		}
		if age := now.Sub(seen.at); !known || age < 0 || age >= good {
			ask = append(ask, scope)
		}
	}
	if len(ask) > 0 {
		if err := b.look(ctx, ask, over, now); err != nil {
			return nil, err
		}
	}
	hold := map[model.Scope]bool{}
	for scope := range over {
		if b.seen[scope].hold {
			hold[scope] = true
		}
	}
	return hold, nil
}

// look takes a census and keeps what it found.
func (b *brake) look(ctx context.Context, ask []model.Scope, over overTimeouts, now time.Time) error {
	start := time.Now()
	c, err := b.s.takeCensus(ctx, ask)
	if err != nil {
		return err
	}
	m := b.s.t.brakeMetrics
	m.censuses.Inc()
	good := max(censusEvery, censusShare*time.Since(start))
	for scope, seen := range b.seen {
		if now.Sub(seen.at) > censusForget {
			delete(b.seen, scope)
		}
	}
	for _, scope := range ask {
		hold := c.scopes[scope].mass(b.s.t.opts.BrakeShare)
		hold = hold && b.engage(ctx, scope, c.scopes[scope], over[scope].longest)
		if was := b.seen[scope].hold; hold && !was {
			b.s.log.Warn("the mass expiry brake holds: too much of a scope has gone silent at once; what is silent for one more timeout will expire", "scope", scope.String(), "counts", c.scopes[scope].String())
		}
		b.seen[scope] = censusResult{now, good, hold}
	}
	engaged := 0
	for _, seen := range b.seen {
		if seen.hold {
			engaged++
		}
	}
	m.engaged.Set(float64(engaged))
	return nil
}

// engage tells that the brake holds in a scope; false: operators have released it. Where the shard that remembers this
// does not answer it holds: each shard knows of a release itself, and nothing of the others need wait.
func (b *brake) engage(ctx context.Context, scope model.Scope, counts *scopeCensus, timeout time.Duration) bool {
	t := b.s.t
	shard := t.store.ShardOf(scope, "") // any one shard, the same for all sweepers
	k := t.store.Keys[shard]
	data := fmt.Sprintf(`{"sharePct":%d,"tasks":{"live":%d,"silent":%d},"workers":{"live":%d,"silent":%d},"sweeper":%q}`,
		t.opts.BrakeShare, counts.tasks.live, counts.tasks.silent, counts.workers.live, counts.workers.silent, b.s.id)
	engage := store.NewCall(shard, t.store.Scripts.Get("brake_engage"), []string{k.Clock, k.Braked, k.Events}, scope.String(), model.Millis(timeout+2*censusEvery), data)
	t.store.Exec(ctx, t.store.Node(shard), []*store.Call{engage})
	return engage.Err != nil || engage.Reply.Int(0) == 1
}
