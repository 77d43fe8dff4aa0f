package tracker_test

import (
	"sort"
	"time"

	"pgregory.net/rapid"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// How time passes for the machine, what sweeps do, and whether reads agree with the model.

// Step lets time pass while front ends are alive, with regular sweeps.
func (m *machine) Step(rt *rapid.T) {
	for range rapid.IntRange(1, 8).Draw(rt, "quarters") {
		m.store.Clock.Advance(250 * time.Millisecond)
		m.now, m.L = m.now.Add(250*time.Millisecond), m.L+250*time.Millisecond
		m.must(rt, m.tr.Beats.Tick())
		m.sweep(rt)
	}
}

// Outage lets wall time pass while no beat can be stored: shard time advances by one step at most.
func (m *machine) Outage(rt *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{time.Second, 4 * time.Second}).Draw(rt, "outage")
	m.store.Clock.Advance(d)
	m.now, m.L = m.now.Add(d), m.L+250*time.Millisecond
	m.must(rt, m.tr.Beats.Tick())
	m.sweep(rt)
}

func (m *machine) sweep(rt *rapid.T) {
	if m.L-m.lastBeat > 5*time.Second {
		m.lastBeat = m.L
		_, err := m.tr.Workers.Beat(rt.Context(), trackertest.Scope, m.worker, workers.WorkerBeat{})
		m.must(rt, err)
	}
	_, err := m.sweeper.RunOnce(rt.Context())
	m.must(rt, err)
	for _, k := range m.tasks {
		m.verdict(k)
	}
}

// verdict is the effect of a sweep on one task, in the sweeper's order: beats, timers, deadlines.
func (m *machine) verdict(k *modelTask) {
	lose := func(r model.Reason, retryable, loss bool) {
		if retryable && k.retry(loss) {
			m.requeued(k, r)
		} else {
			m.finished(k, model.Failed, r)
		}
	}
	running := func() bool { return k.state == model.Running }
	if running() && m.L-k.last > k.timeout {
		lose(model.HeartbeatTimeout, true, true)
	}
	type timer struct {
		at     time.Duration
		expire func()
	}
	var timers []timer
	if k.state == model.Dispatched {
		timers = append(timers, timer{k.startBy, func() { lose(model.StartTimeout, true, true) }})
	}
	if running() && k.run > 0 {
		timers = append(timers, timer{k.begun + k.run, func() { lose(model.RunTimeout, true, false) }})
	}
	if running() && k.cancelDelivered > 0 {
		timers = append(timers, timer{k.cancelDelivered + k.patience, func() { lose(model.CancelTimeout, false, false) }})
	}
	// Of two timers the earlier one wins; at the same moment the sorted set orders by name: c before r.
	sort.SliceStable(timers, func(i, j int) bool { return timers[i].at < timers[j].at })
	if len(timers) == 2 && timers[0].at == timers[1].at {
		timers[0], timers[1] = timers[1], timers[0]
	}
	if len(timers) > 0 && timers[0].at <= m.L {
		timers[0].expire()
	}
	if !k.deadline.IsZero() && !k.deadline.After(m.now) && !k.state.Terminal() {
		lose(model.DeadlineExceeded, false, false)
	}
	if k.state == model.Queued && !k.readyAt.IsZero() && !k.readyAt.After(m.now) {
		k.readyAt = time.Time{}
	}
}

// shown is the state that reads have.
func (k *modelTask) shown() model.State {
	if k.state == model.Queued && k.attempt == 0 && !k.readyAt.IsZero() {
		return model.Scheduled
	}
	return k.state
}

// agree compares a task with the model.
func (m *machine) agree(rt *rapid.T, task *model.Task) {
	k := m.tasks[task.ID]
	if k == nil {
		rt.Fatalf("%s was never created", task.ID)
	}
	if task.State != k.shown() || task.Reason != k.reason || task.Attempt != k.attempt {
		rt.Fatalf("%s is %s %q attempt %d; in the model %s %q attempt %d", k.id, task.State, task.Reason, task.Attempt, k.shown(), k.reason,
			k.attempt)
	}
	if !task.NextAttemptAt.Equal(k.readyAt) {
		rt.Fatalf("%s next attempt at %v; in the model %v", k.id, task.NextAttemptAt, k.readyAt)
	}
	if task.Failures != k.failures || task.Losses != k.losses {
		rt.Fatalf("%s counts %d failures, %d losses; in the model %d, %d", k.id, task.Failures, task.Losses, k.failures, k.losses)
	}
	if k.state == model.Running {
		if want := m.L-k.last > k.timeout; (task.Liveness == model.Lost) != want {
			rt.Fatalf("%s is %s after %v of %v", k.id, task.Liveness, m.L-k.last, k.timeout)
		}
	}
}

// list reads the tasks in a state, or all, and compares each, and their number.
func (m *machine) list(rt *rapid.T, s model.State) {
	f := model.TaskFilter{Scope: trackertest.Scope, PageSize: 100}
	if s != "" {
		f.States = []model.State{s}
	}
	page, err := m.tr.Tasks.List(rt.Context(), f)
	m.must(rt, err)
	want := 0
	for _, k := range m.tasks {
		if s == "" || k.shown() == s {
			want++
		}
	}
	if page.Total != want || len(page.Tasks) != want {
		rt.Fatalf("state %q: total %d, listed %d; in the model %d", s, page.Total, len(page.Tasks), want)
	}
	for _, task := range page.Tasks {
		m.agree(rt, task)
	}
}

// Read reads one task individually, and the tasks of each state.
func (m *machine) Read(rt *rapid.T) {
	k := m.pick(rt)
	task, err := m.tr.Tasks.Get(rt.Context(), trackertest.Scope, k.id)
	m.must(rt, err)
	m.agree(rt, task)
	if string(task.Details) != k.details {
		rt.Fatalf("%s has the details %s; in the model %s", k.id, task.Details, k.details)
	}
	for _, s := range model.States {
		m.list(rt, s)
	}
}

// Check runs after every operation: each task reads as in the model, and its run counts it so. It reads all of them at once: reading one
// by one would take most of the test's time.
func (m *machine) Check(rt *rapid.T) {
	m.list(rt, "")
	if len(m.tasks) == 0 {
		return
	}
	counts := map[model.State]int{}
	for _, k := range m.tasks {
		counts[k.shown()]++
	}
	run, err := m.tr.Tasks.Run(rt.Context(), trackertest.Scope, "r1")
	m.must(rt, err)
	for _, s := range model.States {
		if run.Counts[s] != counts[s] {
			rt.Fatalf("the run counts %d %s; in the model %d", run.Counts[s], s, counts[s])
		}
	}
}
