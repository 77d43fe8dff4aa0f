package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var tasks = &kind[v1.Task]{
	noun: "task", path: "/v1/tasks", entries: "tasks", id: func(t *v1.Task) string { return t.TaskID },
	columns: []column[v1.Task]{
		{name: "TASK", cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Text(t.TaskID) }},
		{name: "STATE", cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Word(t.State) }},
		{name: "LIVENESS", cell: func(t *v1.Task, _ time.Time) output.Cell {
			if t.Liveness == nil {
				return output.Cell{}
			}
			return output.Word(*t.Liveness)
		}},
		{name: "TRY", cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Number(t.Attempt) }},
		{name: "QUEUE", cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Optional(t.Queue) }},
		{name: "TYPE", cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Optional(t.Type) }},
		{name: "WORKER", cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Optional(t.WorkerID) }},
		{name: "DONE", passing: true, cell: func(t *v1.Task, _ time.Time) output.Cell { return percent(t.ProgressPct) }},
		{name: "BEAT", passing: true, cell: func(t *v1.Task, now time.Time) output.Cell { return output.Age(t.LastHeartbeatAt.Time, now) }},
		{name: "AGE", passing: true, cell: func(t *v1.Task, now time.Time) output.Cell { return output.Age(t.CreatedAt.Time, now) }},
		{name: "REASON", cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Optional(t.Reason) }},
		{name: "RUN", wide: true, cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Text(t.RunID) }},
		{name: "SCHEDULE", wide: true, cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Text(t.ScheduleID) }},
		{name: "MESSAGE", wide: true, passing: true, cell: func(t *v1.Task, _ time.Time) output.Cell { return words(t.Message) }},
		{name: "LABELS", wide: true, cell: func(t *v1.Task, _ time.Time) output.Cell { return output.Text(pairs(t.Labels)) }},
	}}

// percent shows a progress that a worker reported.
func percent(raw json.RawMessage) output.Cell {
	var pct *float64
	if json.Unmarshal(raw, &pct) != nil || pct == nil {
		return output.Cell{}
	}
	return output.Text(fmt.Sprintf("%.0f%%", *pct))
}

// words shows a message that a worker reported.
func words(raw json.RawMessage) output.Cell {
	var text string
	_ = json.Unmarshal(raw, &text)
	return output.Text(text)
}

// TaskFilter says which tasks are meant.
type TaskFilter struct {
	State    string   `predictor:"state" placeholder:"STATE" help:"State, or several with commas: QUEUED, DISPATCHED, RUNNING, SUCCEEDED, FAILED, CANCELLED."`
	Queue    string   `predictor:"queue" placeholder:"QUEUE" help:"Queue."`
	Type     string   `placeholder:"TYPE" help:"Type."`
	Run      string   `placeholder:"ID" help:"Run."`
	Worker   string   `predictor:"worker" placeholder:"ID" help:"Worker that has them."`
	Machine  string   `predictor:"machine" placeholder:"ID" help:"Machine of that worker."`
	Schedule string   `predictor:"schedule" placeholder:"ID" help:"Schedule that created them."`
	Selector []string `short:"l" sep:"none" placeholder:"K=V" help:"Labels, several with commas."`
	Because  string   `placeholder:"REASON" help:"Why they ended: HEARTBEAT_TIMEOUT, WORKER_LOST, …"`
	Since    string   `placeholder:"WHEN" help:"Ended since: a time, or how long ago, such as 15m."`
}

func (f *TaskFilter) query(s *session) (url.Values, error) {
	since, err := s.moment("since", f.Since)
	if err != nil {
		return nil, err
	}
	q := query("state", strings.ToUpper(f.State), "queue", f.Queue, "type", f.Type, "runId", f.Run, "workerId", f.Worker,
		"machineId", f.Machine, "scheduleId", f.Schedule, "reason", strings.ToUpper(f.Because), "finishedAfter", timeText(since))
	return q, addLabels(q, f.Selector)
}

func (f *TaskFilter) selector(s *session) (v1.TaskSelector, error) {
	since, err := s.moment("since", f.Since)
	if err != nil {
		return v1.TaskSelector{}, err
	}
	all, err := labels(f.Selector)
	return v1.TaskSelector{
		State: strings.ToUpper(f.State), Queue: f.Queue, Type: f.Type, RunID: f.Run, WorkerID: f.Worker, MachineID: f.Machine,
		ScheduleID: f.Schedule, Labels: all, Reason: strings.ToUpper(f.Because), FinishedAfter: since,
	}, err
}

type taskLs struct {
	TaskFilter `embed:""`
	Liveness   string `predictor:"liveness" placeholder:"WORD" help:"FRESH, LATE or LOST."`
	Claimable  bool   `help:"Only those that could be claimed now: WAITING of lubdub queue ls counts them."`
	Until      string `placeholder:"WHEN" help:"Ended until: a time, or how long ago."`
	Oldest     bool   `help:"The oldest first; the newest are first without it, as on the dashboard."`
	Newest     bool   `hidden:"" help:"The default."`
	Listing    `embed:""`
	Common     `embed:""`
}

func (c *taskLs) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	q, err := c.query(s)
	if err != nil {
		return err
	}
	until, err := s.moment("until", c.Until)
	if err != nil {
		return err
	}
	for name, value := range query("liveness", strings.ToUpper(c.Liveness), "finishedBefore", timeText(until), "order", order(!c.Oldest)) {
		q[name] = value
	}
	if c.Claimable {
		q.Set("claimable", "true")
	}
	return tasks.list(s, c.Listing, q)
}

type taskGet struct {
	Tasks  []string `arg:"" predictor:"task" name:"id" help:"Tasks."`
	Common `embed:""`
}

func (c *taskGet) Run(env *Env) error { return tasks.get(env, &c.Common, c.Tasks) }

// get shows those of a kind that were named.
func (k *kind[T]) get(env *Env, c *Common, ids []string) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	return onEach(s, k, ids, func(ctx context.Context, id string) (json.RawMessage, *T, error) {
		return get[T](ctx, s, k.at(id), nil)
	})
}

// taskActs is what cancel and retry have in common.
type taskActs struct {
	Tasks      []string `arg:"" optional:"" predictor:"task" name:"id" help:"Tasks; without any, filters say which."`
	TaskFilter `embed:""`
	Acting     `embed:""`
	Common     `embed:""`
}

type taskCancel struct {
	taskActs  `embed:""`
	Explained `embed:""`
	Grace     *time.Duration `placeholder:"DURATION" help:"How long workers have to stop; 0s ends them now. Without it, as each task says."`
}

func (c *taskCancel) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	body := v1.CancelRequest{Reason: c.Reason, GracePeriodMs: milliseconds(c.Grace)}
	return c.act(s, "cancel", func(ctx context.Context, id string) (json.RawMessage, *v1.Task, error) {
		return post[v1.Task](ctx, s, tasks.at(id)+"/cancel", body)
	}, func(sel v1.TaskSelector, dry bool, from string) any {
		if sel.State == "" && sel.Reason == "" && sel.FinishedAfter.IsZero() {
			sel.State = "QUEUED,DISPATCHED,RUNNING" // what has ended is neither counted nor refused
		}
		return v1.CancelTasksRequest{CancelRequest: body, Selector: sel, DryRun: dry, PageToken: from}
	})
}

type taskRetry struct {
	taskActs `embed:""`
}

func (c *taskRetry) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	return c.act(s, "retry", func(ctx context.Context, id string) (json.RawMessage, *v1.Task, error) {
		return retryOne(ctx, s, id)
	}, func(sel v1.TaskSelector, dry bool, from string) any {
		sel.State = cmp.Or(sel.State, string(v1.Failed)) // no other is tried again, so no other is counted
		return v1.RetryTasksRequest{Selector: sel, DryRun: dry, PageToken: from}
	})
}

// retryOne asks for the attempt behind the task's current one. The answer may be an envelope with a worker's token, which is nobody's
// to see, so the task is shown instead.
func retryOne(ctx context.Context, s *session, id string) (json.RawMessage, *v1.Task, error) {
	_, task, err := get[v1.Task](ctx, s, tasks.at(id), nil)
	if err != nil {
		return nil, nil, err
	}
	if task.Attempt == 0 {
		return nil, nil, fmt.Errorf("task %s is %s and has had no attempt that could be tried again", id, task.State)
	}
	if _, _, err := post[struct{}](ctx, s, tasks.at(id)+"/attempts", v1.NextAttemptRequest{FromAttempt: task.Attempt}); err != nil {
		return nil, nil, err
	}
	return get[v1.Task](ctx, s, tasks.at(id), nil)
}

func milliseconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}

func pairs(m map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, key+"="+m[key])
	}
	return strings.Join(all, ",")
}
