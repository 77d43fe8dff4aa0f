package tracker_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sort"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// TestModel drives random operations, with the clock in hand, against a plain model of a task's life: no Redis,
// no scripts, no sorted sets; only what the design says must happen.
func TestModel(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		rapid.Check(t, func(rt *rapid.T) {
			if err := s.Client.FlushDB(t.Context()).Err(); err != nil {
				rt.Fatal(err)
			}
			s.Clock.Set(s.Clock.Now()) // the flush took the test's clock along
			tr, err := tracker.Open(t.Context(), tracker.Options{
				RedisURL: s.URL, Scripts: s.Scripts, RedisTimeout: 10 * time.Second, Shards: 2, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			})
			if err != nil {
				rt.Fatal(err)
			}
			defer func() { _ = tr.Close(t.Context()) }()
			m := &machine{tr: tr, store: s, sweeper: tracker.NewSweeper(tr, tracker.SweeperOptions{ID: "swp_m"}), tasks: map[string]*modelTask{}}
			m.now = s.Clock.Now()
			m.must(rt, tr.Tick())
			m.hire(rt)
			rt.Repeat(rapid.StateMachineActions(m))
		})
	})
}

// modelTask is what the model knows of a task.
type modelTask struct {
	id       string
	queue    bool
	policy   tracker.RetryPolicy
	timeout  time.Duration
	run      time.Duration
	grace    time.Duration
	deadline time.Time

	state    tracker.State
	reason   tracker.Reason
	attempt  int
	attempts map[int]*tracker.Attempt
	ended    map[int]string // outcome with which an attempt ended
	retried  map[int]bool
	last     time.Duration // shard time of the last beat
	begun    time.Duration
	startBy  time.Duration
	told     time.Duration // of the cancel; 0: not yet
	patience time.Duration // that it has from then on
	cancel   bool
	readyAt  time.Time
	failures int
	losses   int
	lastEnd  tracker.Reason // of the current attempt while QUEUED
	fenced   bool           // the current attempt was given up on request
}

const manyTasks = 12

type machine struct {
	tr      *tracker.Tracker
	store   *redistest.Store
	sweeper *tracker.Sweeper
	worker  string        // that claims
	heard   time.Duration // shard time when it has beaten last
	tasks   map[string]*modelTask
	n       int
	now     time.Time
	L       time.Duration // shard time since the start, the same in every shard: all are ticked together
}

// hire registers a worker that can run all tasks.
func (m *machine) hire(rt *rapid.T) {
	n := trackertest.NewWorker(func(n *tracker.NewWorker) { n.Queue, n.Types, n.MaxConcurrent = "q", nil, manyTasks })
	for i := range manyTasks {
		n.Types = append(n.Types, modelID(i+1))
	}
	m.must(rt, n.Validate())
	r, err := m.tr.Register(rt.Context(), n)
	m.must(rt, err)
	m.worker = r.WorkerID
}

func modelID(n int) string { return fmt.Sprintf("t%02d", n) }

func (m *machine) must(rt *rapid.T, err error) {
	if err != nil {
		rt.Fatalf("%v", err)
	}
}

func (m *machine) pick(rt *rapid.T) *modelTask {
	if len(m.tasks) == 0 {
		rt.Skip("no task yet")
	}
	ids := make([]string, 0, len(m.tasks))
	for id := range m.tasks {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	return m.tasks[rapid.SampledFrom(ids).Draw(rt, "task")]
}

func (m *machine) Create(rt *rapid.T) {
	if m.n >= manyTasks {
		rt.Skip("enough tasks")
	}
	m.n++
	k := &modelTask{
		id: modelID(m.n), queue: rapid.Bool().Draw(rt,
			"queue"), attempts: map[int]*tracker.Attempt{}, ended: map[int]string{}, retried: map[int]bool{},
		timeout: rapid.SampledFrom([]time.Duration{time.Second, 2 * time.Second, 3 * time.Second}).Draw(rt, "timeout"),
		grace:   rapid.SampledFrom([]time.Duration{500 * time.Millisecond, 2 * time.Second}).Draw(rt, "grace"),
	}
	n := tracker.NewTask{Scope: trackertest.Scope, TaskID: k.id, RunID: "r1", HeartbeatInterval: 400 * time.Millisecond,
		HeartbeatTimeout: k.timeout, CancelGrace: k.grace}
	if rapid.Bool().Draw(rt, "deadline?") {
		k.deadline = m.now.Add(rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Second}).Draw(rt, "deadline"))
		n.Deadline = k.deadline
	}
	if rapid.Bool().Draw(rt, "run timeout?") {
		k.run = 4 * time.Second
		n.RunTimeout = k.run
	}
	n.StartTimeout = 3 * time.Second
	if k.queue {
		n.Queue, n.Type = "q", k.id
		k.policy = tracker.RetryPolicy{MaxAttempts: rapid.IntRange(1, 3).Draw(rt, "maxAttempts"),
			MaxLosses:      rapid.IntRange(0, 2).Draw(rt, "maxLosses"),
			InitialBackoff: 500 * time.Millisecond, Multiplier: 2, MaxBackoff: 1500 * time.Millisecond}
		n.Retry = &k.policy
		if rapid.Bool().Draw(rt, "notBefore?") && (k.deadline.IsZero() || k.deadline.After(m.now.Add(time.Second))) {
			n.NotBefore = m.now.Add(time.Second)
			k.readyAt = n.NotBefore
		}
	}
	m.must(rt, n.Validate(m.now))
	c, err := m.tr.Create(rt.Context(), n)
	m.must(rt, err)
	k.state = tracker.Queued
	if !k.queue {
		m.dispatched(k, c.Envelope.Attempt)
	}
	m.tasks[k.id] = k
	_, err = m.tr.Create(rt.Context(), n)
	m.code(rt, "create again", err, tracker.Exists)
}

func (m *machine) dispatched(k *modelTask, a *tracker.Attempt) {
	k.state, k.attempt, k.attempts[a.Number] = tracker.Dispatched, a.Number, a
	k.startBy, k.cancel, k.told, k.readyAt, k.reason, k.fenced = m.L+3*time.Second, false, 0, time.Time{}, "", false
}

func (m *machine) code(rt *rapid.T, what string, err error, want tracker.Code) {
	if got := tracker.CodeOf(err); got != want {
		rt.Fatalf("%s: %q, the model says %q (%v)", what, got, want, err)
	}
}

// refusal is what the model says about a callback of an attempt; "" : it is let in.
func (k *modelTask) refusal(n int, beat bool) tracker.Code {
	ended := func() tracker.Code {
		if beat {
			return tracker.Expired
		}
		return tracker.AlreadyTerminal
	}
	switch {
	case n < k.attempt, k.fenced && k.state == tracker.Queued:
		return tracker.AttemptMismatch
	case k.state == tracker.Dispatched || k.state == tracker.Running:
		return ""
	case k.state == tracker.Queued && k.lastEnd != tracker.WorkerReported, k.state == tracker.Failed && k.reason != tracker.WorkerReported,
		k.reason == tracker.Terminated:
		return ended()
	}
	return tracker.AlreadyTerminal
}

func (m *machine) anyAttempt(rt *rapid.T) (*modelTask, *tracker.Attempt) {
	k := m.pick(rt)
	if k.attempt == 0 {
		rt.Skip("never dispatched")
	}
	n := k.attempt
	if n > 1 && rapid.IntRange(0, 3).Draw(rt, "old attempt") == 0 {
		n = rapid.IntRange(1, n-1).Draw(rt, "attempt")
	}
	return k, k.attempts[n]
}

func (m *machine) begin(k *modelTask) {
	if k.state == tracker.Dispatched {
		k.state, k.begun = tracker.Running, m.L
	}
	k.last = m.L
}

func (m *machine) Start(rt *rapid.T) {
	k, a := m.anyAttempt(rt)
	_, err := m.tr.Start(rt.Context(), a, tracker.Report{WorkerID: "w"})
	want := k.refusal(a.Number, false)
	m.code(rt, "start", err, want)
	if want == "" {
		m.begin(k)
	}
}

func (m *machine) Beat(rt *rapid.T) {
	k, a := m.anyAttempt(rt)
	b := &tracker.Beat{Attempt: a, Report: rapid.SampledFrom([]string{"", "\tw\t40\t\"m\"", "\t\t50\t"}).Draw(rt, "report")}
	m.tr.Beat(b)
	want := k.refusal(a.Number, true)
	m.code(rt, "beat", b.Err, want)
	if want != "" {
		return
	}
	m.begin(k)
	if (b.Cancel != nil) != k.cancel || b.Cancel != nil && b.Cancel.Delivered != (k.told != 0) {
		rt.Fatalf("cancel in the reply: %+v, the model says %v, delivered %v", b.Cancel, k.cancel, k.told != 0)
	}
	if k.cancel && k.told == 0 && rapid.Bool().Draw(rt, "delivered") {
		m.tr.CancelDelivered(a)
		for delivered := false; !delivered; { // recorded in the background: ask until it is
			m.tr.Beat(b)
			m.must(rt, b.Err)
			delivered = b.Cancel.Delivered
		}
		k.told = m.L
	}
}

func (m *machine) Complete(rt *rapid.T) {
	k, a := m.anyAttempt(rt)
	c := tracker.Completion{Outcome: rapid.SampledFrom([]tracker.State{tracker.Succeeded, tracker.Failed, tracker.Cancelled}).Draw(rt,
		"outcome")}
	if c.Outcome == tracker.Failed {
		c.Retryable, c.Error = rapid.Bool().Draw(rt, "retryable"), json.RawMessage(`{"category":"USER_CODE"}`)
	}
	done, err := m.tr.Complete(rt.Context(), a, c)
	if k.ended[a.Number] == string(c.Outcome) {
		m.code(rt, "the same completion again", err, "")
		if done.WillRetry != k.retried[a.Number] {
			rt.Fatalf("will retry: %v, first %v", done.WillRetry, k.retried[a.Number])
		}
		return
	}
	want := k.refusal(a.Number, false)
	m.code(rt, "complete", err, want)
	if want != "" {
		return
	}
	k.ended[a.Number] = string(c.Outcome)
	if c.Outcome == tracker.Failed && c.Retryable && k.retry(false) {
		k.retried[a.Number] = true
		m.requeued(k, tracker.WorkerReported)
	} else {
		m.finished(k, c.Outcome, tracker.WorkerReported)
	}
	if done.WillRetry != k.retried[a.Number] || done.Outcome != c.Outcome || done.WillRetry && done.NextAttempt != a.Number+1 {
		rt.Fatalf("%+v, the model says retry %v", done, k.retried[a.Number])
	}
}

func (k *modelTask) retry(loss bool) bool {
	if !k.queue || k.cancel {
		return false
	}
	if loss {
		k.losses++
		return k.losses <= k.policy.MaxLosses
	}
	k.failures++
	return k.failures < k.policy.MaxAttempts
}

func (m *machine) requeued(k *modelTask, why tracker.Reason) {
	backoff := k.policy.InitialBackoff
	for range k.failures + k.losses - 1 {
		backoff *= 2
	}
	k.state, k.lastEnd, k.readyAt = tracker.Queued, why, m.now.Add(min(backoff, k.policy.MaxBackoff))
}

func (m *machine) finished(k *modelTask, s tracker.State, r tracker.Reason) {
	k.state, k.reason, k.readyAt = s, "", time.Time{}
	if s == tracker.Failed || r == tracker.Terminated {
		k.reason = r
	}
}

func (m *machine) Cancel(rt *rapid.T) {
	k := m.pick(rt)
	how := tracker.CancelRequest{Reason: "why"}
	switch rapid.SampledFrom([]string{"its own", "its own", "another", "none"}).Draw(rt, "grace") {
	case "another":
		how.Grace = 1500 * time.Millisecond
	case "none":
		how.Now = true
	}
	_, err := m.tr.Cancel(rt.Context(), trackertest.Scope, k.id, how)
	if k.state.Terminal() && !(k.state == tracker.Cancelled && k.cancel) {
		m.code(rt, "cancel", err, tracker.AlreadyTerminal)
		return
	}
	m.code(rt, "cancel", err, "")
	switch {
	case k.state == tracker.Cancelled:
	case how.Now:
		m.terminated(k)
	case k.state == tracker.Running:
		if how.Grace != 0 || !k.cancel {
			k.patience = cmp.Or(how.Grace, k.grace)
		}
	default:
		if k.state == tracker.Dispatched {
			k.ended[k.attempt] = string(tracker.Cancelled)
		}
		m.finished(k, tracker.Cancelled, "")
	}
	k.cancel = true
}

// terminated ends a task without waiting for its worker.
func (m *machine) terminated(k *modelTask) {
	if k.state != tracker.Queued {
		k.ended[k.attempt] = string(tracker.Terminated)
	}
	m.finished(k, tracker.Cancelled, tracker.Terminated)
}

func (m *machine) NextAttempt(rt *rapid.T) {
	k := m.pick(rt)
	from := k.attempt
	if from > 1 && rapid.IntRange(0, 4).Draw(rt, "stale") == 0 {
		from--
	}
	c, err := m.tr.NextAttempt(rt.Context(), trackertest.Scope, k.id, from)
	late := !k.deadline.IsZero() && !k.deadline.After(m.now)
	switch {
	case from == k.attempt-1:
		m.code(rt, "the same attempt again", err, "")
		if c.Envelope != nil && c.Envelope.Attempt.Fence != k.attempts[k.attempt].Fence {
			rt.Fatalf("the same attempt again has another fence")
		}
		return
	case k.state == tracker.Succeeded || k.state == tracker.Cancelled, late, k.cancel && k.state == tracker.Running:
		m.code(rt, "next attempt", err, tracker.AlreadyTerminal)
		return
	}
	m.code(rt, "next attempt", err, "")
	if !k.queue {
		m.dispatched(k, c.Envelope.Attempt)
		return
	}
	if k.state == tracker.Failed {
		k.lastEnd, k.cancel, k.told = k.reason, false, 0
	} else if k.state != tracker.Queued {
		k.fenced = true
	}
	k.state, k.reason, k.readyAt = tracker.Queued, "", time.Time{}
}

// Claim has the worker ask for one task, by its type, which no other task has.
func (m *machine) Claim(rt *rapid.T) {
	k := m.pick(rt)
	got, err := m.tr.Claim(rt.Context(), tracker.ClaimRequest{Scope: trackertest.Scope, WorkerID: m.worker, Queue: "q",
		Types: []string{k.id}, Max: 1})
	m.must(rt, err)
	waits := k.state == tracker.Queued && !k.readyAt.After(m.now)
	if (len(got) == 1) != waits || waits && got[0].Task.ID != k.id {
		rt.Fatalf("claimed %v, the model says that %s waits: %v", trackertest.IDs(got), k.id, waits)
	}
	if waits {
		m.dispatched(k, got[0].Attempt)
	}
}

// Step lets time pass while front ends are alive, sweeping as it goes, as sweepers do.
func (m *machine) Step(rt *rapid.T) {
	for range rapid.IntRange(1, 8).Draw(rt, "quarters") {
		m.store.Clock.Advance(250 * time.Millisecond)
		m.now, m.L = m.now.Add(250*time.Millisecond), m.L+250*time.Millisecond
		m.must(rt, m.tr.Tick())
		m.sweep(rt)
	}
}

// Outage lets wall time pass while no beat can land: shard time moves by one step at most.
func (m *machine) Outage(rt *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{time.Second, 4 * time.Second}).Draw(rt, "outage")
	m.store.Clock.Advance(d)
	m.now, m.L = m.now.Add(d), m.L+250*time.Millisecond
	m.must(rt, m.tr.Tick())
	m.sweep(rt)
}

func (m *machine) sweep(rt *rapid.T) {
	if m.L-m.heard > 5*time.Second {
		m.heard = m.L
		_, err := m.tr.BeatWorker(rt.Context(), trackertest.Scope, m.worker, tracker.WorkerBeat{})
		m.must(rt, err)
	}
	_, err := m.sweeper.RunOnce(rt.Context())
	m.must(rt, err)
	for _, k := range m.tasks {
		m.verdict(k)
	}
}

// verdict is what a sweep does to one task, in the order in which the sweeper looks: beats, timers, deadlines.
func (m *machine) verdict(k *modelTask) {
	lose := func(r tracker.Reason, retryable, loss bool) {
		if retryable && k.retry(loss) {
			m.requeued(k, r)
		} else {
			m.finished(k, tracker.Failed, r)
		}
	}
	running := func() bool { return k.state == tracker.Running }
	if running() && m.L-k.last > k.timeout {
		lose(tracker.HeartbeatTimeout, true, true)
	}
	type timer struct {
		at     time.Duration
		expire func()
	}
	var timers []timer
	if k.state == tracker.Dispatched {
		timers = append(timers, timer{k.startBy, func() { lose(tracker.StartTimeout, true, true) }})
	}
	if running() && k.run > 0 {
		timers = append(timers, timer{k.begun + k.run, func() { lose(tracker.RunTimeout, true, false) }})
	}
	if running() && k.told > 0 {
		timers = append(timers, timer{k.told + k.patience, func() { lose(tracker.CancelTimeout, false, false) }})
	}
	// Of two timers the earlier one wins; at the same moment the sorted set goes by name: c before r.
	sort.SliceStable(timers, func(i, j int) bool { return timers[i].at < timers[j].at })
	if len(timers) == 2 && timers[0].at == timers[1].at {
		timers[0], timers[1] = timers[1], timers[0]
	}
	if len(timers) > 0 && timers[0].at <= m.L {
		timers[0].expire()
	}
	if !k.deadline.IsZero() && !k.deadline.After(m.now) && !k.state.Terminal() {
		lose(tracker.DeadlineExceeded, false, false)
	}
	if k.state == tracker.Queued && !k.readyAt.IsZero() && !k.readyAt.After(m.now) {
		k.readyAt = time.Time{}
	}
}

// agree compares a task as it was read with the model.
func (m *machine) agree(rt *rapid.T, task *tracker.Task) {
	k := m.tasks[task.ID]
	if k == nil {
		rt.Fatalf("%s was never created", task.ID)
	}
	if task.State != k.state || task.Reason != k.reason || task.Attempt != k.attempt {
		rt.Fatalf("%s is %s %q attempt %d; the model says %s %q attempt %d", k.id, task.State, task.Reason, task.Attempt, k.state, k.reason,
			k.attempt)
	}
	if !task.NextAttemptAt.Equal(k.readyAt) {
		rt.Fatalf("%s next attempt at %v; the model says %v", k.id, task.NextAttemptAt, k.readyAt)
	}
	if task.Failures != k.failures || task.Losses != k.losses {
		rt.Fatalf("%s counts %d failures, %d losses; the model says %d, %d", k.id, task.Failures, task.Losses, k.failures, k.losses)
	}
	if k.state == tracker.Running {
		if want := m.L-k.last > k.timeout; (task.Liveness == tracker.Lost) != want {
			rt.Fatalf("%s is %s after %v of %v", k.id, task.Liveness, m.L-k.last, k.timeout)
		}
	}
}

// list reads the tasks in a state, or all, and compares each, and how many there are.
func (m *machine) list(rt *rapid.T, s tracker.State) {
	f := tracker.TaskFilter{Scope: trackertest.Scope, PageSize: 100}
	if s != "" {
		f.States = []tracker.State{s}
	}
	page, err := m.tr.List(rt.Context(), f)
	m.must(rt, err)
	want := 0
	for _, k := range m.tasks {
		if s == "" || k.state == s {
			want++
		}
	}
	if page.Total != want || len(page.Tasks) != want {
		rt.Fatalf("state %q: total %d, listed %d; the model says %d", s, page.Total, len(page.Tasks), want)
	}
	for _, task := range page.Tasks {
		m.agree(rt, task)
	}
}

// Read reads one task by itself, and the tasks of each state.
func (m *machine) Read(rt *rapid.T) {
	task, err := m.tr.Get(rt.Context(), trackertest.Scope, m.pick(rt).id)
	m.must(rt, err)
	m.agree(rt, task)
	for _, s := range tracker.States {
		m.list(rt, s)
	}
}

// Check holds after every operation: each task reads as the model says, and its run counts it so. It asks for all of
// them at once: asking one by one would take most of the test's time.
func (m *machine) Check(rt *rapid.T) {
	m.list(rt, "")
	if len(m.tasks) == 0 {
		return
	}
	counts := map[tracker.State]int{}
	for _, k := range m.tasks {
		counts[k.state]++
	}
	run, err := m.tr.Run(rt.Context(), trackertest.Scope, "r1")
	m.must(rt, err)
	for _, s := range tracker.States {
		if run.Counts[s] != counts[s] {
			rt.Fatalf("the run counts %d %s; the model says %d", run.Counts[s], s, counts[s])
		}
	}
}
