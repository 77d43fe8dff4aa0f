package resource

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var Tasks = &Kind[v1.Task]{
	Noun: "task", Path: "/v1/tasks", Entries: "tasks", ID: func(t *v1.Task) string { return t.TaskID },
	Columns: []Column[v1.Task]{
		{Name: "TASK", Cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Text(t.TaskID) }},
		{Name: "STATE", Cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Word(t.State) }},
		{Name: "LIVENESS", Cell: func(t *v1.Task, _ time.Time) output.Cell {
			if t.Liveness == nil {
				return output.Cell{}
			}
			return output.Word(*t.Liveness)
		}},
		{Name: "TRY", Cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Number(t.Attempt) }},
		{Name: "QUEUE", Cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Optional(t.Queue) }},
		{Name: "TYPE", Cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Optional(t.Type) }},
		{Name: "WORKER", Cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Optional(t.WorkerID) }},
		{Name: "DONE", Volatile: true, Cell: func(t *v1.Task, _ time.Time) output.Cell { return PercentCell(t.ProgressPct) }},
		{Name: "BEAT", Volatile: true, Cell: func(t *v1.Task, now time.Time) output.Cell { return output.Age(t.LastHeartbeatAt.Time, now) }},
		{Name: "AGE", Volatile: true, Cell: func(t *v1.Task, now time.Time) output.Cell { return output.Age(t.CreatedAt.Time, now) }},
		{Name: "REASON", Cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Optional(t.Reason) }},
		{Name: "RUN", Wide: true, Cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Text(t.RunID) }},
		{Name: "SCHEDULE", Wide: true, Cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Text(t.ScheduleID) }},
		{Name: "MESSAGE", Wide: true, Volatile: true, Cell: func(t *v1.Task, _ time.Time) output.Cell { return MessageCell(t.Message) }},
		{Name: "LABELS", Wide: true, Cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Text(formatLabels(t.Labels)) }},
	}}

// PercentCell shows a progress that a worker reported.
func PercentCell(raw json.RawMessage) output.Cell {
	var pct *float64
	if json.Unmarshal(raw, &pct) != nil || pct == nil {
		return output.Cell{}
	}
	return output.Text(fmt.Sprintf("%.0f%%", *pct))
}

// MessageCell shows a message that a worker reported.
func MessageCell(raw json.RawMessage) output.Cell {
	var text string
	_ = json.Unmarshal(raw, &text)
	return output.Text(text)
}

// RetryTask asks for the attempt behind the task's current one. The answer may be an envelope with a worker's token, which is
// not to be printed, so the task is shown instead.
func RetryTask(ctx context.Context, s *session.Session, id string) (json.RawMessage, *v1.Task, error) {
	_, task, err := session.Get[v1.Task](ctx, s, Tasks.PathOf(id), nil)
	if err != nil {
		return nil, nil, err
	}
	if task.Attempt == 0 {
		return nil, nil, fmt.Errorf("task %s is %s and has had no attempt that could be tried again", id, task.State)
	}
	next := v1.NextAttemptRequest{FromAttempt: task.Attempt}
	if _, _, err := session.Post[struct{}](ctx, s, Tasks.PathOf(id)+"/attempts", next); err != nil {
		return nil, nil, err
	}
	return session.Get[v1.Task](ctx, s, Tasks.PathOf(id), nil)
}

func formatLabels(m map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, key+"="+m[key])
	}
	return strings.Join(all, ",")
}
