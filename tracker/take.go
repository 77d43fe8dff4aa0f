package tracker

import (
	"strings"
	"time"
)

// due entry that was found and is to be taken.
type found struct {
	*overdue
	ref    *taskRef
	member string
}

// clear finds what is overdue in the given sets and takes it: one round trip to find, one to name the tasks'
// keys, one to take.
func (s *Sweeper) clear(n *node, todo []overdue) (SweepResult, error) {
	var result SweepResult
	if len(todo) == 0 {
		return result, nil
	}
	items, more, err := s.find(n, todo)
	if err != nil || len(items) == 0 {
		return result, err
	}
	refs := make([]*taskRef, len(items))
	for i := range items {
		refs[i] = items[i].ref
	}
	names, resolve := s.t.nameCalls(refs)
	s.t.store.exec(n, names)
	for _, c := range names {
		if c.err != nil {
			return result, c.err
		}
	}
	resolve()
	result, err = s.take(n, items)
	result.more = more
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

// take runs the script that ends what was found, at most verdictLimit tasks a call, all calls in one round trip.
func (s *Sweeper) take(n *node, items []found) (SweepResult, error) {
	var calls []*call
	var groups [][]found
	for len(items) > 0 {
		k := 1
		for k < len(items) && k < verdictLimit && items[k].overdue == items[0].overdue {
			k++
		}
		groups = append(groups, items[:k])
		calls = append(calls, s.takeCall(items[:k]))
		items = items[k:]
	}
	s.t.store.exec(n, calls)
	var result SweepResult
	for g, c := range calls {
		if c.err != nil {
			return result, c.err
		}
		for i, item := range groups[g] {
			s.count(&result, item, c.reply.int(2*i), time.Duration(c.reply.int(2*i+1))*time.Millisecond)
		}
	}
	return result, nil
}

func (s *Sweeper) takeCall(items []found) *call {
	o := items[0].overdue
	k := s.t.store.keys[o.shard]
	keys := append(make([]string, 0, len(k.fixed)+5*len(items)), k.fixed...)
	args := []any{s.id, ms(s.t.opts.FinishedRetention)}
	switch o.kind {
	case "expire":
		args = append(args, o.timeout)
	case "timers":
		args = append(args, ms(DefaultCancelGrace))
	}
	for _, item := range items {
		timeout := item.ref.timeoutMs
		if o.kind == "expire" {
			timeout = o.timeout // also of an entry whose record is gone
		}
		keys = k.ofTask(keys, item.ref.scope, item.ref.id, item.ref.run, timeout)
		args = append(args, item.ref.scope.String(), item.ref.id, item.member)
	}
	return newCall(o.shard, s.t.store.scripts.Get(o.kind), keys, args...)
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
