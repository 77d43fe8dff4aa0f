package sweep

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/tracker/brake"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// taskSweep enforces the deadlines of tasks. Its rounds over several nodes run concurrently; its fields do not change.
type taskSweep struct {
	service  *Service
	id       sweeperID
	timeouts *timeouts
	leads    *leads
	brake    *brake.Brake
	outboxes *outboxes
	placing  *placing
}

func newTaskSweep(s *Service, id sweeperID, known *timeouts, first *leads, b *brake.Brake, bg *background) *taskSweep {
	return &taskSweep{
		service: s, id: id, timeouts: known, leads: first, brake: b, outboxes: newOutboxes(s, bg), placing: newPlacing(s, bg),
	}
}

// sweep does one round over tasks: it scans all shards, finds the overdue entries and takes them.
func (t *taskSweep) sweep(ctx context.Context, r *round) error {
	start := time.Now()
	seen, err := t.peek(ctx, r)
	if err != nil {
		return err
	}
	t.runTimeAtFullSpeed(ctx, r.node, seen.held)
	done, err := t.clear(ctx, r, seen.todo)
	if err != nil {
		return err
	}
	if err := t.outboxes.empty(ctx, r, seen.outboxes); err != nil {
		return err
	}
	t.placing.again(ctx, r, done.placeless)
	if err := t.dropIdle(ctx, r.node, seen.idle); err != nil {
		return err
	}
	r.more = r.more || seen.next == 0
	if !r.more && !done.any {
		r.next = seen.next
	} // else scan again at once: what follows the entries taken is not known yet
	t.service.metrics.sweepTime.Observe(time.Since(start).Seconds())
	return nil
}

// found is an entry that is due.
type found struct {
	*overdue
	ref    *schema.TaskRef
	member string
}

// isSilent reports whether it is due because an attempt was silent for its timeout.
func (f *found) isSilent() bool { return f.set == beatsSet }

// cleared is what was done with due entries.
type cleared struct {
	any       bool              // a task has changed
	placeless []*schema.TaskRef // placed tasks that need a worker
}

// clear finds the overdue entries of the given sets and takes them.
func (t *taskSweep) clear(ctx context.Context, r *round, todo []overdue) (done cleared, err error) {
	if len(todo) == 0 {
		return done, nil
	}
	items, more, err := t.find(ctx, r.node, todo)
	if err != nil || len(items) == 0 {
		return done, err
	}
	r.more = more
	items, inDoubt := t.withoutHeld(ctx, r, items)
	if len(items) > 0 {
		err = t.take(ctx, r, items, &done)
	}
	return done, cmp.Or(err, inDoubt)
}

// withoutHeld returns the items except the silent attempts that the brake holds or could not decide on.
func (t *taskSweep) withoutHeld(ctx context.Context, r *round, items []found) (rest []found, err error) {
	var silent []found
	var attempts []brake.Attempt
	for _, item := range items {
		if item.isSilent() {
			silent = append(silent, item)
			attempts = append(attempts, brake.Attempt{
				Shard: item.shard, Timeout: item.timeout, Scope: item.ref.Scope, TaskID: item.ref.ID, Member: item.member,
			})
		} else {
			rest = append(rest, item)
		}
	}
	decisions, err := t.brake.DecideTasks(ctx, r.node, attempts)
	for i, decision := range decisions {
		switch decision {
		case brake.Hold:
			r.result.MassExpiryHeld++
		case brake.Expire:
			rest = append(rest, silent[i])
		}
	}
	return rest, err
}

// runTimeAtFullSpeed ends the slow time of shards with only a few late members. After an error time stays slow.
func (t *taskSweep) runTimeAtFullSpeed(ctx context.Context, n *store.Node, slow []int) {
	if len(slow) == 0 || !t.brake.FewLate(ctx, n, slow) {
		return
	}
	calls := store.CallEach(slow, t.service.beats.AllButFewBeatCall)
	t.service.store.Exec(ctx, n, calls)
}

// find lists the overdue entries of the given sets.
func (t *taskSweep) find(ctx context.Context, n *store.Node, todo []overdue) (items []found, more bool, err error) {
	calls := make([]*store.Call, len(todo))
	for i, o := range todo {
		k := t.service.store.Keys[o.shard]
		find := store.Overdue{Set: k.Timers, Grace: o.grace, Limit: findLimit}
		switch o.set {
		case beatsSet:
			find.Set, find.Timeout = k.Beats(o.timeout), schema.Duration(o.timeout, 0)
		case dueSet:
			find.Set, find.Wall = k.Due, true
		}
		calls[i] = t.service.store.FindCall(o.shard, find)
	}
	if err := t.service.exec(ctx, n, calls); err != nil {
		return nil, false, err
	}
	for i, c := range calls {
		members := store.ReadFound(c.Reply)
		more = more || len(members) == findLimit
		for _, m := range members {
			name := m
			if todo[i].set != beatsSet {
				_, name, _ = strings.Cut(m, ":") // s:, r:, c:, d:, b: or x:
			}
			scope, id, ok := schema.SplitName(name)
			if !ok {
				continue // the sentinel
			}
			items = append(items, found{&todo[i], t.service.store.Ref(scope, id), m})
		}
	}
	return items, more, nil
}

// take ends what was found: first the zombies, while it reads what identifies the keys of the other tasks, then the zombies whose
// run it had to look up, then the others. A task that is overdue in several ways is reported as silent, whatever its run.
func (t *taskSweep) take(ctx context.Context, r *round, items []found, done *cleared) error {
	var silent, others []found
	var refs []*schema.TaskRef
	for _, item := range items {
		if item.isSilent() {
			silent = append(silent, item)
		} else {
			others, refs = append(others, item), append(refs, item.ref)
		}
	}
	names, resolve := t.service.tasks.NameCalls(refs)
	zombies := t.verdictCalls(silent, silentLimit, false)
	t.execConcurrently(ctx, r.node, oneCallEach(append(names, zombies.calls...)))
	if err := store.FirstError(names); err != nil {
		return err
	}
	resolve()
	again, err := t.tally(r, zombies, done)
	if err != nil {
		return err
	}
	zombies = t.verdictCalls(again, silentLimit, true)
	t.execConcurrently(ctx, r.node, oneCallEach(zombies.calls))
	if _, err := t.tally(r, zombies, done); err != nil {
		return err
	}
	rest := t.verdictCalls(others, verdictLimit, true)
	t.execConcurrently(ctx, r.node, inTurn(rest.calls))
	_, err = t.tally(r, rest, done)
	return err
}

// verdicts are calls of scripts that end entries, and the entries of each call.
type verdicts struct {
	calls []*store.Call
	of    [][]found
}

// verdictCalls builds the calls for items, with at most that many in each; runs: the runs of their tasks are known.
func (t *taskSweep) verdictCalls(items []found, atMost int, runs bool) verdicts {
	v := verdicts{of: schema.Runs(items, atMost, func(a, b found) bool { return a.overdue == b.overdue })}
	s, retention := &t.service.scripts, t.service.opts.Retention
	for _, part := range v.of {
		var call *store.Call
		switch o := part[0].overdue; o.set {
		case beatsSet:
			call = s.expireCall(o.shard, t.id, retention, o.timeout, runs, part)
		case timersSet:
			call = s.timersCall(o.shard, t.id, retention, model.DefaultCancelGrace, part)
		case dueSet:
			call = s.dueCall(o.shard, t.id, retention, part)
		}
		v.calls = append(v.calls, call)
	}
	return v
}

// execConcurrently sends one call per round trip and several series concurrently. When very many attempts die together, Redis then
// always has a call to work on and serves heartbeats in between: it serves one command per connection in turn, and one long
// pipeline would leave them little time.
func (t *taskSweep) execConcurrently(ctx context.Context, n *store.Node, series [][]*store.Call) {
	var next atomic.Int64
	var trips sync.WaitGroup
	for range min(verdictTrips, len(series)) {
		trips.Go(t.service.store.Guard("sweeping tasks", func() {
			for i := next.Add(1); i <= int64(len(series)); i = next.Add(1) {
				for calls := series[i-1]; len(calls) > 0; calls = calls[1:] {
					t.service.store.Exec(ctx, n, calls[:1])
				}
			}
		}))
	}
	trips.Wait()
}

// oneCallEach makes a series of each call, for calls about different tasks.
func oneCallEach(calls []*store.Call) [][]*store.Call { return slices.Collect(slices.Chunk(calls, 1)) }

// inTurn makes a series of the calls about one shard: the first one ends a task that is overdue in several ways.
func inTurn(calls []*store.Call) [][]*store.Call {
	return schema.Runs(calls, len(calls), func(a, b *store.Call) bool { return a.Shard == b.Shard })
}

// tally counts what the scripts took. It returns the zombies that were left because their run was missing, which is now known.
func (t *taskSweep) tally(r *round, v verdicts, done *cleared) (again []found, err error) {
	for i, c := range v.calls {
		if c.Err != nil {
			return nil, c.Err
		}
		for j, took := range readTaken(c.Reply) {
			item := v.of[i][j]
			if took.what == schema.TookNeedsRun {
				item.ref.Run = took.run
				again = append(again, item)
				continue
			}
			t.count(&r.result, item, took, done)
		}
	}
	return again, nil
}

func (t *taskSweep) count(r *SweepResult, item found, took taken, done *cleared) {
	if took.what == schema.TookNothing {
		return
	}
	done.any = true
	switch took.what {
	case schema.TookReady:
		r.Ready++
		return
	case schema.TookPlaceless:
		done.placeless = append(done.placeless, item.ref)
		return
	case schema.TookRemoved:
		r.Removed++
		t.service.metrics.removed.Inc()
		return
	case schema.TookRequeued:
		r.Requeued++
	}
	if item.isSilent() {
		r.Zombies++
	} else {
		r.TimedOut++
	}
	t.service.logVerdict(t.id, &item, took)
	t.service.holdings.CountEnd(item.reason(), took.what == schema.TookRequeued)
	t.service.metrics.detectionLag.Observe(took.lag.Seconds())
}

// reason returns why the attempt or the task ends.
func (f *found) reason() model.Reason {
	if f.isSilent() {
		return model.HeartbeatTimeout
	}
	switch f.member[:2] {
	case "s:":
		return model.StartTimeout
	case "r:":
		return model.RunTimeout
	case "c:":
		return model.CancelTimeout
	}
	return model.DeadlineExceeded
}
