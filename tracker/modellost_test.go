package tracker_test

import (
	"maps"
	"time"

	"pgregory.net/rapid"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// A primary is lost with everything that a replica has not received from it. Attempts that it has dispatched keep beating.

// LosePrimary makes a replica lag, runs operations on the primary that it never receives, and promotes it.
func (m *machine) LosePrimary(rt *rapid.T) {
	if len(m.tasks) == 0 {
		rt.Skip("no task yet")
	}
	replica, tasks, now, L, lastBeat := m.store.Snapshot(m), map[string]*modelTask{}, m.now, m.L, m.lastBeat
	for id, k := range m.tasks {
		known := *k
		known.attempts, known.ended, known.retried = maps.Clone(k.attempts), maps.Clone(k.ended), maps.Clone(k.retried)
		tasks[id] = &known
	}
	for range rapid.IntRange(1, 4).Draw(rt, "acts") {
		switch act := rapid.SampledFrom([]string{"create", "next attempt", "claim", "step"}).Draw(rt, "act"); {
		case act == "create" && m.n < manyTasks:
			m.Create(rt)
		case act == "next attempt":
			m.NextAttempt(rt)
		case act == "step":
			m.Step(rt)
		default:
			m.Claim(rt)
		}
	}
	was := m.tasks
	m.store.Restore(m, replica)
	m.tasks, m.L, m.lastBeat = tasks, L, lastBeat
	for id, k := range was {
		is := m.tasks[id]
		if is == nil {
			is = &modelTask{id: id, attempts: map[int]*model.Attempt{}, ended: map[int]string{}, retried: map[int]bool{},
				timeout: k.timeout, grace: 30 * time.Second, start: time.Hour, deadline: k.deadline}
			m.lost[id] = is
		}
		dispatched := k.strays
		for n := 1; n <= k.attempt; n++ {
			if a := k.attempts[n]; a != nil {
				dispatched = append(dispatched, a)
			}
		}
		is.strays = nil
		for _, a := range dispatched {
			if is.attempts[a.Number] != a {
				is.strays = append(is.strays, a)
			}
		}
	}
	maps.DeleteFunc(m.lost, func(_ string, k *modelTask) bool { return len(k.strays) == 0 })
	if m.now.After(now) {
		m.L += 250 * time.Millisecond
	}
	m.must(rt, m.tr.Beats.Tick())
	m.sweep(rt)
}

// adopted updates a task whose record is missing, or older than the attempt that a callback proves. A cancel in the record applies to
// this attempt too.
func (m *machine) adopted(k *modelTask, a *model.Attempt) {
	delete(m.lost, k.id)
	m.tasks[k.id] = k
	k.cancel = k.cancel && k.state == model.Running
	k.state, k.attempt, k.attempts[a.Number], k.begun = model.Running, a.Number, a, m.L
	k.reason, k.readyAt, k.cancelDelivered, k.fenced = "", time.Time{}, 0, false
}
