package cli

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// whyTask tells what is known of a task.
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
	return a, a.acts(ctx, s, url.Values{"subject": {t.TaskID}})
}

// standing tells how a task is.
func (a *account) standing(s *session, t *v1.Task) {
	what := ""
	if t.Type != nil {
		what += ", type " + *t.Type
	}
	if t.Queue != nil {
		what += ", queue " + *t.Queue
	}
	a.say("Task %s is %s%s, run %s; it was created at %s.", t.TaskID, t.State, what, t.RunID, s.at(t.CreatedAt))
	switch t.State {
	case v1.Queued:
		if !t.NextAttemptAt.IsZero() {
			a.say("It waits until %s for its next attempt.", timeText(t.NextAttemptAt))
		}
	case v1.Dispatched:
		a.say("Attempt %d was handed to %s at %s and has not been heard yet.", t.Attempt, worker(t.WorkerID), s.at(t.DispatchedAt))
	case v1.Running:
		a.say("Attempt %d runs on %s since %s and is %s: the last beat came at %s; %s.", t.Attempt, worker(t.WorkerID), s.at(t.StartedAt),
			output.Optional(t.Liveness).Text, s.at(t.LastHeartbeatAt), patience(t))
	default:
		reason := ""
		if t.Reason != nil {
			reason = " with the reason " + *t.Reason
		}
		a.say("It ended at %s%s.", s.at(t.FinishedAt), reason)
	}
	if said := told(&v1.Progress{ProgressPct: t.ProgressPct, Message: t.Message}); said != "" {
		a.say("The last that it told was %s.", said)
	}
	if t.RetriesExhausted {
		a.say("Another try might have helped, but its policy allows no more.")
	}
	if t.Failures > 0 || t.Losses > 0 {
		a.say("Against its policy count: failures %d, losses %d.", t.Failures, t.Losses)
	}
}

func worker(id *string) string {
	if id == nil || *id == "" {
		return "nobody that is known"
	}
	return "worker " + *id
}

// patience tells how long a task may be silent.
func patience(t *v1.Task) string {
	if t.HeartbeatTimeoutMs == nil {
		return "it lives by its worker's beat"
	}
	return "it may be silent for " + output.Milliseconds(*t.HeartbeatTimeoutMs) + " and is to beat every " +
		output.Milliseconds(t.HeartbeatIntervalMs)
}

// asked tells whether somebody asked for its end.
func (a *account) asked(_ *session, t *v1.Task) {
	if !t.CancelRequested {
		return
	}
	reason := "without a reason"
	if t.CancelReason != nil && *t.CancelReason != "" {
		reason = `with the reason "` + *t.CancelReason + `"`
	}
	a.say("Its end was asked for, %s.", reason)
}

// attempt tells how an ended attempt ended, and what the verdict rests on.
func (a *account) attempt(s *session, h *v1.HistoryEntry) {
	reason := ""
	if h.Reason != nil {
		reason = " (" + *h.Reason + ")"
	}
	a.say("Attempt %d on %s, handed out at %s, ended %s%s at %s.", h.Attempt, worker(h.WorkerID), timeText(h.DispatchedAt), h.Outcome, reason,
		s.at(h.EndedAt))
	if h.StartedAt.IsZero() {
		a.say("  It was never heard to start.")
	}
	if e := h.Evidence; e != nil {
		a.evidence(e)
	} else {
		a.say("  Its worker ended it itself.")
	}
	if said := told(h.LastProgress); said != "" {
		a.say("  The last that it told was %s.", said)
	}
	if len(h.Error) > 0 && string(h.Error) != "null" {
		a.say("  Its error: %s", output.Shorten(string(h.Error), 400))
	}
	if h.WillRetry {
		a.say("  It was tried again.")
	}
	if h.RetriesExhausted {
		a.say("  It was worth another try, but the policy allows no more.")
	}
}

func (a *account) evidence(e *v1.Evidence) {
	heard := "Nothing was ever heard of it"
	if !e.LastHeartbeatAt.IsZero() {
		heard = "The last beat came at " + timeText(e.LastHeartbeatAt)
	}
	a.say("  %s; the silence that counted was %d ms of a timeout of %d ms, and %d ms of outages were not counted.", heard, e.SilentMs,
		e.TimeoutMs,
		e.OutageCreditMs)
	a.say("  %s judged so at %s, %d ms after the timeout.", e.Sweeper, timeText(e.DetectedAt), e.DetectionLagMs)
	if e.WorkerReason != "" {
		a.say("  It was lost with its worker: %s; the times are the worker's.", e.WorkerReason)
	}
	if e.MassExpiryHeld {
		a.say("  The mass expiry brake had spared it, so it had one timeout more.")
	}
}

// place tells of the queue that it waits in, or of the worker that has it.
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
			a.say("Its worker %s is none that has registered here.", *t.WorkerID)
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
		a.say("The queue %s is paused: nothing is handed out.", q.Queue)
	}
	a.say("In the queue %s could be claimed: %s; ONLINE there: %s.", q.Queue, output.Count(q.Depth, "task"),
		output.Count(q.Workers.Online, "worker"))
	for _, of := range q.Types {
		same := of.Type == nil && t.Type == nil || of.Type != nil && t.Type != nil && *of.Type == *t.Type
		if same && of.Unrunnable > 0 {
			a.say("Of its type %d cannot be run by any ONLINE worker: none has their type, runtime and labels, or theirs is cordoned or gone.",
				of.Unrunnable)
		}
	}
}

// told is what an attempt said of its progress, as far as it did.
func told(p *v1.Progress) string {
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
