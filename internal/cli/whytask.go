package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// whyTask explains a task.
func whyTask(ctx context.Context, s *session, id string) (*account, error) {
	e, err := tasks.one(ctx, s, id)
	if err != nil {
		return nil, err
	}
	a, t := &account{parts: map[string]json.RawMessage{"task": e.raw}}, e.T
	a.standing(s, t)
	a.asked(s, t)
	for i := range t.History {
		a.attempt(s, &t.History[i])
	}
	if err := a.place(ctx, s, t); err != nil {
		return nil, err
	}
	return a, a.acts(ctx, s, url.Values{"subject": {t.TaskID}}, "--subject "+t.TaskID)
}

// standing describes the state of a task.
func (a *account) standing(s *session, t *v1.Task) {
	what := ""
	if t.Type != nil {
		what += ", type " + *t.Type
	}
	if t.Queue != nil {
		what += ", queue " + *t.Queue
	}
	a.say("Task %s is %s%s, run %s; it was created at %s.", t.TaskID, t.State, what, t.RunID, timeAndAge(s, t.CreatedAt))
	switch t.State {
	case v1.Queued:
		if !t.NextAttemptAt.IsZero() {
			a.say("It waits until %s for its next attempt.", timeText(t.NextAttemptAt))
		}
	case v1.Dispatched:
		a.say("Attempt %d was dispatched to %s at %s and has not started yet.", t.Attempt, worker(t.WorkerID), timeAndAge(s, t.DispatchedAt))
	case v1.Running:
		a.say("Attempt %d has been running on %s since %s and is %s: last heartbeat at %s; %s.", t.Attempt, worker(t.WorkerID), timeAndAge(s, t.StartedAt),
			output.Optional(t.Liveness).Text, timeAndAge(s, t.LastHeartbeatAt), patience(t))
	default:
		reason := ""
		if t.Reason != nil {
			reason = " with the reason " + *t.Reason
		}
		a.say("It ended at %s%s.", timeAndAge(s, t.FinishedAt), reason)
	}
	if said := progressText(&v1.Progress{ProgressPct: t.ProgressPct, Message: t.Message}); said != "" {
		a.say("Last reported progress: %s.", said)
	}
	if t.RetriesExhausted {
		a.say("It was retryable, but its retry policy is exhausted.")
	}
	if t.Failures > 0 || t.Losses > 0 {
		a.say("Counted against its retry policy: %s, %s.", output.Count(t.Failures, "failure"), lossesOf(t.Losses))
	}
}

func worker(id *string) string {
	if id == nil || *id == "" {
		return "an unknown worker"
	}
	return "worker " + *id
}

func lossesOf(n int) string {
	if n == 1 {
		return "1 loss"
	}
	return fmt.Sprintf("%d losses", n)
}

// patience describes how long a task may be silent.
func patience(t *v1.Task) string {
	if t.HeartbeatTimeoutMs == nil {
		return "its worker's heartbeats keep it alive"
	}
	return "it sends heartbeats every " + output.Milliseconds(t.HeartbeatIntervalMs) + " and times out after " +
		output.Milliseconds(*t.HeartbeatTimeoutMs)
}

// asked reports a requested cancellation.
func (a *account) asked(_ *session, t *v1.Task) {
	if !t.CancelRequested {
		return
	}
	reason := "without a reason"
	if t.CancelReason != nil && *t.CancelReason != "" {
		reason = `with the reason "` + *t.CancelReason + `"`
	}
	a.say("Cancellation was requested %s.", reason)
}

// attempt describes how an attempt ended, with its evidence.
func (a *account) attempt(s *session, h *v1.HistoryEntry) {
	reason := ""
	if h.Reason != nil {
		reason = " (" + *h.Reason + ")"
	}
	a.say("Attempt %d on %s, dispatched at %s, ended %s%s at %s.", h.Attempt, worker(h.WorkerID), timeText(h.DispatchedAt), h.Outcome, reason,
		timeAndAge(s, h.EndedAt))
	if h.StartedAt.IsZero() {
		a.say("  It never reported that it had started.")
	}
	if e := h.Evidence; e != nil {
		a.evidence(e)
	} else {
		a.say("  Its worker reported this outcome.")
	}
	if said := progressText(h.LastProgress); said != "" {
		a.say("  Last reported progress: %s.", said)
	}
	if len(h.Error) > 0 && string(h.Error) != "null" {
		a.say("  Its error: %s", output.Shorten(string(h.Error), 400))
	}
	if h.WillRetry {
		a.say("  It was retried.")
	}
	if h.RetriesExhausted {
		a.say("  It was retryable, but its retry policy is exhausted.")
	}
}

func (a *account) evidence(e *v1.Evidence) {
	last := "No heartbeat was received"
	if !e.LastHeartbeatAt.IsZero() {
		last = "Last heartbeat at " + timeText(e.LastHeartbeatAt)
	}
	outages := "no outage time excluded"
	if e.OutageCreditMs > 0 {
		outages = output.Milliseconds(e.OutageCreditMs) + " of outages excluded"
	}
	timeout := ""
	if e.TimeoutMs > 0 {
		timeout = "timeout " + output.Milliseconds(e.TimeoutMs) + "; "
	}
	a.say("  %s; silent for %s (%s%s).", last, output.Milliseconds(e.SilentMs), timeout, outages)
	a.say("  Decided by sweeper %s at %s, %d ms after it was due.", e.Sweeper, timeText(e.DetectedAt), e.DetectionLagMs)
	if e.WorkerReason != "" {
		a.say("  Its worker was lost (%s); the times above are the worker's heartbeats.", e.WorkerReason)
	}
	if e.MassExpiryHeld {
		a.say("  The mass-expiry brake had held it, so it had one more timeout.")
	}
}

// place describes the queue that it waits in, or the worker that runs it.
func (a *account) place(ctx context.Context, s *session, t *v1.Task) error {
	switch {
	case t.State == v1.Queued && t.Queue != nil:
		raw, q, err := get[v1.Queue](ctx, s, queues.at(*t.Queue), nil)
		if missing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		a.parts["queue"] = raw
		a.queue(q, t)
	case (t.State == v1.Running || t.State == v1.Dispatched) && t.WorkerID != nil:
		raw, w, err := get[v1.Worker](ctx, s, workers.at(*t.WorkerID), nil)
		if missing(err) {
			a.say("Its worker %s never registered with this deployment.", *t.WorkerID)
			return nil
		}
		if err != nil {
			return err
		}
		a.parts["worker"] = raw
		a.workerStanding(s, w)
	}
	return nil
}

// missing reports whether something is not there, or not for this token to see.
func missing(err error) bool {
	code := ExitCode(err)
	return code == ExitNotFound || code == ExitNotAllowed
}

func (a *account) queue(q *v1.Queue, t *v1.Task) {
	if q.Paused {
		a.say("Queue %s is paused: no task is dispatched.", q.Queue)
	}
	a.say("Queue %s has %s and %s.", q.Queue, output.Count(q.Depth, "claimable task"),
		output.Count(q.Workers.Online, "online worker"))
	for _, of := range q.Types {
		same := of.Type == nil && t.Type == nil || of.Type != nil && t.Type != nil && *of.Type == *t.Type
		if same && of.Unrunnable > 0 {
			a.say("No online worker can run %d of its type: none has their type, runtime and labels, or the matching workers are cordoned or gone.",
				of.Unrunnable)
		}
	}
}

// progressText is the progress that an attempt reported; empty: none.
func progressText(p *v1.Progress) string {
	if p == nil {
		return ""
	}
	var parts []string
	if done := percent(p.ProgressPct).Text; done != "" {
		parts = append(parts, done)
	}
	if said := words(p.Message).Text; said != "" {
		parts = append(parts, `"`+said+`"`)
	}
	return strings.Join(parts, " ")
}
