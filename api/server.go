package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/internal/conn"
	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/logs"
	"github.com/lubdub-io/lubdub/internal/shares"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Server answers the API and, on a listener of its own, the pages for operators. Make it with New.
type Server struct {
	cfg      Config
	services Services
	keys     *token.Keyring
	log      *slog.Logger

	tokens  *token.Cache[principal]
	revoked atomic.Pointer[token.Revoked]
	metrics *metrics
	ready   readiness
	ids     requestIDs

	beatRequests *sync.Pool

	control     admission
	claims      *shares.Pool // claims that wait
	streams     *eventStreams
	waits       waits
	tenantBeats *tenantLimit // nil: none
	tenantCalls *tenantLimit

	http  *fasthttp.Server
	admin *fasthttp.Server

	logFailures logs.Limiter
	logLate     logs.Limiter
	logActs     logs.Limiter
	logNobody   logs.Limiter
	bodies      *conn.Budget
	watch       *conn.Watch
	adminWatch  *conn.Watch

	running context.Context // ends when the server shuts down: what waits for something to happen ends then
	stop    context.CancelFunc
	gaveUp  context.Context // ends when a shutdown waits for nobody any more
	giveUp  context.CancelFunc

	inFlight atomic.Int64
	draining atomic.Bool
}

// New makes a server. It opens nothing; give it a listener with Serve.
func New(cfg Config) (*Server, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, services: cfg.Services, keys: cfg.Keys, log: cfg.Logger,
		tokens:  token.NewCache(cfg.TokenCacheSize, (*principal).tenant),
		logLate: logs.Limiter{Lines: lateLines}, logActs: logs.Limiter{Lines: actLines},
	}
	s.waits.server = s
	s.running, s.stop = context.WithCancel(context.Background())
	s.gaveUp, s.giveUp = context.WithCancel(context.Background())
	s.ids.init()
	s.ready.check = cfg.Services.Store.Ready
	cfg.Services.Revocations.Heed(s.heedRevocations)
	var err error
	if s.metrics, err = newMetrics(cfg.Registerer, s); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	s.beatRequests = newBeatRequests(&s.metrics.hot)
	s.setBounds()
	s.http = s.newHTTP(s.Handler)
	s.http.Concurrency = cfg.MaxConns + conn.Spare
	s.http.HeaderReceived = s.limitBody
	s.http.ConnState = lend
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
		ReadBufferSize:  limitHeaders,
		WriteBufferSize: 4 << 10,

		MaxRequestBodySize:           limitOther,
		DisablePreParseMultipartForm: true, // no body is ever put on disk
		CloseOnShutdown:              true,
		SecureErrorLogMessage:        true, // headers hold tokens
		NoDefaultServerHeader:        true,
		TCPKeepalive:                 true,
	}
}

// setBounds sets what is refused in an overload. Each bound counts what it refuses.
func (s *Server) setBounds() {
	counted := func(bound string) func() { return s.metrics.overloaded.WithLabelValues(bound).Inc }
	s.control = admission{shares.NewPool(int64(s.cfg.MaxControl)), counted("control_requests")}
	s.claims = shares.NewPool(int64(s.cfg.MaxConns))
	s.streams = &eventStreams{
		server: s, places: shares.NewPool(int64(s.cfg.MaxStreams)), keepAlive: keepAlive, refused: counted("event_streams"),
	}
	s.bodies = conn.NewBudget(int64(s.cfg.MaxBodyBytes), counted("body_bytes"))
	s.watch = conn.NewWatch(s.cfg.ReadTimeout, s.cfg.WriteTimeout, s.cfg.IdleTimeout, s.bodies)
	s.adminWatch = conn.NewWatch(s.cfg.ReadTimeout, adminWriteTimeout, s.cfg.IdleTimeout, nil)
	start := s.cfg.Now
	if start == nil {
		start = time.Now
	}
	s.tenantBeats = newTenantLimit("tenant-beats-per-second", "heartbeats", s.cfg.TenantBeats, start(), counted("tenant_beats"))
	s.tenantCalls = newTenantLimit("tenant-calls-per-second", "calls", s.cfg.TenantCalls, start(), counted("tenant_calls"))
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
	// SpareConnections are file descriptors that a server may need beyond Config.MaxConns, for operators and for
	// connections that are being refused or cut.
	SpareConnections = maxAdminConns + 2*conn.Spare + conn.MaxHandshakes

	// maxAdminConns is how many connections of operators may be open; for one more the one that is idle longest goes.
	maxAdminConns = 64
	// adminWriteTimeout leaves a CPU profile its time.
	adminWriteTimeout = 2 * time.Minute
)

// SetDraining switches readiness off: /readyz answers 503 while everything else goes on, so that load
// balancers send new work elsewhere before Shutdown.
func (s *Server) SetDraining() { s.draining.Store(true) }

// Shutdown switches readiness off, takes no new connections, and returns when every request under way has
// its answer or ctx ends. The operators' pages go last.
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

// now returns Redis's time as this replica knows it: tokens and deadlines are judged by one clock, whichever replica is asked.
func (s *Server) now(ctx *fasthttp.RequestCtx) time.Time {
	return s.judgedAt(s.local(ctx))
}

// judgedAt returns Redis's time at a moment of this process's.
func (s *Server) judgedAt(local time.Time) time.Time {
	if s.cfg.Now != nil {
		return s.cfg.Now()
	}
	return local.Add(s.services.Beats.Skew())
}

// local returns this process's time, for what is counted here alone.
func (s *Server) local(ctx *fasthttp.RequestCtx) time.Time {
	if s.cfg.Now != nil {
		return s.cfg.Now()
	}
	if t := ctx.Time(); !t.IsZero() { // fasthttp has just asked
		return t
	}
	return time.Now()
}

// protocolError answers what never becomes a valid request.
func (s *Server) protocolError(ctx *fasthttp.RequestCtx, err error) {
	r := refuse(fasthttp.StatusBadRequest, v1.CodeInvalidRequest, "The request is not valid HTTP/1.1")
	var small *fasthttp.ErrSmallBuffer
	var timeout net.Error
	switch {
	case errors.Is(err, conn.MadeRoom):
		conn.MuteUnheard(ctx.Conn())
		r = errMadeRoom
	case errors.Is(err, conn.OverShare):
		conn.MuteUnheard(ctx.Conn())
		r = errOverShare
	case errors.Is(err, conn.Stopping):
		conn.MuteUnheard(ctx.Conn())
		r = errStopping
	case errors.Is(err, conn.ErrNoRoom):
		r = noRoomForBody(s.bodies)
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		r = s.refusedBody(ctx)
	case errors.As(err, &small):
		r = refuse(fasthttp.StatusRequestHeaderFieldsTooLarge, v1.CodeHeadersTooLarge, "The headers are larger than 8 KiB; send less")
	case errors.As(err, &timeout) && timeout.Timeout():
		conn.MuteUnheard(ctx.Conn())
		r = refuse(fasthttp.StatusRequestTimeout, v1.CodeRequestTimeout,
			fmt.Sprintf("The request did not arrive within %s; send it faster", s.cfg.ReadTimeout))
	}
	ctx.Response.Reset()
	s.setRequestID(ctx, nil)
	s.metrics.unparsed.Inc()
	s.metrics.refuseOther(s.kindOfBeat(ctx), r)
	s.writeRefusal(ctx, r)
}

// fasthttpLogger sends fasthttp's own messages to the log, at debug level: they are about clients' connections.
type fasthttpLogger struct{ log *slog.Logger }

func (l fasthttpLogger) Printf(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("fasthttp: " + fmt.Sprintf(format, args...))
	}
}
