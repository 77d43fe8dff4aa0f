package why

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/deployment"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// These are the reasons of retries that the worker asked for: it did not lose those tasks.
const workerReported, snoozed = "WORKER_REPORTED", "SNOOZED"

// ExplainWorker explains a worker.
func ExplainWorker(ctx context.Context, s *session.Session, id string) (*Explanation, error) {
	raw, w, err := resource.FindWorker(ctx, s, id)
	if err != nil {
		return nil, resource.Workers.Suggest(ctx, s, id, err)
	}
	a := &Explanation{parts: map[string]json.RawMessage{"worker": raw}}
	a.addWorker(s, w)
	if err := a.addDelay(ctx, s, w); err != nil {
		return nil, err
	}
	a.addReliability(w)
	if err := a.addFinished(ctx, s, w); err != nil {
		return nil, err
	}
	if err := a.addHeld(ctx, s, w); err != nil {
		return nil, err
	}
	return a, a.addEvents(ctx, s, url.Values{"workerId": {w.WorkerID}, "type": {"worker.*," + losses}}, "--worker "+w.WorkerID)
}

// addWorker describes the state of a worker.
func (a *Explanation) addWorker(s *session.Session, w *v1.Worker) {
	of := ""
	if w.Version != nil {
		of = ", version " + *w.Version
	}
	liveness := ", liveness " + string(w.Liveness)
	switch {
	case w.Status == v1.Offline:
		liveness = "" // always LOST
	case w.Liveness == v1.LivenessLost:
		liveness = ", silent past its timeout but not declared dead yet"
	}
	a.addf("Worker %s%s (queue %s, machine %s%s) is %s%s; it registered at %s.", w.WorkerID, output.Parenthesized(w.Name),
		w.Queue, w.MachineID, of, w.Status, liveness, timeAndAge(s, w.RegisteredAt))
	silent := ""
	if w.LastHeartbeatAgeMs != nil {
		silent = ", silent for " + output.Milliseconds(*w.LastHeartbeatAgeMs) + " (outages excluded)"
	}
	a.addf("Last heartbeat at %s%s; it sends heartbeats every %s and times out after %s.", session.FormatTime(w.LastHeartbeatAt), silent,
		output.Milliseconds(w.HeartbeatIntervalMs), output.Milliseconds(w.HeartbeatTimeoutMs))
	switch w.Status {
	case v1.Offline:
		a.addf("It ended at %s: %s%s.", timeAndAge(s, w.DeregisteredAt), output.Optional(w.EndReason).Text, because(w.StatusReason, w.EndReason))
	case v1.Draining:
		until := "without a deadline"
		if !w.DrainDeadline.IsZero() {
			until = "until " + session.FormatTime(w.DrainDeadline)
		}
		a.addf("It is draining %s%s: it takes no new tasks and ends when it holds none. `lubdub worker resume %s` undoes this.", until,
			because(w.StatusReason, nil), w.WorkerID)
	}
	if w.Hold != nil {
		a.addf("It has been held offline since %s%s: its registrations are refused until `lubdub worker resume %s`.", timeAndAge(s, w.Hold.Since),
			because(w.Hold.Reason, nil), w.WorkerID)
	}
	if w.Cordon != nil {
		a.addf("It has been cordoned since %s%s: it takes no new tasks until `lubdub worker uncordon %s`.", timeAndAge(s, w.Cordon.Since),
			because(w.Cordon.Reason, nil), w.WorkerID)
	}
	if len(w.UnschedulableReasons) > 0 && w.Status != v1.Offline {
		var reasons []string
		for _, r := range w.UnschedulableReasons {
			reasons = append(reasons, fill(cmp.Or(unschedulable[r], r), "{status}", string(w.Status), "{heldCount}", fmt.Sprint(w.HeldCount),
				"{maxConcurrent}", fmt.Sprint(w.MaxConcurrent)))
		}
		a.addf("Not eligible for work: %s.", strings.Join(reasons, ", "))
	}
}

// delays are the codes of findings that explain why a worker that is silent past its timeout is not declared dead yet.
var delays = []string{"brake", "shard-time", "shards", "redis", "replicas"}

// addDelay explains why a worker that is silent past its timeout is not declared dead yet.
func (a *Explanation) addDelay(ctx context.Context, s *session.Session, w *v1.Worker) error {
	if w.Status == v1.Offline || w.Liveness != v1.LivenessLost {
		return nil
	}
	_, system, _, err := deployment.ReadSystem(ctx, s)
	if a.unreadable(err, "the state of the deployment", "The state of the deployment is not available.") {
		return nil
	}
	if err != nil {
		return err
	}
	explained := false
	for _, f := range deployment.ServerFindings(system) {
		if f.Severity != v1.SeverityOK && slices.Contains(delays, f.Code) {
			a.addf("Why not yet: %s", f.Message)
			explained = true
		}
	}
	if !explained {
		a.addf("A sweeper will declare it dead in a moment.")
	}
	return nil
}

func (a *Explanation) addReliability(w *v1.Worker) {
	flaps := ""
	if w.Flapping {
		flaps = "; it is flapping"
	}
	a.addf("Over the last 24 h, or since it first registered if that is shorter, it was up %.1f %% of the time and timed out %s%s. "+
		"A silence past the timeout counts as downtime, from the last heartbeat on.",
		w.UptimePct24h, output.Count(w.StaleCount24h, "time"), flaps)
	if w.TotalCompleted > 0 || w.TotalFailed > 0 {
		a.addf("Its heartbeats reported %s completed and %d failed.", output.Count(int(w.TotalCompleted), "task"), w.TotalFailed)
	}
}

// maxPages is how many pages of finished tasks are read to count those of one worker.
const maxPages = 10

// addFinished counts the tasks that ended on the worker, of those that the server still keeps.
func (a *Explanation) addFinished(ctx context.Context, s *session.Session, w *v1.Worker) error {
	counts, atLeast := [2]int{}, ""
	for i, state := range []string{"SUCCEEDED", "FAILED"} {
		q := url.Values{"workerId": {w.WorkerID}, "state": {state}, "order": {"desc"}, "pageSize": {"100"}}
		for range maxPages {
			p, err := resource.Tasks.ReadPage(ctx, s, q)
			if missing(err) {
				return nil
			}
			if err != nil {
				return err
			}
			counts[i] += len(p.Entries)
			if q.Set("pageToken", p.Next); p.Next == "" {
				break
			}
		}
		if q.Get("pageToken") != "" {
			atLeast = "at least "
		}
	}
	a.addf("Tasks that finished on it, within their retention: %s%d succeeded, %d failed.", atLeast, counts[0], counts[1])
	return nil
}

// maxHeld is how many of the tasks that a worker holds are named.
const maxHeld = 10

// outcomes are what events of a lost task mean for it, by their type.
var outcomes = map[string]string{"task.retrying": "requeued", "task.failed": "failed", "task.zombie": "failed"}

// addHeld lists what a worker holds, or the outcome of what it held.
func (a *Explanation) addHeld(ctx context.Context, s *session.Session, w *v1.Worker) error {
	if w.HeldCount > 0 {
		p, err := resource.Tasks.ReadPage(ctx, s, url.Values{"workerId": {w.WorkerID}, "state": {"DISPATCHED,RUNNING"}, "pageSize": {"10"}})
		if err != nil {
			return err
		}
		a.addf("It holds %s of %d:", output.Count(w.HeldCount, "task"), w.MaxConcurrent)
		for _, e := range p.Entries {
			a.addf("  %s, %s, attempt %d", e.Value.TaskID, e.Value.State, e.Value.Attempt)
		}
		if more := w.HeldCount - len(p.Entries); more > 0 && len(p.Entries) > 0 {
			a.addf("  and %d more", more)
		}
	} else {
		a.addf("It holds no tasks.")
	}
	if w.Status != v1.Offline {
		return nil
	}
	lost, _, err := newestEvents(ctx, s, url.Values{"workerId": {w.WorkerID}, "type": {losses}, "order": {"desc"}}, resource.LargestPage)
	if missing(err) || err == nil && len(lost) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	became := map[string]string{}
	for _, e := range lost { // newest first
		var data struct{ Reason string }
		if json.Unmarshal(e.Data, &data) == nil && (data.Reason == workerReported || data.Reason == snoozed) {
			continue
		}
		if became[e.Subject] == "" {
			became[e.Subject] = e.Type
		}
	}
	if len(became) == 0 {
		return nil
	}
	a.addf("Outcome of %s that it lost:", output.Count(len(became), "task"))
	for _, id := range slices.Sorted(maps.Keys(became))[:min(maxHeld, len(became))] {
		a.addf("  %s: %s", id, cmp.Or(outcomes[became[id]], became[id]))
	}
	return nil
}
