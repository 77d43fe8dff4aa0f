package tracker_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sort"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// TestFleetModel drives random workers, claims and deaths against a plain model of queues: no task is lost, none runs twice under one
// attempt number, and none is claimed by a worker that cannot run it.
func TestFleetModel(t *testing.T) {
	t.Parallel()
	testenv.LongerInAll(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		rapid.Check(t, func(rt *rapid.T) {
			if err := s.Client.FlushDB(t.Context()).Err(); err != nil {
				rt.Fatal(err)
			}
			s.Clock.Set(s.Clock.Now()) // the flush deleted the test's clock
			tr, err := tracker.Open(t.Context(), tracker.Options{
				RedisURL: s.URL, Scripts: s.Scripts, RedisTimeout: 10 * time.Second, Shards: 2, WorkerInterval: time.Second,
				Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			})
			if err != nil {
				rt.Fatal(err)
			}
			defer func() { _ = tr.Close(t.Context()) }()
			m := &fleetModel{tr: tr, store: s, sweeper: sweep.NewSweeper(tr.Sweeper, sweep.SweeperOptions{ID: "swp_m"}),
				tasks:   map[string]*queueTask{},
				workers: map[string]*modelWorker{}, drained: map[string]bool{},
				heldMachines: map[string]bool{}, holds: map[string]*modelWorker{}}
			m.must(rt, tr.Beats.Tick())
			rt.Repeat(rapid.StateMachineActions(m))
		})
	})
}

// queueTask is the model of a queued task.
type queueTask struct {
	id       string
	kind     string
	runtime  string
	labels   map[string]string
	pin      string
	own      time.Duration // its own timeout; 0: its worker's beats keep it alive
	state    model.State
	attempt  int
	attempts map[int]*model.Attempt
	holder   string
	readyAt  time.Time // QUEUED: from when it can be claimed
	losses   int
	mayStart time.Duration // DISPATCHED: until when it must start
	last     time.Duration // RUNNING with its own timeout: last beat
}

type modelWorker struct {
	id           string
	kinds        []string
	runtimes     []string
	labels       map[string]string
	max          int
	status       model.WorkerStatus
	last         time.Duration // shard time of its last beat
	dead         bool          // has stopped beating
	machine      string
	drain        string // how it drains while it is DRAINING
	notified     bool   // it was notified of its drain
	missedNotice bool   // its drain ended before it was notified
	cordoned     bool
	name         string
	held         bool // held offline, unless the hold of its lineage was lifted
}

// lineage is the lineage that the hold of a worker refuses.
func (w *modelWorker) lineage() string { return w.machine + "/" + w.name }

type fleetModel struct {
	tr      *tracker.Tracker
	store   *redistest.Store
	sweeper *sweep.Sweeper
	tasks   map[string]*queueTask
	workers map[string]*modelWorker
	drained map[string]bool // machines

	heldMachines map[string]bool
	holds        map[string]*modelWorker // by lineage: the last worker that was held
	paused       bool
	L            time.Duration // shard time since the start, the same in every shard: all get their ticks together
}

const (
	modelTimeout = 3 * time.Second // of workers
	modelStart   = 5 * time.Second
	modelBackoff = time.Second
)

func (m *fleetModel) must(rt *rapid.T, err error) {
	if err != nil {
		rt.Fatalf("%v", err)
	}
}

func (m *fleetModel) code(rt *rapid.T, what string, err error, want model.Code) {
	if got := model.CodeOf(err); got != want {
		rt.Fatalf("%s: %q, in the model %q (%v)", what, got, want, err)
	}
}

func draw[T any](rt *rapid.T, what string, of map[string]T) T {
	if len(of) == 0 {
		rt.Skip("none yet")
	}
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	sort.Strings(names)
	return of[rapid.SampledFrom(names).Draw(rt, what)]
}

func (m *fleetModel) Create(rt *rapid.T) {
	if len(m.tasks) >= 12 {
		rt.Skip("enough tasks")
	}
	k := &queueTask{
		id: fmt.Sprintf("t%02d", len(m.tasks)), kind: rapid.SampledFrom([]string{"x", "y", ""}).Draw(rt,
			"type"), state: model.Queued, attempts: map[int]*model.Attempt{},
		runtime: rapid.SampledFrom([]string{"", "", "go"}).Draw(rt,
			"runtime"), own: rapid.SampledFrom([]time.Duration{0, 0, 4 * time.Second}).Draw(rt, "timeout"),
	}
	if rapid.IntRange(0, 3).Draw(rt, "labels") == 0 {
		k.labels = map[string]string{"zone": rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "zone")}
	}
	if len(m.workers) > 0 && rapid.IntRange(0, 4).Draw(rt, "pin") == 0 {
		k.pin = draw(rt, "worker", m.workers).id
	}
	n := model.NewTask{
		Scope: trackertest.Scope, TaskID: k.id, Queue: "q", Type: k.kind, Runtime: k.runtime, WorkerLabels: k.labels, WorkerID: k.pin,
		StartTimeout:      modelStart,
		HeartbeatInterval: 100 * time.Millisecond, HeartbeatTimeout: k.own,
		Retry: &model.RetryPolicy{MaxAttempts: 1000, MaxLosses: 1000, InitialBackoff: modelBackoff, Multiplier: 1, MaxBackoff: modelBackoff},
	}
	m.must(rt, n.Validate(m.store.Clock.Now()))
	_, err := m.tr.Tasks.Create(rt.Context(), n)
	m.must(rt, err)
	m.tasks[k.id] = k
}

func (m *fleetModel) Register(rt *rapid.T) {
	if len(m.workers) >= 6 {
		rt.Skip("enough workers")
	}
	w := &modelWorker{
		kinds: rapid.SampledFrom([][]string{{"x"}, {"y"}, {"x", "y"}}).Draw(rt, "types"), max: rapid.IntRange(1, 4).Draw(rt,
			"max"), status: model.Online, last: m.L,
		runtimes: rapid.SampledFrom([][]string{nil, {"go"}}).Draw(rt, "runtimes"),
		labels:   rapid.SampledFrom([]map[string]string{nil, {"zone": "a"}, {"zone": "b", "gpu": "no"}}).Draw(rt, "labels"),
		machine:  fmt.Sprintf("m%d", len(m.workers)%3), name: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "name"),
	}
	if m.drained[w.machine] {
		w.status, w.drain = model.Draining, waitsForMachine
	}
	n := model.NewWorker{Scope: trackertest.Scope, Queue: "q", Types: w.kinds, Runtimes: w.runtimes, Labels: w.labels, MaxConcurrent: w.max,
		MachineID: w.machine, Name: w.name}
	m.must(rt, n.Validate())
	r, err := m.tr.Workers.Register(rt.Context(), n)
	if m.holds[w.lineage()] != nil || m.heldMachines[w.machine] {
		m.code(rt, "register", err, workers.WorkerHeld)
		return
	}
	m.must(rt, err)
	w.id = r.WorkerID
	m.workers[fmt.Sprintf("w%d", len(m.workers))] = w
}

func (w *modelWorker) canRun(k *queueTask) bool {
	for key, v := range k.labels {
		if w.labels[key] != v {
			return false
		}
	}
	return (k.pin == "" || k.pin == w.id) && (k.kind == "" || slices.Contains(w.kinds, k.kind)) &&
		(k.runtime == "" || slices.Contains(w.runtimes, k.runtime))
}

func (m *fleetModel) held(w *modelWorker) (held []*queueTask) {
	for _, k := range m.tasks {
		if k.holder == w.id && (k.state == model.Dispatched || k.state == model.Running) {
			held = append(held, k)
		}
	}
	return held
}

func (m *fleetModel) Claim(rt *rapid.T) {
	w := draw(rt, "worker", m.workers)
	most := rapid.IntRange(1, 5).Draw(rt, "max")
	starts := rapid.Bool().Draw(rt, "starts")
	tasks, err := m.tr.Queues.Claim(rt.Context(), queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: w.id, Queue: "q", Max: most,
		Start: starts})
	if w.status != model.Offline {
		w.last = m.L // a claim counts as a beat
	}
	switch {
	case w.missedNotice, w.status == model.Draining:
		m.code(rt, "claim", err, workers.WorkerDraining)
		return
	case w.status == model.Offline:
		m.code(rt, "claim", err, workers.WorkerOffline)
		return
	}
	m.code(rt, "claim", err, "")
	runnable := map[string]bool{}
	for _, k := range m.tasks {
		if k.state == model.Queued && !k.readyAt.After(m.store.Clock.Now()) && w.canRun(k) && !m.paused {
			runnable[k.id] = true
		}
	}
	capacity := min(most, w.max-len(m.held(w)))
	if w.cordoned {
		capacity = 0
	}
	if len(tasks) > capacity || len(tasks) == 0 && capacity > 0 && len(runnable) > 0 {
		rt.Fatalf("claimed %v with room for %d of %v", trackertest.IDs(tasks), capacity, runnable)
	}
	for _, e := range tasks {
		k := m.tasks[e.Task.ID]
		if !runnable[k.id] {
			rt.Fatalf("claimed %s, which is %s and requires %q %q %v %q; the worker has %+v", k.id, k.state, k.kind, k.runtime, k.labels, k.pin, w)
		}
		if e.Attempt.Number != k.attempt+1 || k.attempts[e.Attempt.Number] != nil {
			rt.Fatalf("claimed attempt %d of %s after attempt %d", e.Attempt.Number, k.id, k.attempt)
		}
		delete(runnable, k.id)
		k.state, k.attempt, k.holder, k.mayStart = model.Dispatched, e.Attempt.Number, w.id, m.L+modelStart
		k.attempts[e.Attempt.Number] = e.Attempt
		if starts {
			k.state, k.last = model.Running, m.L
		}
	}
}

// Beat sends a beat of any attempt, current or not.
func (m *fleetModel) Beat(rt *rapid.T) {
	k := draw(rt, "task", m.tasks)
	if k.attempt == 0 {
		rt.Skip("never claimed")
	}
	n := rapid.IntRange(1, k.attempt).Draw(rt, "attempt")
	b := &beats.Beat{Attempt: k.attempts[n]}
	m.tr.Beats.Beat(b)
	live := n == k.attempt && (k.state == model.Dispatched || k.state == model.Running)
	if (b.Err == nil) != live {
		rt.Fatalf("beat of attempt %d of %s, which is %s in attempt %d: %v", n, k.id, k.state, k.attempt, b.Err)
	}
	if live {
		k.state, k.last = model.Running, m.L
	}
}

func (m *fleetModel) Complete(rt *rapid.T) {
	k := draw(rt, "task", m.tasks)
	if k.attempt == 0 {
		rt.Skip("never claimed")
	}
	n := rapid.IntRange(1, k.attempt).Draw(rt, "attempt")
	outcome := rapid.SampledFrom([]model.State{model.Succeeded, model.Failed}).Draw(rt, "outcome")
	done, err := m.tr.Beats.Complete(rt.Context(), k.attempts[n],
		model.Completion{Outcome: outcome, Retryable: true, Error: json.RawMessage(`{"category":"USER_CODE"}`)})
	live := n == k.attempt && (k.state == model.Dispatched || k.state == model.Running)
	switch {
	case !live:
		return // the other model knows which repeats are accepted; later checks show that nothing changed
	case err != nil:
		rt.Fatalf("completion of %s: %v", k.id, err)
	case outcome == model.Failed:
		if !done.WillRetry {
			rt.Fatalf("%s will not be tried again", k.id)
		}
		k.state, k.readyAt = model.Queued, m.store.Clock.Now().Add(modelBackoff)
	default:
		k.state = model.Succeeded
	}
}

// Die makes a worker fall silent.
func (m *fleetModel) Die(rt *rapid.T) { draw(rt, "worker", m.workers).dead = true }

// End deregisters a worker, or makes an operator end it.
func (m *fleetModel) End(rt *rapid.T) {
	w := draw(rt, "worker", m.workers)
	reason := rapid.SampledFrom([]model.WorkerReason{model.WorkerDeregistered, model.WorkerForced}).Draw(rt, "reason")
	_, err := m.tr.Workers.Retire(rt.Context(), trackertest.Scope, w.id, reason, "")
	m.must(rt, err)
	m.ended(w, reason == model.WorkerForced)
	if reason == model.WorkerForced && !m.isHeld(w) {
		w.held, m.holds[w.lineage()] = true, w
	}
}

// isHeld reports whether an operator holds the worker offline: resuming one of a lineage lifts the hold of all.
func (m *fleetModel) isHeld(w *modelWorker) bool { return w.held && m.holds[w.lineage()] != nil }

func (m *fleetModel) ended(w *modelWorker, loss bool) {
	if w.status == model.Offline {
		return
	}
	for _, k := range m.held(w) {
		k.state, k.readyAt = model.Queued, m.store.Clock.Now()
		if loss {
			m.lost(k)
		}
	}
	w.status = model.Offline
}

func (m *fleetModel) lost(k *queueTask) {
	k.state, k.readyAt = model.Queued, m.store.Clock.Now().Add(modelBackoff)
	k.losses++
}

func (m *fleetModel) Pause(rt *rapid.T) {
	if m.paused = !m.paused; m.paused {
		_, err := m.tr.Queues.Pause(rt.Context(), trackertest.Scope, "q", "")
		m.must(rt, err)
	} else {
		m.must(rt, m.tr.Queues.Resume(rt.Context(), trackertest.Scope, "q"))
	}
}

// Step lets time pass: live workers beat, and sweepers sweep.
func (m *fleetModel) Step(rt *rapid.T) {
	for range rapid.IntRange(1, 8).Draw(rt, "halves") {
		for range 2 {
			m.store.Clock.Advance(250 * time.Millisecond)
			m.L += 250 * time.Millisecond
			m.must(rt, m.tr.Beats.Tick())
		}
		for _, w := range m.workers {
			if w.dead {
				continue
			}
			_, err := m.tr.Workers.Beat(rt.Context(), trackertest.Scope, w.id, workers.WorkerBeat{})
			if w.status == model.Offline && !w.missedNotice {
				m.code(rt, "beat of a worker", err, workers.WorkerOffline)
				continue
			}
			m.must(rt, err)
			w.missedNotice, w.notified, w.last = false, w.status == model.Draining, m.L
		}
		m.sweep(rt)
	}
}

func (m *fleetModel) sweep(rt *rapid.T) {
	_, err := m.sweeper.RunOnce(rt.Context())
	m.must(rt, err)
	for _, k := range m.tasks {
		switch {
		case k.state == model.Running && k.own > 0 && m.L-k.last > k.own, k.state == model.Dispatched && k.mayStart <= m.L:
			m.lost(k)
		}
	}
	for _, w := range m.workers {
		switch {
		case w.status != model.Offline && m.L-w.last >= modelTimeout:
			m.ended(w, true)
		case w.status == model.Draining && w.drain != waitsForMachine && len(m.held(w)) == 0:
			m.drainOver(rt, w)
		}
	}
}

// Check runs after every operation: each task and each worker reads as in the model. It reads all of them at once.
func (m *fleetModel) Check(rt *rapid.T) {
	depth := 0
	tasks, err := m.tr.Tasks.List(rt.Context(), model.TaskFilter{Scope: trackertest.Scope, PageSize: 100})
	m.must(rt, err)
	if len(tasks.Tasks) != len(m.tasks) {
		rt.Fatalf("%d tasks are listed; the model has %d", len(tasks.Tasks), len(m.tasks))
	}
	for _, task := range tasks.Tasks {
		k := m.tasks[task.ID]
		if task.State != k.state || task.Attempt != k.attempt || task.Losses != k.losses {
			rt.Fatalf("%s is %s in attempt %d with %d losses; in the model %s, %d, %d\n%+v", k.id, task.State, task.Attempt, task.Losses, k.state,
				k.attempt, k.losses, task.History)
		}
		if (k.state == model.Dispatched || k.state == model.Running) && task.WorkerID != k.holder {
			rt.Fatalf("%s is held by %s; in the model by %s", k.id, task.WorkerID, k.holder)
		}
		if k.state == model.Queued && task.NextAttemptAt.IsZero() {
			depth++
		}
	}
	workers, err := m.tr.Workers.List(rt.Context(), workers.WorkerFilter{Scope: trackertest.Scope, PageSize: 100})
	m.must(rt, err)
	if len(workers.Workers) != len(m.workers) {
		rt.Fatalf("%d workers are listed; the model has %d", len(workers.Workers), len(m.workers))
	}
	for _, w := range m.workers {
		i := slices.IndexFunc(workers.Workers, func(got *model.Worker) bool { return got.ID == w.id })
		if i < 0 {
			rt.Fatalf("%s is not listed", w.id)
		}
		if got := workers.Workers[i]; got.Status != w.status || got.Held != len(m.held(w)) || (got.Cordon != nil) != w.cordoned ||
			(got.Hold != nil) != m.isHeld(w) {
			rt.Fatalf("%s is %s and holds %d, cordoned: %v; in the model %s, %d, %v", w.id, got.Status, got.Held, got.Cordon, w.status,
				len(m.held(w)), w.cordoned)
		}
	}
	list, err := m.tr.Queues.List(rt.Context(), trackertest.Scope)
	m.must(rt, err)
	is, want := &queues.Queue{Workers: map[model.WorkerStatus]int{}}, map[model.WorkerStatus]int{}
	waiting, running := 0, 0
	for _, q := range list {
		waiting += q.Depth()
		is.Running += q.Running
		for status, n := range q.Workers {
			is.Workers[status] += n
		}
	}
	for _, k := range m.tasks {
		if k.state == model.Dispatched || k.state == model.Running {
			running++
		}
	}
	for _, w := range m.workers {
		want[w.status]++
	}
	if waiting != depth || is.Running != running || !maps.Equal(is.Workers, want) {
		rt.Fatalf("%d tasks wait to be claimed, %d run, workers are %v; in the model %d, %d, %v", waiting, is.Running, is.Workers, depth,
			running, want)
	}
}
