package tracker

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// due entry that was found and is to be taken.
type found struct {
	*overdue
	ref    *taskRef
	member string
}

// clear finds what is overdue in the given sets and takes it.
func (s *Sweeper) clear(n *node, todo []overdue) (SweepResult, error) {
	var result SweepResult
	if len(todo) == 0 {
		return result, nil
	}
	items, more, err := s.find(n, todo)
	if err != nil || len(items) == 0 {
		return result, err
	}
	items, inDoubt := s.braked(n, items, &result)
	held := result.Held
	if len(items) > 0 {
		result, err = s.take(n, items)
	}
	result.Held, result.more = held, more
	return result, cmp.Or(err, inDoubt)
}

// take ends what was found: first the zombies, while it reads what names the other tasks' keys, then the zombies whose
// run had to be learned first, then the others. Of a task that is overdue in several ways silence is told, whatever its run.
func (s *Sweeper) take(n *node, items []found) (SweepResult, error) {
	var result SweepResult
	var silent, others []found
	var refs []*taskRef
	for _, item := range items {
		if item.kind == "expire" {
			silent = append(silent, item)
		} else {
			others, refs = append(others, item), append(refs, item.ref)
		}
	}
	names, resolve := s.t.nameCalls(refs)
	zombies := s.takes(silent, false)
	s.execVerdicts(n, append(names, zombies.calls...))
	for _, c := range names {
		if c.err != nil {
			return result, c.err
		}
	}
	resolve()
	again, err := s.settle(&result, zombies)
	if err != nil {
		return result, err
	}
	rest := s.takes(append(again, others...), true)
	s.execVerdicts(n, rest.calls)
	_, err = s.settle(&result, rest)
	return result, err
}

func (s *Sweeper) find(n *node, todo []overdue) (items []found, more bool, err error) {
	calls := make([]*call, len(todo))
	for i, o := range todo {
		k := s.t.store.keys[o.shard]
		key, clock, timeout := k.timers, "L", "0"
		switch o.kind {
		case "expire":
			key, timeout = k.beats(o.timeout), o.timeout
		case "due":
			key, clock = k.due, "wall"
		}
		calls[i] = newCall(o.shard, s.t.store.scripts.Get("find"), []string{k.clock, key}, clock, timeout, ms(o.grace), findLimit)
	}
	s.t.store.exec(n, calls)
	for i, c := range calls {
		if c.err != nil {
			return nil, false, c.err
		}
		members := c.reply.list(2).strings()
		more = more || len(members) == findLimit
		for _, m := range members {
			name := m
			if todo[i].kind != "expire" {
				_, name, _ = strings.Cut(m, ":") // s:, r:, c:, d:, b: or x:
			}
			scope, id, ok := splitName(name)
			if !ok {
				continue // the sentinel
			}
			items = append(items, found{&todo[i], s.t.ref(scope, id), m})
		}
	}
	return items, more, nil
}

// takes are calls of the scripts that end what was found, and what each is about.
type takes struct {
	calls []*call
	of    [][]found
}

// execVerdicts runs calls a few a round trip: when very many die at once, the beats of the others get their turn in
// between. Redis serves a connection for as long as it has commands, so one long pipeline would leave them little.
func (s *Sweeper) execVerdicts(n *node, calls []*call) {
	for few := range slices.Chunk(calls, verdictCalls) {
		s.t.store.exec(n, few)
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
		if c.err != nil {
			return nil, c.err
		}
		for j, item := range t.of[i] {
			took := c.reply.int(2 * j)
			if took == tookNeedsRun {
				item.ref.run = c.reply.str(2*j + 1)
				again = append(again, item)
				continue
			}
			s.count(r, item, took, time.Duration(c.reply.int(2*j+1))*time.Millisecond)
		}
	}
	return again, nil
}

func (s *Sweeper) takeCall(items []found) *call {
	o := items[0].overdue
	k := s.t.store.keys[o.shard]
	keys := append(make([]string, 0, len(k.fixed)+5*len(items)), k.fixed...)
	args := []any{s.id, ms(s.t.opts.FinishedRetention)}
	if o.kind == "timers" {
		args = append(args, ms(DefaultCancelGrace))
	}
	for _, item := range items {
		keys = k.ofTask(keys, item.ref.scope, item.ref.id, item.ref.run, item.ref.timeoutMs)
		args = append(args, item.ref.scope.String(), item.ref.id, item.member)
	}
	return newCall(o.shard, s.t.store.scripts.Get(o.kind), keys, args...)
}

func (s *Sweeper) expireCall(items []found, runs bool) *call {
	o := items[0].overdue
	k := s.t.store.keys[o.shard]
	keys := append(make([]string, 0, len(k.fixed)+1+3*len(items)), k.fixed...)
	keys = append(keys, k.beats(o.timeout))
	args := []any{s.id, ms(s.t.opts.FinishedRetention), o.timeout, 1}
	if runs {
		args[3] = 2
	}
	for _, item := range items {
		name := taskName(item.ref.scope, item.ref.id)
		keys = append(keys, k.task(name), k.history(name))
		args = append(args, item.member)
		if runs {
			keys = append(keys, k.run(item.ref.scope, item.ref.run))
			args = append(args, item.ref.run)
		}
	}
	return newCall(o.shard, s.t.store.scripts.Get("expire"), keys, args...)
}

func (s *Sweeper) count(r *SweepResult, item found, took int64, lag time.Duration) {
	m := s.t.metrics
	switch took {
	case tookNothing:
		return
	case tookReady:
		r.Ready++
		return
	case tookPlaceless:
		r.placeless = append(r.placeless, item.ref)
		return
	case tookRemoved:
		r.Removed++
		m.removed.Inc()
		return
	case tookRequeued:
		r.Requeued++
		m.requeued.Inc()
	}
	reason := DeadlineExceeded
	switch item.member[:2] {
	case "s:":
		reason = StartTimeout
	case "r:":
		reason = RunTimeout
	case "c:":
		reason = CancelTimeout
	}
	if item.kind == "expire" {
		reason = HeartbeatTimeout
		r.Zombies++
	} else {
		r.TimedOut++
	}
	m.verdicts.WithLabelValues(string(reason)).Inc()
	m.detectionLag.Observe(lag.Seconds())
}
