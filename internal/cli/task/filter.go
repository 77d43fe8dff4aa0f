package task

import (
	"net/url"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Filter are the flags that choose tasks.
type Filter struct {
	State    string   `predictor:"state" placeholder:"STATE" help:"One or more states, separated by commas: SCHEDULED, QUEUED, DISPATCHED, RUNNING, SUCCEEDED, FAILED, CANCELLED."`
	Queue    string   `predictor:"queue" placeholder:"QUEUE" help:"Queue."`
	Type     string   `placeholder:"TYPE" help:"Type."`
	Run      string   `placeholder:"ID" help:"Run."`
	Worker   string   `predictor:"worker" placeholder:"ID" help:"Worker that runs them."`
	Machine  string   `predictor:"machine" placeholder:"ID" help:"Machine of that worker."`
	Schedule string   `predictor:"schedule" placeholder:"ID" help:"Schedule that created them."`
	Selector []string `short:"l" sep:"none" placeholder:"K=V" help:"Labels, separated by commas."`
	Because  string   `placeholder:"REASON" help:"Why they ended: HEARTBEAT_TIMEOUT, WORKER_LOST, …"`
	Since    string   `placeholder:"WHEN" help:"Ended since: a time, or how long ago, such as 15m."`
}

func (f *Filter) query(s *session.Session) (url.Values, error) {
	since, err := s.ParseTime("since", f.Since)
	if err != nil {
		return nil, err
	}
	q := resource.Query("state", strings.ToUpper(f.State), "queue", f.Queue, "type", f.Type, "runId", f.Run, "workerId", f.Worker,
		"machineId", f.Machine, "scheduleId", f.Schedule, "reason", strings.ToUpper(f.Because), "finishedAfter", session.FormatTime(since))
	return q, resource.AddLabels(q, f.Selector)
}

func (f *Filter) selector(s *session.Session) (v1.TaskSelector, error) {
	since, err := s.ParseTime("since", f.Since)
	if err != nil {
		return v1.TaskSelector{}, err
	}
	all, err := resource.ParseLabels(f.Selector)
	return v1.TaskSelector{
		State: strings.ToUpper(f.State), Queue: f.Queue, Type: f.Type, RunID: f.Run, WorkerID: f.Worker, MachineID: f.Machine,
		ScheduleID: f.Schedule, Labels: all, Reason: strings.ToUpper(f.Because), FinishedAfter: since,
	}, err
}
