package why

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// ExplainTask explains a task.
func ExplainTask(ctx context.Context, s *session.Session, id string) (*Explanation, error) {
	e, err := resource.Tasks.Find(ctx, s, id)
	if err != nil {
		return nil, err
	}
	a, t := &Explanation{parts: map[string]json.RawMessage{"task": e.Raw}}, e.Value
	a.addTask(s, t)
	a.addCancellation(s, t)
	for i := range t.History {
		a.addAttempt(s, &t.History[i])
	}
	if err := a.addPlace(ctx, s, t); err != nil {
		return nil, err
	}
	return a, a.addEvents(ctx, s, url.Values{"subject": {t.TaskID}}, "--subject "+t.TaskID)
}

// addTask describes the state of a task.
func (a *Explanation) addTask(s *session.Session, t *v1.Task) {
	what := ""
	if t.Type != nil {
		what += ", type " + *t.Type
	}
	if t.Queue != nil {
		what += ", queue " + *t.Queue
	}
	a.addf("Task %s is %s%s, run %s; it was created at %s.", t.TaskID, t.State, what, t.RunID, timeAndAge(s, t.CreatedAt))
	switch t.State {
	case v1.Scheduled:
		a.addf("It starts at %s.", session.FormatTime(t.NextAttemptAt))
	case v1.Queued:
		if !t.NextAttemptAt.IsZero() {
			a.addf("It waits until %s for its next attempt.", session.FormatTime(t.NextAttemptAt))
		}
	case v1.Dispatched:
		a.addf("Attempt %d was dispatched to %s at %s and has not started yet.", t.Attempt, workerName(t.WorkerID), timeAndAge(s, t.DispatchedAt))
	case v1.Running:
		a.addf("Attempt %d has been running on %s since %s, liveness %s: last heartbeat at %s; %s.", t.Attempt,
			workerName(t.WorkerID), timeAndAge(s, t.StartedAt),
			output.Optional(t.Liveness).Text, timeAndAge(s, t.LastHeartbeatAt), describeTimeout(t))
	default:
		reason := ""
		if t.Reason != nil {
			reason = " with the reason " + *t.Reason
		}
		a.addf("It ended at %s%s.", timeAndAge(s, t.FinishedAt), reason)
	}
	if progress := progressText(&v1.Progress{ProgressPct: t.ProgressPct, Message: t.Message}); progress != "" {
		a.addf("Last reported progress: %s.", progress)
	}
	if len(t.Details) > 0 {
		a.addf("Last checkpoint: %s.", output.Shorten(string(t.Details), 200))
	}
	if t.RetriesExhausted {
		a.addf("%s", sentences["retriesExhausted"])
	}
	if t.State == v1.Failed {
		a.addf("Once the cause is fixed, `lubdub task retry %s` runs it again.", t.TaskID)
	}
	if t.Failures > 0 || t.Losses > 0 {
		failures, losses := output.Count(t.Failures, "reported failure"), output.Count(t.Losses, "lost attempt")
		if t.Retry != nil {
			failures = fmt.Sprintf("%d of %s (maxAttempts)", t.Failures, output.Count(t.Retry.MaxAttempts, "reported failure"))
			losses = fmt.Sprintf("separately %d of %s (maxLosses)", t.Losses, output.Count(t.Retry.MaxLosses, "lost attempt"))
		}
		a.addf("Its retry policy has counted %s and %s.", failures, losses)
	}
}

func workerName(id *string) string {
	if id == nil || *id == "" {
		return "an unknown worker"
	}
	return "worker " + *id
}

// describeTimeout describes how long a task may be silent.
func describeTimeout(t *v1.Task) string {
	if t.HeartbeatTimeoutMs == nil {
		return "its worker's heartbeats keep it alive"
	}
	return "it sends heartbeats every " + output.Milliseconds(t.HeartbeatIntervalMs) + " and times out after " +
		output.Milliseconds(*t.HeartbeatTimeoutMs)
}

// addCancellation reports a requested cancellation.
func (a *Explanation) addCancellation(_ *session.Session, t *v1.Task) {
	if !t.CancelRequested {
		return
	}
	reason := "without a reason"
	if t.CancelReason != nil && *t.CancelReason != "" {
		reason = `with the reason "` + *t.CancelReason + `"`
	}
	a.addf("Cancellation was requested %s.", reason)
}

// addAttempt describes how an attempt ended, with its evidence.
func (a *Explanation) addAttempt(s *session.Session, h *v1.HistoryEntry) {
	reason := ""
	if h.Reason != nil {
		reason = " (" + *h.Reason + ")"
	}
	a.addf("Attempt %d on %s, dispatched at %s, ended %s%s at %s.", h.Attempt, workerName(h.WorkerID), session.FormatTime(h.DispatchedAt),
		h.Outcome, reason, timeAndAge(s, h.EndedAt))
	if h.StartedAt.IsZero() {
		a.addf("  It never reported that it had started.")
	}
	switch {
	case h.Evidence != nil:
		a.addEvidence(h.Evidence)
	case h.Reason != nil && *h.Reason == "TERMINATED":
		a.addf("  A cancel without a grace period ended it, without its worker.")
	default:
		a.addf("  Its worker reported this outcome.")
	}
	if progress := progressText(h.LastProgress); progress != "" {
		a.addf("  Last reported progress: %s.", progress)
	}
	if len(h.Error) > 0 && string(h.Error) != "null" {
		a.addf("  Its error: %s", output.Shorten(string(h.Error), 400))
	}
	if h.WillRetry {
		a.addf("  The task was requeued.")
	}
	if h.RetriesExhausted {
		a.addf("  %s", sentences["retriesExhausted"])
	}
}

func (a *Explanation) addEvidence(e *v1.Evidence) {
	last, silent, outages := sentences["noHeartbeat"], sentences["silentNoTimeout"], sentences["noOutages"]
	if !e.LastHeartbeatAt.IsZero() {
		whose := "lastHeartbeat"
		if e.WorkerReason != "" {
			whose = "workerHeartbeat"
		}
		last = fill(sentences[whose], "{at}", session.FormatTime(e.LastHeartbeatAt))
	}
	if e.OutageCreditMs > 0 {
		outages = fill(sentences["outages"], "{credit}", output.Milliseconds(e.OutageCreditMs))
	}
	if e.TimeoutMs > 0 {
		silent = sentences["silent"]
	}
	a.addf("  %s %s", last, fill(silent, "{silent}", output.Milliseconds(e.SilentMs), "{timeout}", output.Milliseconds(e.TimeoutMs),
		"{outages}", outages))
	a.addf("  %s", fill(sentences["decided"], "{sweeper}", e.Sweeper, "{at}", session.FormatTime(e.DetectedAt),
		"{lag}", output.Milliseconds(e.DetectionLagMs)))
	if e.WorkerReason != "" {
		a.addf("  %s", fill(sentences["workerLost"], "{reason}", string(e.WorkerReason)))
	}
	if e.MassExpiryHeld {
		a.addf("  %s", sentences["massExpiryHeld"])
	}
}

// addPlace describes the queue that it waits in, or the worker that runs it.
func (a *Explanation) addPlace(ctx context.Context, s *session.Session, t *v1.Task) error {
	switch {
	case t.State == v1.Queued && t.Queue != nil:
		raw, q, err := session.Get[v1.Queue](ctx, s, resource.Queues.PathOf(*t.Queue), nil)
		if a.unreadable(err, "queue "+*t.Queue, "Queue "+*t.Queue+" is not stored here.") {
			return nil
		}
		if err != nil {
			return err
		}
		a.parts["queue"] = raw
		return a.addQueue(ctx, s, q, t)
	case (t.State == v1.Running || t.State == v1.Dispatched) && t.WorkerID != nil:
		raw, w, err := session.Get[v1.Worker](ctx, s, resource.Workers.PathOf(*t.WorkerID), nil)
		if a.unreadable(err, "worker "+*t.WorkerID, "Worker "+*t.WorkerID+" is not stored here: it never registered, or it ended longer ago "+
			"than workers are kept. If it runs, its log has the server's address and its response.") {
			return nil
		}
		if err != nil {
			return err
		}
		a.parts["worker"] = raw
		a.addWorker(s, w)
	}
	return nil
}

func (a *Explanation) addQueue(ctx context.Context, s *session.Session, q *v1.Queue, t *v1.Task) error {
	if err := a.addPaused(ctx, s, q); err != nil {
		return err
	}
	a.addf("Queue %s has %s and %s.", q.Queue, output.Count(q.Depth, "waiting task"),
		output.Count(q.Workers.Online, "online worker"))
	for _, of := range q.Types {
		same := of.Type == nil && t.Type == nil || of.Type != nil && t.Type != nil && *of.Type == *t.Type
		if same && of.Unrunnable > 0 {
			a.addf("%s of its type cannot run: no online worker has their type, runtime and labels, or the matching workers are cordoned or gone.",
				output.Count(of.Unrunnable, "waiting task"))
		}
	}
	return nil
}

// progressText is the progress that an attempt reported; empty: none.
func progressText(p *v1.Progress) string {
	if p == nil {
		return ""
	}
	var parts []string
	if done := resource.PercentCell(p.ProgressPct).Text; done != "" {
		parts = append(parts, done)
	}
	if message := resource.MessageCell(p.Message).Text; message != "" {
		parts = append(parts, `"`+message+`"`)
	}
	return strings.Join(parts, " ")
}
