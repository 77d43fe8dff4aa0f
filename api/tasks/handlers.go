package tasks

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/internal/logs"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/tasks"
)

// Service is what the handlers need of the domain's tasks.
type Service interface {
	Create(context.Context, model.NewTask) (*model.Created, error)
	CreateBatch(context.Context, []model.NewTask) []tasks.CreateResult // in the same order
	NextAttempt(ctx context.Context, scope model.Scope, taskID string, from int) (*model.Created, error)
	Get(ctx context.Context, scope model.Scope, taskID string) (*model.Task, error)
	List(context.Context, model.TaskFilter) (*model.TaskPage, error)
	Cancel(ctx context.Context, scope model.Scope, taskID string, how model.CancelRequest) (*model.Task, error)
	CancelMany(ctx context.Context, f model.TaskFilter, how model.CancelRequest, dryRun bool) (*tasks.Acted, error)
	RetryMany(ctx context.Context, f model.TaskFilter, dryRun bool) (*tasks.Acted, error)
	Run(ctx context.Context, scope model.Scope, runID string) (*model.Run, error)
	CancelRun(ctx context.Context, scope model.Scope, runID string, how model.CancelRequest) (*model.Run, error)
}

// Attempts receives a worker's reports about an attempt, other than heartbeats.
type Attempts interface {
	Start(context.Context, *model.Attempt, model.Report) (model.Acknowledged, error)
	CompleteMany(context.Context, []*beats.Completing)
	CancelDelivered(*model.Attempt) // a reply that included the cancel was written to the connection; does not block
}

// Handlers answer the routes of tasks, attempts and runs.
type Handlers struct {
	tasks     Service
	attempts  Attempts
	envelopes convert.Envelopes
	late      struct { // completions that came too late
		count prometheus.Counter
		log   logs.Limiter
	}
}

// New creates the handlers and registers their metrics unless reg is nil.
func New(t Service, a Attempts, e convert.Envelopes, reg prometheus.Registerer) (*Handlers, error) {
	h := &Handlers{tasks: t, attempts: a, envelopes: e}
	h.late.log.Lines = lateLines
	h.late.count = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "lubdub_http_late_results_total", Help: "Completions that came too late and changed nothing.",
	})
	if reg == nil {
		return h, nil
	}
	return h, reg.Register(h.late.count)
}
