package tasks

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/internal/logs"
	"github.com/lubdub-io/lubdub/internal/shares"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/tasks"
)

// Service is what the handlers need of the domain's tasks.
type Service interface {
	Create(context.Context, model.NewTask) (*model.Created, error)
	CreateBatch(context.Context, []model.NewTask) []tasks.CreateResult // in the same order
	NextAttempt(ctx context.Context, scope model.Scope, taskID string, from int) (*model.Created, error)
	List(context.Context, model.TaskFilter) (*model.TaskPage, error)
	Cancel(ctx context.Context, scope model.Scope, taskID string, how model.CancelRequest) (*model.Task, error)
	CancelMany(ctx context.Context, f model.TaskFilter, how model.CancelRequest, dryRun bool) (*tasks.Acted, error)
	RetryMany(ctx context.Context, f model.TaskFilter, dryRun bool) (*tasks.Acted, error)
	// GetWhenEnded and Wait may wait as long as the request allows, or until the context ends.
	GetWhenEnded(ctx context.Context, scope model.Scope, taskID string, wait time.Duration) (*model.Task, error)
	Wait(context.Context, tasks.WaitRequest) (*tasks.Ended, error)
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
	Awaited   *shares.Pool // of tasks that requests wait for
	refused   func()       // counts a request that was refused because of its wait
	late      struct {     // completions that came too late
		count prometheus.Counter
		log   logs.Limiter
	}
}

// maxAwaited is how many tasks a replica's requests may wait for at a time, a request for each: about 50 MB.
const maxAwaited = 200_000

// New creates the handlers and registers their metrics unless reg is nil. refused counts requests that were refused because of their wait.
func New(t Service, a Attempts, e convert.Envelopes, refused func(), reg prometheus.Registerer) (*Handlers, error) {
	h := &Handlers{tasks: t, attempts: a, envelopes: e, Awaited: shares.NewPool(maxAwaited), refused: refused}
	h.late.log.Lines = lateLines
	h.late.count = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "lubdub_http_late_results_total", Help: "Completions that came too late and changed nothing.",
	})
	if reg == nil {
		return h, nil
	}
	return h, reg.Register(h.late.count)
}
