package tracker_test

import (
	"cmp"
	"encoding/json"
	"time"

	"pgregory.net/rapid"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// Operations on a task, and their results in the model.

func (m *machine) Create(rt *rapid.T) {
	if m.n >= manyTasks {
		rt.Skip("enough tasks")
	}
	m.n++
	k := &modelTask{
		id: modelID(m.n), queue: rapid.Bool().Draw(rt,
			"queue"), attempts: map[int]*model.Attempt{}, ended: map[int]string{}, retried: map[int]bool{},
		timeout: rapid.SampledFrom([]time.Duration{time.Second, 2 * time.Second, 3 * time.Second}).Draw(rt, "timeout"),
		grace:   rapid.SampledFrom([]time.Duration{500 * time.Millisecond, 2 * time.Second}).Draw(rt, "grace"),
		start:   3 * time.Second,
	}
	n := model.NewTask{Scope: trackertest.Scope, TaskID: k.id, RunID: "r1", HeartbeatInterval: 400 * time.Millisecond,
		HeartbeatTimeout: k.timeout, CancelGrace: k.grace}
	if rapid.Bool().Draw(rt, "deadline?") {
		k.deadline = m.now.Add(rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Second}).Draw(rt, "deadline"))
		n.Deadline = k.deadline
	}
	if rapid.Bool().Draw(rt, "run timeout?") {
		k.run = 4 * time.Second
		n.RunTimeout = k.run
	}
	n.StartTimeout = k.start
	if k.queue {
		n.Queue, n.Type = "q", k.id
		k.policy = model.RetryPolicy{MaxAttempts: rapid.IntRange(1, 3).Draw(rt, "maxAttempts"),
			MaxLosses:      rapid.IntRange(0, 2).Draw(rt, "maxLosses"),
			InitialBackoff: 500 * time.Millisecond, Multiplier: 2, MaxBackoff: 1500 * time.Millisecond}
		n.Retry = &k.policy
		if rapid.Bool().Draw(rt, "notBefore?") && (k.deadline.IsZero() || k.deadline.After(m.now.Add(time.Second))) {
			n.RunAt = m.now.Add(time.Second)
			k.readyAt = n.RunAt
		}
	}
	m.must(rt, n.Validate(m.now))
	c, err := m.tr.Tasks.Create(rt.Context(), n)
	m.must(rt, err)
	k.state = model.Queued
	if !k.queue {
		m.dispatched(k, c.Envelope.Attempt)
	}
	m.tasks[k.id] = k
	_, err = m.tr.Tasks.Create(rt.Context(), n)
	m.code(rt, "create again", err, model.Exists)
}

func (m *machine) dispatched(k *modelTask, a *model.Attempt) {
	k.state, k.attempt, k.attempts[a.Number] = model.Dispatched, a.Number, a
	k.startBy, k.cancel, k.cancelDelivered, k.readyAt, k.reason, k.fenced = m.L+k.start, false, 0, time.Time{}, "", false
}

func (m *machine) code(rt *rapid.T, what string, err error, want model.Code) {
	if got := model.CodeOf(err); got != want {
		rt.Fatalf("%s: %q, in the model %q (%v)", what, got, want, err)
	}
}

// refusal returns the model's error for a callback of an attempt; "": it is accepted.
func (k *modelTask) refusal(a *model.Attempt, beat bool) model.Code {
	ended := func() model.Code {
		if beat {
			return model.Expired
		}
		return model.AlreadyTerminal
	}
	newer := a.Number > k.attempt // only a lost primary had it
	switch {
	case newer && k.reason == model.DeadlineExceeded:
		return ended()
	case newer && (k.state == model.Succeeded || k.state == model.Cancelled):
		return model.AlreadyTerminal
	case newer:
		return ""
	case k.attempts[a.Number] != a, a.Number < k.attempt, k.fenced && k.state == model.Queued:
		return model.AttemptMismatch
	case k.state == model.Dispatched || k.state == model.Running:
		return ""
	case k.state == model.Queued && k.lastEnd != model.WorkerReported && k.lastEnd != model.Reason(model.Snoozed),
		k.state == model.Failed && k.reason != model.WorkerReported,
		k.reason == model.Terminated:
		return ended()
	}
	return model.AlreadyTerminal
}

// anyAttempt picks any attempt so far, also one of a lost primary.
func (m *machine) anyAttempt(rt *rapid.T) (*modelTask, *model.Attempt) {
	k := m.pick(rt)
	if len(m.lost) > 0 && rapid.IntRange(0, 3).Draw(rt, "without a record") == 0 {
		k = draw(rt, "task", m.lost)
	}
	if len(k.strays) > 0 && (k.attempt == 0 || rapid.Bool().Draw(rt, "stray")) {
		return k, rapid.SampledFrom(k.strays).Draw(rt, "attempt")
	}
	if k.attempt == 0 {
		rt.Skip("never dispatched")
	}
	n := k.attempt
	if n > 1 && rapid.IntRange(0, 3).Draw(rt, "old attempt") == 0 {
		n = rapid.IntRange(1, n-1).Draw(rt, "attempt")
	}
	if k.attempts[n] == nil {
		rt.Skip("only a primary that was lost had it")
	}
	return k, k.attempts[n]
}

func (m *machine) begin(k *modelTask, a *model.Attempt) {
	if k.attempts[a.Number] != a {
		m.adopted(k, a)
	}
	if k.state == model.Dispatched {
		k.state, k.begun = model.Running, m.L
	}
	k.last = m.L
}

func (m *machine) Start(rt *rapid.T) {
	k, a := m.anyAttempt(rt)
	_, err := m.tr.Beats.Start(rt.Context(), a, model.Report{WorkerID: "w"})
	want := k.refusal(a, false)
	m.code(rt, "start", err, want)
	if want == "" {
		m.begin(k, a)
	}
}

func (m *machine) Beat(rt *rapid.T) {
	k, a := m.anyAttempt(rt)
	b := &beats.Beat{Attempt: a, Report: rapid.SampledFrom([]string{"", "\tw\t40\t\"m\"", "\t\t50\t"}).Draw(rt, "report"),
		Details: rapid.SampledFrom([]string{"", "", "1", "[2]"}).Draw(rt, "details")}
	m.tr.Beats.Beat(b)
	want := k.refusal(a, true)
	m.code(rt, "beat", b.Err, want)
	if want != "" {
		return
	}
	m.begin(k, a)
	k.details = cmp.Or(b.Details, k.details)
	if (b.Cancel != nil) != k.cancel || b.Cancel != nil && b.Cancel.Delivered != (k.cancelDelivered != 0) {
		rt.Fatalf("cancel in the reply: %+v, in the model %v, delivered %v", b.Cancel, k.cancel, k.cancelDelivered != 0)
	}
	if k.cancel && k.cancelDelivered == 0 && rapid.Bool().Draw(rt, "delivered") {
		m.tr.Beats.CancelDelivered(a)
		for until := time.Now().Add(trackertest.Patience); !b.Cancel.Delivered; { // recorded in the background: repeat until it is
			if time.Now().After(until) {
				rt.Fatalf("the delivery of the cancel was not recorded within %v", trackertest.Patience)
			}
			m.tr.Beats.Beat(b)
			m.must(rt, b.Err)
		}
		k.cancelDelivered = m.L
	}
}

func (m *machine) Complete(rt *rapid.T) {
	k, a := m.anyAttempt(rt)
	c := model.Completion{Outcome: rapid.SampledFrom([]model.State{model.Succeeded, model.Failed, model.Cancelled, model.Snoozed}).Draw(rt,
		"outcome")}
	delay := rapid.SampledFrom([]time.Duration{0, 700 * time.Millisecond, -1}).Draw(rt, "retry after")
	if delay >= 0 || c.Outcome == model.Snoozed {
		c.RetryAfter = new(max(0, delay))
	}
	if c.Outcome == model.Failed {
		c.Retryable, c.Error = rapid.Bool().Draw(rt, "retryable"), json.RawMessage(`{"category":"USER_CODE"}`)
	}
	done, err := m.tr.Beats.Complete(rt.Context(), a, c)
	if k.attempts[a.Number] == a && k.ended[a.Number] == string(c.Outcome) {
		m.code(rt, "the same completion again", err, "")
		if done.WillRetry != k.retried[a.Number] {
			rt.Fatalf("will retry: %v, first %v", done.WillRetry, k.retried[a.Number])
		}
		return
	}
	want := k.refusal(a, false)
	if want == "" && c.Outcome == model.Snoozed && !k.queue {
		m.code(rt, "snooze without a queue", err, model.NoQueue)
		if k.attempts[a.Number] != a {
			m.begin(k, a) // its token has restored it
		}
		return
	}
	m.code(rt, "complete", err, want)
	if want != "" {
		return
	}
	m.begin(k, a)
	if c.Outcome == model.Succeeded {
		if k.won != 0 {
			rt.Fatalf("%s: attempt %d has succeeded after attempt %d had", k.id, a.Number, k.won)
		}
		k.won = a.Number
	}
	k.ended[a.Number] = string(c.Outcome)
	switch {
	case c.Outcome == model.Failed && c.Retryable && k.retry(false):
		k.retried[a.Number] = true
		m.requeued(k, model.WorkerReported)
		k.waitFor(m.now, c.RetryAfter)
	case c.Outcome == model.Snoozed && k.cancel:
		m.finished(k, model.Cancelled, model.WorkerReported)
	case c.Outcome == model.Snoozed:
		k.retried[a.Number] = true
		k.state, k.lastEnd = model.Queued, model.Reason(model.Snoozed)
		k.waitFor(m.now, c.RetryAfter)
	default:
		m.finished(k, c.Outcome, model.WorkerReported)
	}
	if done.WillRetry != k.retried[a.Number] || done.Outcome != c.Outcome || done.WillRetry && done.NextAttempt != a.Number+1 {
		rt.Fatalf("%+v, in the model retry %v", done, k.retried[a.Number])
	}
}

// waitFor sets when the task is ready, if its worker has said that.
func (k *modelTask) waitFor(now time.Time, delay *time.Duration) {
	if delay == nil {
		return
	}
	if k.readyAt = (time.Time{}); *delay > 0 {
		k.readyAt = now.Add(*delay)
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

func (m *machine) requeued(k *modelTask, why model.Reason) {
	backoff := k.policy.InitialBackoff
	for range k.failures + k.losses - 1 {
		backoff *= 2
	}
	k.state, k.lastEnd, k.readyAt = model.Queued, why, m.now.Add(min(backoff, k.policy.MaxBackoff))
}

func (m *machine) finished(k *modelTask, s model.State, r model.Reason) {
	k.state, k.reason, k.readyAt = s, "", time.Time{}
	if s == model.Failed || r == model.Terminated {
		k.reason = r
	}
}

func (m *machine) Cancel(rt *rapid.T) {
	k := m.pick(rt)
	how := model.CancelRequest{Reason: "why"}
	switch rapid.SampledFrom([]string{"its own", "its own", "another", "none"}).Draw(rt, "grace") {
	case "another":
		how.Grace = 1500 * time.Millisecond
	case "none":
		how.Now = true
	}
	_, err := m.tr.Tasks.Cancel(rt.Context(), trackertest.Scope, k.id, how)
	if k.state.Terminal() && !(k.state == model.Cancelled && k.cancel) {
		m.code(rt, "cancel", err, model.AlreadyTerminal)
		return
	}
	m.code(rt, "cancel", err, "")
	switch {
	case k.state == model.Cancelled:
	case how.Now:
		m.terminated(k)
	case k.state == model.Running:
		if how.Grace != 0 || !k.cancel {
			k.patience = cmp.Or(how.Grace, k.grace)
		}
	default:
		if k.state == model.Dispatched {
			k.ended[k.attempt] = string(model.Cancelled)
		}
		m.finished(k, model.Cancelled, "")
	}
	k.cancel = true
}

// terminated ends a task without waiting for its worker.
func (m *machine) terminated(k *modelTask) {
	if k.state != model.Queued {
		k.ended[k.attempt] = string(model.Terminated)
	}
	m.finished(k, model.Cancelled, model.Terminated)
}

func (m *machine) NextAttempt(rt *rapid.T) {
	k := m.pick(rt)
	from := k.attempt
	if from > 1 && rapid.IntRange(0, 4).Draw(rt, "stale") == 0 {
		from--
	}
	c, err := m.tr.Tasks.NextAttempt(rt.Context(), trackertest.Scope, k.id, from)
	late := !k.deadline.IsZero() && !k.deadline.After(m.now)
	switch {
	case from == k.attempt-1:
		m.code(rt, "the same attempt again", err, "")
		if c.Envelope != nil && c.Envelope.Attempt.Fence != k.attempts[k.attempt].Fence {
			rt.Fatalf("the same attempt again has another fence")
		}
		return
	case k.state == model.Succeeded || k.state == model.Cancelled, late, k.cancel && k.state == model.Running:
		m.code(rt, "next attempt", err, model.AlreadyTerminal)
		return
	}
	m.code(rt, "next attempt", err, "")
	if !k.queue {
		m.dispatched(k, c.Envelope.Attempt)
		return
	}
	if k.state == model.Failed {
		k.lastEnd, k.cancel, k.cancelDelivered = k.reason, false, 0
	} else if k.state != model.Queued {
		k.fenced = true
	}
	k.state, k.reason, k.readyAt = model.Queued, "", time.Time{}
}

// Claim makes the worker claim one task, by its type, which no other task has.
func (m *machine) Claim(rt *rapid.T) {
	k := m.pick(rt)
	starts := rapid.Bool().Draw(rt, "starts")
	got, err := m.tr.Queues.Claim(rt.Context(), queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: m.worker, Queue: "q",
		Types: []string{k.id}, Max: 1, Start: starts})
	m.must(rt, err)
	waits := k.state == model.Queued && !k.readyAt.After(m.now)
	if (len(got) == 1) != waits || waits && got[0].Task.ID != k.id {
		rt.Fatalf("claimed %v, in the model %s waits: %v", trackertest.IDs(got), k.id, waits)
	}
	if waits {
		m.dispatched(k, got[0].Attempt)
		if last := got[0].LastProgress; k.attempt > 1 && k.details != "" && (last == nil || last.Details != k.details) {
			rt.Fatalf("attempt %d of %s begins with %+v; in the model the details are %s", k.attempt, k.id, last, k.details)
		}
		if starts {
			m.begin(k, got[0].Attempt)
		}
	}
}
