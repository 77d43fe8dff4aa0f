package cli

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// losses are the types of events that report the outcome of tasks that a worker lost.
const losses = "task.zombie,task.retrying,task.failed"

// workerReported is the reason of failures that the worker reported itself: it did not lose those tasks.
const workerReported = "WORKER_REPORTED"

// whyWorker explains a worker.
func whyWorker(ctx context.Context, s *session, id string) (*account, error) {
	raw, w, err := workerOf(ctx, s, id)
	if err != nil {
		return nil, workers.nearest(ctx, s, id, err)
	}
	a := &account{parts: map[string]json.RawMessage{"worker": raw}}
	a.workerStanding(s, w)
	a.reliability(w)
	if err := a.finished(ctx, s, w); err != nil {
		return nil, err
	}
	if err := a.held(ctx, s, w); err != nil {
		return nil, err
	}
	return a, a.acts(ctx, s, url.Values{"workerId": {w.WorkerID}, "type": {"worker.*," + losses}}, "--worker "+w.WorkerID)
}

// workerStanding describes the state of a worker.
func (a *account) workerStanding(s *session, w *v1.Worker) {
	of := ""
	if w.Version != nil {
		of = ", version " + *w.Version
	}
	a.say("Worker %s%s (queue %s, machine %s%s) is %s and %s; it registered at %s.", w.WorkerID, output.Aside(w.Name), w.Queue,
		w.MachineID, of,
		w.Status, w.Liveness, timeAndAge(s, w.RegisteredAt))
	silent := ""
	if w.LastHeartbeatAgeMs != nil {
		silent = ", silent for " + output.Milliseconds(*w.LastHeartbeatAgeMs) + " (outages excluded)"
	}
	a.say("Last heartbeat at %s%s; it sends heartbeats every %s and times out after %s.", timeText(w.LastHeartbeatAt), silent,
		output.Milliseconds(w.HeartbeatIntervalMs), output.Milliseconds(w.HeartbeatTimeoutMs))
	switch w.Status {
	case v1.Offline:
		a.say("It ended at %s: %s%s.", timeAndAge(s, w.DeregisteredAt), output.Optional(w.EndReason).Text, because(w.StatusReason, w.EndReason))
	case v1.Draining:
		until := "without a deadline"
		if !w.DrainDeadline.IsZero() {
			until = "until " + timeText(w.DrainDeadline)
		}
		a.say("It is draining %s%s: it takes no new tasks and ends when it holds none.", until, because(w.StatusReason, nil))
	}
	if w.Hold != nil {
		a.say("It has been held offline since %s%s: its registrations are refused until `lubdub worker resume %s`.", timeAndAge(s, w.Hold.Since),
			because(w.Hold.Reason, nil), w.WorkerID)
	}
	if w.Cordon != nil {
		a.say("It has been cordoned since %s%s.", timeAndAge(s, w.Cordon.Since), because(w.Cordon.Reason, nil))
	}
	if len(w.UnschedulableReasons) > 0 {
		a.say("Not eligible for work: %s.", strings.Join(w.UnschedulableReasons, ", "))
	}
}

// because tells a reason that was given, where it says more than another.
func because(reason, other *string) string {
	if reason == nil || *reason == "" || other != nil && *other == *reason {
		return ""
	}
	return ` ("` + *reason + `")`
}

func (a *account) reliability(w *v1.Worker) {
	flaps := ""
	if w.Flapping {
		flaps = "; it is flapping"
	}
	a.say("In the last 24 h it was up %.1f %% of the time and went stale %s%s.", w.UptimePct24h, output.Count(w.StaleCount24h, "time"), flaps)
	if w.TotalCompleted > 0 || w.TotalFailed > 0 {
		a.say("Its heartbeats reported %s completed and %d failed.", output.Count(int(w.TotalCompleted), "task"), w.TotalFailed)
	}
}

// mostPages is how many pages of finished tasks are read to count those of one worker.
const mostPages = 10

// finished counts the tasks that ended on the worker, of those that the server still keeps.
func (a *account) finished(ctx context.Context, s *session, w *v1.Worker) error {
	counts, atLeast := [2]int{}, ""
	for i, state := range []string{"SUCCEEDED", "FAILED"} {
		q := url.Values{"workerId": {w.WorkerID}, "state": {state}, "order": {"desc"}, "pageSize": {"100"}}
		for range mostPages {
			p, err := tasks.page(ctx, s, q)
			if missing(err) {
				return nil
			}
			if err != nil {
				return err
			}
			counts[i] += len(p.entries)
			if q.Set("pageToken", p.next); p.next == "" {
				break
			}
		}
		if q.Get("pageToken") != "" {
			atLeast = "at least "
		}
	}
	a.say("Of the stored tasks, %s%d succeeded on it and %d failed.", atLeast, counts[0], counts[1])
	return nil
}

// mostHeld is how many of the tasks that a worker holds are named.
const mostHeld = 10

// held lists what a worker holds, or the outcome of what it held.
func (a *account) held(ctx context.Context, s *session, w *v1.Worker) error {
	if w.HeldCount > 0 {
		p, err := tasks.page(ctx, s, url.Values{"workerId": {w.WorkerID}, "state": {"DISPATCHED,RUNNING"}, "pageSize": {"10"}})
		if err != nil {
			return err
		}
		a.say("It holds %s of %d:", output.Count(w.HeldCount, "task"), w.MaxConcurrent)
		for _, e := range p.entries {
			a.say("  %s, %s, attempt %d", e.T.TaskID, e.T.State, e.T.Attempt)
		}
		if more := w.HeldCount - len(p.entries); more > 0 && len(p.entries) > 0 {
			a.say("  and %d more", more)
		}
	} else {
		a.say("It holds no tasks.")
	}
	if w.Status != v1.Offline {
		return nil
	}
	lost, _, err := eventsOf(ctx, s, url.Values{"workerId": {w.WorkerID}, "type": {losses}, "order": {"desc"}}, largestPage)
	if missing(err) || err == nil && len(lost) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	became := map[string]string{}
	for _, e := range lost { // newest first
		var data struct{ Reason string }
		if json.Unmarshal(e.Data, &data) == nil && data.Reason == workerReported {
			continue
		}
		if became[e.Subject] == "" {
			became[e.Subject] = e.Type
		}
	}
	if len(became) == 0 {
		return nil
	}
	a.say("Outcome of %s that it lost:", output.Count(len(became), "task"))
	for _, id := range slices.Sorted(maps.Keys(became))[:min(mostHeld, len(became))] {
		a.say("  %s: %s", id, became[id])
	}
	return nil
}

// whyMachine explains a machine.
func whyMachine(ctx context.Context, s *session, id string) (*account, error) {
	e, err := machines.one(ctx, s, id)
	if err != nil {
		return nil, err
	}
	a, m := &account{parts: map[string]json.RawMessage{"machine": e.raw}}, e.T
	a.say("Machine %s is %s: %s online, %d draining, %d offline. Most recent heartbeat from any worker: %s.", m.MachineID, m.Status,
		output.Count(m.Workers.Online, "worker"), m.Workers.Draining, m.Workers.Offline, timeAndAge(s, m.LastHeartbeatAt))
	flaps := ""
	if m.Flapping {
		flaps = "; it is flapping"
	}
	a.say("In the last 24 h it was up %.1f %% of the time and went silent %s%s.", m.UptimePct24h, output.Count(m.StaleCount24h, "time"), flaps)
	if m.Drain != nil {
		a.say("It has been drained since %s%s: workers that register on it get no work until `lubdub machine resume %s`.", timeAndAge(s, m.Drain.Since),
			because(m.Drain.Reason, nil), m.MachineID)
	}
	p, err := workers.page(ctx, s, url.Values{"machineId": {m.MachineID}, "sort": {"lastHeartbeat"}, "pageSize": {"20"}})
	if err != nil {
		return nil, err
	}
	a.parts["workers"] = field(p.raw, workers.entries)
	a.say("Its workers, longest silent first:")
	for _, w := range p.entries {
		a.say("  %s%s: %s, %s, last heartbeat %s, holds %d", w.T.WorkerID, output.Aside(w.T.Name), w.T.Status, w.T.Liveness, timeAndAge(s, w.T.LastHeartbeatAt),
			w.T.HeldCount)
	}
	if p.next != "" {
		a.say("  (the first 20; all: lubdub worker ls -a --machine %s)", m.MachineID)
	}
	return a, a.acts(ctx, s, url.Values{"machineId": {m.MachineID}, "type": {"worker.*,machine.*"}}, "--machine "+m.MachineID)
}
