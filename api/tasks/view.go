package tasks

import (
	"github.com/lubdub-io/lubdub/api/convert"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// taskView converts a task to its wire type; whole adds payload and resources, which lists omit.
func taskView(t *model.Task, whole bool) *v1.Task {
	v := &v1.Task{
		TaskID: t.ID, RunID: t.RunID, TaskKey: convert.OrNull(t.Key), AssetID: convert.OrNull(t.Asset),
		TenantID: t.Scope.Tenant, WorkspaceID: t.Scope.Workspace,
		Queue: convert.OrNull(t.Queue), Type: convert.OrNull(t.Type), Labels: t.Labels,
		State: v1.State(t.State), Attempt: t.Attempt, WorkerID: convert.OrNull(t.WorkerID),
		Liveness:    convert.OrNull(v1.Liveness(t.Liveness)),
		ProgressPct: convert.Raw(t.Progress.Pct), Message: convert.Raw(t.Progress.Message), Details: t.Details,
		CreatedAt: v1.At(t.CreatedAt), DispatchedAt: v1.At(t.DispatchedAt), StartedAt: v1.At(t.StartedAt),
		LastHeartbeatAt: v1.At(t.LastHeartbeatAt), ReportedHeartbeatAt: v1.At(t.ReportedAt), CompletedAt: v1.At(t.CompletedAt),
		FinishedAt: v1.At(t.FinishedAt), Deadline: v1.At(t.Deadline), RunAt: v1.At(t.RunAt), NotBefore: v1.At(t.RunAt),
		NextAttemptAt:   v1.At(t.NextAttemptAt),
		CancelRequested: t.CancelRequested, CancelReason: convert.OrNull(t.CancelReason),
		Reason: convert.OrNull(string(t.Reason)), RetriesExhausted: t.RetriesExhausted,
		Output: t.Output, Metrics: t.Metrics, Error: t.Error,
		CancelledDuringPhase: t.CancelledDuringPhase, PartialProgress: t.PartialProgress,
		HeartbeatIntervalMs: t.HeartbeatInterval.Milliseconds(), HeartbeatTimeoutMs: convert.MsOrNull(t.HeartbeatTimeout),
		CancelGracePeriodMs: t.CancelGrace.Milliseconds(),
		StartTimeoutMs:      t.StartTimeout.Milliseconds(), RunTimeoutMs: t.RunTimeout.Milliseconds(),
		Runtime: t.Runtime, WorkerLabels: t.WorkerLabels,
		Failures: t.Failures, Losses: t.Losses,
		Traceparent: t.Trace, ScheduleID: t.ScheduleID, History: make([]v1.HistoryEntry, len(t.History)),
	}
	if v.Labels == nil {
		v.Labels = map[string]string{}
	}
	if r := t.Retry; r != nil {
		v.Retry = &v1.Retry{
			MaxAttempts: r.MaxAttempts, MaxLosses: r.MaxLosses, Multiplier: r.Multiplier,
			InitialBackoffMs: r.InitialBackoff.Milliseconds(), MaxBackoffMs: r.MaxBackoff.Milliseconds(),
		}
	}
	for i := range t.History {
		v.History[i] = historyView(&t.History[i])
	}
	if whole {
		v.Payload, v.Resources = t.Payload, t.Resources
	}
	return v
}

func historyView(h *model.HistoryEntry) v1.HistoryEntry {
	v := v1.HistoryEntry{
		Attempt: h.Attempt, WorkerID: convert.OrNull(h.WorkerID),
		DispatchedAt: v1.At(h.DispatchedAt), StartedAt: v1.At(h.StartedAt), EndedAt: v1.At(h.EndedAt),
		LastHeartbeatAt: v1.At(h.LastHeartbeatAt), CompletedAt: v1.At(h.CompletedAt),
		Outcome: h.Outcome, Reason: convert.OrNull(string(h.Reason)), LastProgress: convert.Progress(&h.LastProgress),
		Error: h.Error, Metrics: h.Metrics, WillRetry: h.WillRetry, RetriesExhausted: h.RetriesExhausted,
	}
	if e := h.Evidence; e != nil {
		v.Evidence = &v1.Evidence{
			LastHeartbeatAt: v1.At(e.LastHeartbeatAt), SilentMs: e.Silent.Milliseconds(),
			TimeoutMs: e.Timeout.Milliseconds(), OutageCreditMs: e.OutageCredit.Milliseconds(),
			DetectedAt: v1.At(e.DetectedAt), DetectionLagMs: e.DetectionLag.Milliseconds(), Sweeper: e.Sweeper,
			WorkerReason: string(e.WorkerReason), MassExpiryHeld: e.MassExpiryHeld,
		}
	}
	return v
}

func runView(r *model.Run) *v1.Run {
	v := &v1.Run{
		RunID: r.ID, TenantID: r.Scope.Tenant, WorkspaceID: r.Scope.Workspace,
		Counts: make(map[v1.State]int, len(v1.States)), TotalCount: r.Total,
	}
	for _, s := range v1.States {
		v.Counts[s] = r.Counts[model.State(s)]
	}
	return v
}
