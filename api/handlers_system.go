package api

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/api/internal/page"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/revocations"
	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/sweep"
)

// StatService is what the handlers need of the domain's statistics.
type StatService interface {
	Get(ctx context.Context, scope model.Scope) (*stats.Stats, error) // an empty half stands for all
	Verdicts(context.Context, stats.VerdictQuery) (*stats.Verdicts, error)
	PoisonTasks(context.Context, model.Scope) ([]stats.PoisonTask, error)
	RecentlyLost(context.Context, model.Scope) (*stats.LostWorkers, error)
	System(context.Context) (*stats.System, error)
	QueuesNow(context.Context, model.Scope) ([]*queues.Queue, error) // as Queues.List, perhaps a second old
	Scopes(context.Context, stats.ScopeFilter) (*stats.ScopePage, error)
}

// SweepService sweeps on request.
type SweepService interface {
	Sweep(context.Context) (sweep.SweepResult, error)
	Release(ctx context.Context, scope model.Scope, lasts time.Duration) (*sweep.Released, error)
}

// StoreService reports on Redis.
type StoreService interface {
	NodesHealth(context.Context) []store.NodeHealth
	Ready(context.Context) error // what is wrong with the store; nil: nothing
}

// RevocationService revokes tokens.
type RevocationService interface {
	Revoke(context.Context, revocations.Revocation) error
}

// SystemConfig of the handlers of the system.
type SystemConfig struct {
	Stats       StatService
	Sweeper     SweepService
	Store       StoreService
	Revocations RevocationService
	Log         *slog.Logger
	Draining    func() bool // the server shuts down
	Version     string      // of the build
	BasePath    string      // before the paths in answers
	OpenAPI     []byte      // the document
}

// systemHandlers answer the routes about the deployment and this server, and the pages for people.
type systemHandlers struct {
	SystemConfig
	ready readiness
	pages func() map[string]*page.Page // by path
}

// newSystemHandlers makes the handlers.
func newSystemHandlers(cfg SystemConfig) *systemHandlers {
	h := &systemHandlers{SystemConfig: cfg}
	h.ready.check = cfg.Store.Ready
	h.pages = sync.OnceValue(func() map[string]*page.Page { return makePages(cfg.OpenAPI) })
	return h
}
