package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/beats"
	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/api/events"
	"github.com/lubdub-io/lubdub/api/exchange"
	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/conn"
	"github.com/lubdub-io/lubdub/api/queues"
	"github.com/lubdub-io/lubdub/api/schedules"
	"github.com/lubdub-io/lubdub/api/system"
	"github.com/lubdub-io/lubdub/api/tasks"
	"github.com/lubdub-io/lubdub/api/webhooks"
	"github.com/lubdub-io/lubdub/api/workers"
	"github.com/lubdub-io/lubdub/internal/shares"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Server serves the API and, on a separate listener, the pages for operators. Create it with New.
type Server struct {
	cfg     Config
	log     *slog.Logger
	metrics *connMetrics

	api    *httpapi.API
	beats  *beats.Handlers
	events *events.Handlers
	queues *queues.Handlers
	tasks  *tasks.Handlers
	system *system.Handlers

	http  *fasthttp.Server
	admin *fasthttp.Server

	bodies     *conn.Budget
	watch      *conn.Watch
	adminWatch *conn.Watch

	running context.Context // ends when the server begins to shut down; ends waiting requests
	stop    context.CancelFunc
	gaveUp  context.Context // ends when a shutdown stops waiting for requests
	giveUp  context.CancelFunc

	draining atomic.Bool
}

// New creates a server. It opens no listener; pass one to Serve.
func New(cfg Config) (*Server, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, log: cfg.Logger}
	s.running, s.stop = context.WithCancel(context.Background())
	s.gaveUp, s.giveUp = context.WithCancel(context.Background())
	if err := s.mount(); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	s.http = s.newHTTP(s.Handler)
	s.http.Concurrency = cfg.MaxConns + conn.Spare
	s.http.HeaderReceived = s.limitBody
	s.http.ConnState = trackIdle
	s.admin = s.newHTTP(s.AdminHandler)
	s.admin.Concurrency = maxAdminConns + conn.Spare
	s.admin.WriteTimeout = adminWriteTimeout
	return s, nil
}

func (s *Server) newHTTP(h fasthttp.RequestHandler) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:      h,
		ErrorHandler: s.protocolError,
		Logger:       fasthttpLogger{s.log},

		ReadTimeout:     s.cfg.ReadTimeout,
		WriteTimeout:    s.cfg.WriteTimeout,
		IdleTimeout:     s.cfg.IdleTimeout,
		ReadBufferSize:  httpapi.LimitHeaders,
		WriteBufferSize: 4 << 10,

		MaxRequestBodySize:           httpapi.LimitOther,
		DisablePreParseMultipartForm: true, // no body is ever written to disk
		CloseOnShutdown:              true,
		SecureErrorLogMessage:        true, // headers contain tokens
		NoDefaultServerHeader:        true,
		TCPKeepalive:                 true,
	}
}

// mount creates the routes, their limits and metrics, and those of connections.
func (s *Server) mount() (err error) {
	cfg, of := &s.cfg, &s.cfg.Services
	if s.api, err = httpapi.New(httpapi.Config{
		Attempts: of.Beats, Owners: of.Holdings, Registry: of.Workers, Revocations: of.Revocations,
		Keys: cfg.Keys, Provider: cfg.Provider, Logger: cfg.Logger, Registerer: cfg.Registerer, BasePath: cfg.basePath,
		TokenCacheSize: cfg.TokenCacheSize, MaxControl: cfg.MaxControl, TenantBeats: cfg.TenantBeats, TenantCalls: cfg.TenantCalls,
		Now: cfg.Now, Running: s.running,
	}); err != nil {
		return err
	}
	overloaded := s.api.Metrics.Overloaded
	s.bodies = conn.NewBudget(int64(cfg.MaxBodyBytes), overloaded("body_bytes"))
	s.watch = conn.NewWatch(cfg.ReadTimeout, cfg.WriteTimeout, cfg.IdleTimeout, s.bodies)
	s.adminWatch = conn.NewWatch(cfg.ReadTimeout, adminWriteTimeout, cfg.IdleTimeout, nil)
	if s.metrics, err = newConnMetrics(cfg.Registerer, s.watch); err != nil {
		return err
	}
	envelopes := convert.Envelopes{Keys: cfg.Keys, PublicURL: cfg.PublicURL}
	s.tasks, err = tasks.New(of.Tasks, of.Beats, envelopes, overloaded("awaited_tasks"), cfg.Registerer)
	if err != nil {
		return err
	}
	s.beats = beats.New(s.api, of.Beats)
	s.queues = &queues.Handlers{
		Queues: of.Queues, Envelopes: envelopes, Waiting: shares.NewPool(int64(cfg.MaxConns)), Refused: overloaded("waiting_claims"),
	}
	s.events = &events.Handlers{
		Events: of.Events, Streams: shares.NewPool(int64(cfg.MaxStreams)), Refused: overloaded("event_streams"), KeepAlive: events.KeepAlive,
	}
	s.system = system.New(system.Config{
		Stats: of.Stats, Sweeper: of.Sweeper, Brake: of.Brake, Store: of.Store, Revocations: of.Revocations, Logger: cfg.Logger,
		Provider: cfg.Provider, Draining: s.draining.Load, LogsURL: cfg.LogsURL, Version: cfg.Version, BasePath: cfg.basePath,
		OpenAPI: OpenAPI,
	})
	workers := &workers.Handlers{Workers: of.Workers, Machines: of.Machines, Notices: of.Holdings}
	exchange := &exchange.Handlers{Tasks: s.tasks, Workers: workers, Queues: s.queues}
	schedules := &schedules.Handlers{Schedules: of.Schedules}
	webhooks := &webhooks.Handlers{Webhooks: of.Webhooks}
	return s.api.Mount(slices.Concat(s.beats.Routes(), s.tasks.Routes(), workers.Routes(), exchange.Routes(), s.queues.Routes(),
		s.events.Routes(), schedules.Routes(), webhooks.Routes(), s.system.Routes()), s.system.Page)
}

// Serve answers the API's requests until Shutdown, then returns nil.
func (s *Server) Serve(ln net.Listener) error {
	if s.cfg.TLS != nil {
		ln = tls.NewListener(ln, s.cfg.TLS)
	}
	gate, ok, err := s.onLoops(ln)
	if err != nil {
		return fmt.Errorf("api: the event loop: %w", err)
	}
	if ok {
		return s.http.Serve(gate)
	}
	return s.http.Serve(s.bounded(ln, s.watch, s.cfg.MaxConns, reserveOf(s.cfg.MaxConns), s.cfg.TLS != nil))
}

// ServeAdmin answers AdminHandler's requests until Shutdown, then returns nil.
func (s *Server) ServeAdmin(ln net.Listener) error {
	return s.admin.Serve(s.bounded(ln, s.adminWatch, maxAdminConns, 0, true))
}

const (
	// SpareConnections is how many file descriptors a server may need beyond Config.MaxConns: for operators, and for connections that
	// are being refused or cut.
	SpareConnections = maxAdminConns + 2*conn.Spare + conn.MaxHandshakes

	// maxAdminConns is how many operators' connections may be open; one more closes the one that has been idle longest.
	maxAdminConns = 64
	// adminWriteTimeout is long enough for a CPU profile.
	adminWriteTimeout = 2 * time.Minute
)

// SetDraining switches readiness off: /readyz answers 503 while all other requests are served as before, so that load balancers send
// new work elsewhere before Shutdown.
func (s *Server) SetDraining() { s.draining.Store(true) }

// Shutdown switches readiness off, accepts no new connections, and returns when every request under way has been answered or ctx ends.
// The operators' pages stop last.
func (s *Server) Shutdown(ctx context.Context) error {
	s.SetDraining()
	s.stop()
	done := make(chan struct{})
	defer close(done)
	go s.watch.StopReading(done)
	go s.adminWatch.StopReading(done)
	deaf := s.watch.StopListening()
	err := s.http.ShutdownWithContext(ctx)
	s.giveUp()
	return errors.Join(deaf, err, s.adminWatch.StopListening(), s.admin.ShutdownWithContext(ctx))
}

// protocolError answers a client whose bytes do not form a valid request.
func (s *Server) protocolError(ctx *fasthttp.RequestCtx, err error) {
	r := httpapi.NewRefusal(fasthttp.StatusBadRequest, v1.CodeInvalidRequest, "The request is not valid HTTP/1.1")
	var small *fasthttp.ErrSmallBuffer
	var timeout net.Error
	switch {
	case errors.Is(err, conn.Displaced):
		conn.MuteUnheard(ctx.Conn())
		r = errDisplaced
	case errors.Is(err, conn.OverShare):
		conn.MuteUnheard(ctx.Conn())
		r = errOverShare
	case errors.Is(err, conn.Stopping):
		conn.MuteUnheard(ctx.Conn())
		r = httpapi.ErrStopping
	case errors.Is(err, conn.ErrBudgetExceeded):
		r = bodyBudgetExceeded(s.bodies)
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		r = s.refusedBody(ctx)
	case errors.As(err, &small):
		r = httpapi.NewRefusal(fasthttp.StatusRequestHeaderFieldsTooLarge, v1.CodeHeadersTooLarge, "The headers are larger than 8 KiB; send less")
	case errors.As(err, &timeout) && timeout.Timeout():
		conn.MuteUnheard(ctx.Conn())
		r = httpapi.NewRefusal(fasthttp.StatusRequestTimeout, v1.CodeRequestTimeout,
			fmt.Sprintf("The request did not arrive within %s; send it faster", s.cfg.ReadTimeout))
	}
	ctx.Response.Reset()
	s.api.SetRequestID(ctx, nil)
	s.metrics.unparsed.Inc()
	s.api.Refuse(ctx, r)
}

// fasthttpLogger logs fasthttp's own messages at debug level: they are about clients' connections.
type fasthttpLogger struct{ log *slog.Logger }

func (l fasthttpLogger) Printf(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("fasthttp: " + fmt.Sprintf(format, args...))
	}
}
