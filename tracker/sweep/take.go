package sweep

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// due entry that was found and is to be taken.
type found struct {
	*overdue
	ref    *schema.TaskRef
	member string
}

// clear finds what is overdue in the given sets and takes it.
func (s *Sweeper) clear(ctx context.Context, n *store.Node, todo []overdue) (SweepResult, error) {
	var result SweepResult
	if len(todo) == 0 {
		return result, nil
	}
	items, more, err := s.find(ctx, n, todo)
	if err != nil || len(items) == 0 {
		return result, err
	}
	items, inDoubt := s.braked(ctx, n, items, &result)
	held := result.Held
	if len(items) > 0 {
		result, err = s.take(ctx, n, items)
	}
	result.Held, result.more = held, more
	return result, cmp.Or(err, inDoubt)
}

// take ends what was found: first the zombies, while it reads what names the other tasks' keys, then the zombies whose
// run had to be learned first, then the others. Of a task that is overdue in several ways silence is told, whatever its run.
func (s *Sweeper) take(ctx context.Context, n *store.Node, items []found) (SweepResult, error) {
	var result SweepResult
	var silent, others []found
	var refs []*schema.TaskRef
	for _, item := range items {
		if item.kind == "expire" {
			silent = append(silent, item)
		} else {
			others, refs = append(others, item), append(refs, item.ref)
		}
	}
	names, resolve := s.t.tasks.NameCalls(refs)
	zombies := s.takes(silent, false)
	s.execVerdicts(ctx, n, append(names, zombies.calls...))
	for _, c := range names {
		if c.Err != nil {
			return result, c.Err
		}
	}
	resolve()
	again, err := s.settle(&result, zombies)
	if err != nil {
		return result, err
	}
	rest := s.takes(append(again, others...), true)
	s.execVerdicts(ctx, n, rest.calls)
	_, err = s.settle(&result, rest)
	return result, err
}

func (s *Sweeper) find(ctx context.Context, n *store.Node, todo []overdue) (items []found, more bool, err error) {
	calls := make([]*store.Call, len(todo))
	for i, o := range todo {
		k := s.t.store.Keys[o.shard]
		find := store.Overdue{Set: k.Timers, Grace: o.grace, Limit: findLimit}
		switch o.kind {
		case "expire":
			find.Set, find.Timeout = k.Beats(o.timeout), schema.Duration(o.timeout, 0)
		case "due":
			find.Set, find.Wall = k.Due, true
		}
		calls[i] = s.t.store.FindCall(o.shard, find)
	}
	s.t.store.Exec(ctx, n, calls)
	for i, c := range calls {
		if c.Err != nil {
			return nil, false, c.Err
		}
		members := store.ReadFound(c.Reply)
		more = more || len(members) == findLimit
		for _, m := range members {
			name := m
			if todo[i].kind != "expire" {
				_, name, _ = strings.Cut(m, ":") // s:, r:, c:, d:, b: or x:
			}
			scope, id, ok := schema.SplitName(name)
			if !ok {
				continue // the sentinel
			}
			items = append(items, found{&todo[i], s.t.store.Ref(scope, id), m})
		}
	}
	return items, more, nil
}

// takes are calls of the scripts that end what was found, and what each is about.
type takes struct {
	calls []*store.Call
	of    [][]found
}

// execVerdicts runs calls a few a round trip: when very many die at once, the beats of the others get their turn in
// between. Redis serves a connection for as long as it has commands, so one long pipeline would leave them little.
func (s *Sweeper) execVerdicts(ctx context.Context, n *store.Node, calls []*store.Call) {
	for few := range slices.Chunk(calls, verdictCalls) {
		s.t.store.Exec(ctx, n, few)
	}
}

// takes makes the calls for items, at most verdictLimit a call; named: the runs of their tasks are known.
func (s *Sweeper) takes(items []found, named bool) (t takes) {
	for len(items) > 0 {
		k := 1
		for k < len(items) && k < verdictLimit && items[k].overdue == items[0].overdue {
			k++
		}
		t.of = append(t.of, items[:k])
		if items[0].kind == "expire" {
			t.calls = append(t.calls, s.expireCall(items[:k], named))
		} else {
			t.calls = append(t.calls, s.takeCall(items[:k]))
		}
		items = items[k:]
	}
	return t
}

// settle counts what the scripts took. It gives back the zombies that were left because their run was not told; now
// it is known.
func (s *Sweeper) settle(r *SweepResult, t takes) (again []found, err error) {
	for i, c := range t.calls {
		if c.Err != nil {
			return nil, c.Err
		}
		for j, item := range t.of[i] {
			took := c.Reply.Int(2 * j)
			if took == schema.TookNeedsRun {
				item.ref.Run = c.Reply.Str(2*j + 1)
				again = append(again, item)
				continue
			}
			s.count(r, item, took, time.Duration(c.Reply.Int(2*j+1))*time.Millisecond)
		}
	}
	return again, nil
}

func (s *Sweeper) takeCall(items []found) *store.Call {
	o := items[0].overdue
	k := s.t.store.Keys[o.shard]
	keys := append(make([]string, 0, len(k.Fixed)+5*len(items)), k.Fixed...)
	args := []any{s.id, model.Millis(s.t.opts.FinishedRetention)}
	if o.kind == "timers" {
		args = append(args, model.Millis(model.DefaultCancelGrace))
	}
	for _, item := range items {
		keys = k.OfTask(keys, item.ref.Scope, item.ref.ID, item.ref.Run, item.ref.TimeoutMs)
		args = append(args, item.ref.Scope.String(), item.ref.ID, item.member)
	}
	return store.NewCall(o.shard, s.t.store.Scripts.Get(o.kind), keys, args...)
}

func (s *Sweeper) expireCall(items []found, runs bool) *store.Call {
	o := items[0].overdue
	k := s.t.store.Keys[o.shard]
	keys := append(make([]string, 0, len(k.Fixed)+1+3*len(items)), k.Fixed...)
	keys = append(keys, k.Beats(o.timeout))
	args := []any{s.id, model.Millis(s.t.opts.FinishedRetention), o.timeout, 1}
	if runs {
		args[3] = 2
	}
	for _, item := range items {
		name := schema.TaskName(item.ref.Scope, item.ref.ID)
		keys = append(keys, k.Task(name), k.History(name))
		args = append(args, item.member)
		if runs {
			keys = append(keys, k.Run(item.ref.Scope, item.ref.Run))
			args = append(args, item.ref.Run)
		}
	}
	return store.NewCall(o.shard, s.t.store.Scripts.Get("expire"), keys, args...)
}

func (s *Sweeper) count(r *SweepResult, item found, took int64, lag time.Duration) {
	m := s.t.metrics
	switch took {
	case schema.TookNothing:
		return
	case schema.TookReady:
		r.Ready++
		return
	case schema.TookPlaceless:
		r.placeless = append(r.placeless, item.ref)
		return
	case schema.TookRemoved:
		r.Removed++
		m.removed.Inc()
		return
	case schema.TookRequeued:
		r.Requeued++
	}
	reason := model.DeadlineExceeded
	switch item.member[:2] {
	case "s:":
		reason = model.StartTimeout
	case "r:":
		reason = model.RunTimeout
	case "c:":
		reason = model.CancelTimeout
	}
	if item.kind == "expire" {
		reason = model.HeartbeatTimeout
		r.Zombies++
	} else {
		r.TimedOut++
	}
	s.t.holdings.CountEnd(reason, took == schema.TookRequeued)
	m.detectionLag.Observe(lag.Seconds())
}
