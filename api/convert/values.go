package convert

import (
	"encoding/json"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
)

// Queue converts a queue to its wire type.
func Queue(scope model.Scope, q *queues.Queue) v1.Queue {
	v := v1.Queue{
		Queue: q.Name, TenantID: scope.Tenant, WorkspaceID: scope.Workspace, Paused: q.Paused, Depth: q.Depth(),
		Running: q.Running, Outstanding: q.Outstanding(), Types: make([]v1.QueueType, len(q.Kinds)),
		Workers: v1.QueueWorkers{Online: q.Workers[model.Online], Draining: q.Workers[model.Draining], Offline: q.Workers[model.Offline]},
	}
	if v.Depth > 0 {
		oldest := q.OldestWait().Milliseconds()
		v.OldestWaitMs = &oldest
	}
	for i, k := range q.Kinds {
		v.Types[i] = v1.QueueType{Type: OrNull(k.Type), Depth: k.Depth, OldestWaitMs: k.OldestWait.Milliseconds(), Unrunnable: k.Unrunnable}
	}
	return v
}

// Gap converts a gap of events to its wire type.
func Gap(g *events.Gap) *v1.EventGap {
	if g == nil {
		return nil
	}
	return &v1.EventGap{From: v1.At(g.From), To: v1.At(g.To), Shards: g.Shards}
}

// Progress returns the last reported progress, or null.
func Progress(p *model.Progress) *v1.Progress {
	if p == nil || *p == (model.Progress{}) {
		return nil
	}
	return &v1.Progress{ProgressPct: Raw(p.Pct), Message: Raw(p.Message), Details: Raw(p.Details)}
}

// OrNull returns null for an empty string.
func OrNull[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return &s
}

// MsOrNull returns null for a zero duration.
func MsOrNull(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}

// Raw returns JSON text of the domain; empty becomes null.
func Raw(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

// OrEmpty returns an array that is never null.
func OrEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
