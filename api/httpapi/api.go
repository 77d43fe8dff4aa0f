package httpapi

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/oidc"
	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/logs"
	"github.com/lubdub-io/lubdub/internal/shares"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/revocations"
)

// Attempts completes the attempts that tokens name.
type Attempts interface {
	Attempt(model.Attempt) *model.Attempt // fills in an attempt's derived names; the result is cached with its token
	Skew() time.Duration                  // how far the store's clock is ahead of this process's
}

// Owners knows which attempts a worker holds.
type Owners interface {
	// Owned returns nil for attempts that are not the worker's.
	Owned(ctx context.Context, scope model.Scope, workerID string, names []holdings.OwnedAttempt) ([]*model.Attempt, error)
}

// Registry adopts workers whose records the store has lost.
type Registry interface {
	Adopt(ctx context.Context, scope model.Scope, workerID string, record []string) error
}

// RevocationList is the list of revoked tokens.
type RevocationList interface {
	// The function gets all revocations and the new ones, now and whenever they change.
	Subscribe(f func(all, news []revocations.Revocation))
}

// Config configures an API. Limits are as in the server's configuration.
type Config struct {
	Attempts    Attempts
	Owners      Owners
	Registry    Registry
	Revocations RevocationList

	Keys           *token.Keyring
	Provider       *oidc.Provider // whose tokens are accepted as control tokens; nil: none
	Logger         *slog.Logger
	Registerer     prometheus.Registerer // nil: metrics are not registered
	BasePath       string
	TokenCacheSize int
	MaxControl     int
	TenantBeats    int
	TenantCalls    int
	Now            func() time.Time // nil: the process's time, corrected by Attempts.Skew
	Running        context.Context  // ends when the server begins to shut down, which ends waiting requests
}

// API is what all routes share: the route table, authorization, limits, answers and metrics.
type API struct {
	Keys    *token.Keyring
	Logger  *slog.Logger
	Metrics *Metrics
	Control *Admission
	Running context.Context

	cfg     Config
	routes  []*Route
	pages   func(*Request, string) (status int, ok bool, err error)
	tokens  *token.Cache[Principal]
	revoked atomic.Pointer[token.Revoked]
	ids     requestIDs

	Waits       Waits
	tenantBeats *tenantLimit // nil: no limit
	tenantCalls *tenantLimit

	logFailures  logs.Limiter
	logActs      logs.Limiter
	logNoWorkers logs.Limiter

	inFlight atomic.Int64
}

// New creates an API without routes.
func New(cfg Config) (*API, error) {
	a := &API{
		Keys: cfg.Keys, Logger: cfg.Logger, Running: cfg.Running, cfg: cfg,
		tokens:  token.NewCache(cfg.TokenCacheSize, (*Principal).tenant),
		logActs: logs.Limiter{Lines: actLines},
	}
	a.Waits.api = a
	a.ids.init()
	cfg.Revocations.Subscribe(a.applyRevocations)
	var err error
	if a.Metrics, err = newMetrics(cfg.Registerer, a); err != nil {
		return nil, err
	}
	a.Control = &Admission{shares.NewPool(int64(cfg.MaxControl)), a.Metrics.Overloaded("control_requests")}
	start := cfg.Now
	if start == nil {
		start = time.Now
	}
	a.tenantBeats = newTenantLimit("tenant-beats-per-second", "heartbeats", cfg.TenantBeats, start(), a.Metrics.Overloaded("tenant_beats"))
	a.tenantCalls = newTenantLimit("tenant-calls-per-second", "calls", cfg.TenantCalls, start(), a.Metrics.Overloaded("tenant_calls"))
	return a, nil
}

// Mount sets the routes that Serve answers, and what answers the paths of pages. It is called once, before the first request.
func (a *API) Mount(routes []*Route, pages func(req *Request, path string) (status int, ok bool, err error)) error {
	a.routes, a.pages = routes, pages
	for i, r := range routes {
		r.index, r.segments = i, strings.Split(r.Pattern[1:], "/")
	}
	return a.Metrics.mount(a.cfg.Registerer, routes)
}

// RedisTime returns Redis's time as this replica knows it, so that all replicas check tokens and deadlines against one clock.
func (a *API) RedisTime(ctx *fasthttp.RequestCtx) time.Time {
	return a.RedisTimeAt(a.Local(ctx))
}

// RedisTimeAt returns Redis's time at a moment of this process's clock.
func (a *API) RedisTimeAt(local time.Time) time.Time {
	if a.cfg.Now != nil {
		return a.cfg.Now()
	}
	return local.Add(a.cfg.Attempts.Skew())
}

// Local returns this process's time, for limits that this process alone counts.
func (a *API) Local(ctx *fasthttp.RequestCtx) time.Time {
	if t := ctx.Time(); !t.IsZero() { // fasthttp has just read the clock
		return a.LocalAt(t)
	}
	return a.LocalAt(time.Now())
}

// LocalAt converts a moment of this process's time to the tests' clock, if there is one.
func (a *API) LocalAt(t time.Time) time.Time {
	if a.cfg.Now != nil {
		return a.cfg.Now()
	}
	return t
}
