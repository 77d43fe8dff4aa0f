package system

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/api/internal/page"
	"github.com/lubdub-io/lubdub/api/oidc"
	"github.com/lubdub-io/lubdub/tracker/brake"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/revocations"
	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/sweep"
)

// Stats is what the handlers need of the domain's statistics.
type Stats interface {
	Get(ctx context.Context, scope model.Scope) (*stats.Stats, error) // an empty tenant or workspace means all
	Verdicts(context.Context, stats.VerdictQuery) (*stats.Verdicts, error)
	PoisonTasks(context.Context, model.Scope) ([]stats.PoisonTask, error)
	RecentFailures(context.Context, model.Scope) (*stats.Failures, error)
	RecentlyLost(context.Context, model.Scope) (*stats.LostWorkers, error)
	System(context.Context) (*stats.System, error)
	QueuesNow(context.Context, model.Scope) ([]*queues.Queue, error) // as Queues.List, but up to a second old
	Scopes(context.Context, stats.ScopeFilter) (*stats.ScopePage, error)
}

// Sweeper sweeps on request.
type Sweeper interface {
	Sweep(context.Context) (sweep.SweepResult, error)
}

// Brake is the mass-expiry brake.
type Brake interface {
	Release(ctx context.Context, scope model.Scope, lasts time.Duration) (*brake.Released, error)
}

// Store reports on Redis.
type Store interface {
	NodesHealth(context.Context) []store.NodeHealth
	Ready(context.Context) error // what is wrong with the store, or nil
}

// Revocations revokes tokens.
type Revocations interface {
	Revoke(context.Context, revocations.Revocation) error
}

// Config configures the handlers of the system.
type Config struct {
	Stats       Stats
	Sweeper     Sweeper
	Brake       Brake
	Store       Store
	Revocations Revocations
	Logger      *slog.Logger
	Provider    *oidc.Provider // with which people sign in; nil: none
	Draining    func() bool    // the server is shutting down
	LogsURL     string         // template of links to logs; empty: none
	Version     string         // of the build
	BasePath    string         // prefix of the paths in answers
	OpenAPI     []byte         // the document
}

// Handlers answer the routes about the deployment and this server, and the pages for people.
type Handlers struct {
	Config
	ready readiness
	pages func() map[string]*page.Page // by path
}

// New creates the handlers.
func New(cfg Config) *Handlers {
	h := &Handlers{Config: cfg}
	h.ready.check = cfg.Store.Ready
	h.pages = sync.OnceValue(func() map[string]*page.Page { return makePages(cfg.OpenAPI) })
	return h
}
