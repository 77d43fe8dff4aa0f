package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/lubdub-io/lubdub/api"
	"github.com/lubdub-io/lubdub/api/oidc"
	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/config"
	"github.com/lubdub-io/lubdub/internal/embedded"
	"github.com/lubdub-io/lubdub/internal/outbound"
	"github.com/lubdub-io/lubdub/internal/probe"
	"github.com/lubdub-io/lubdub/internal/tlsfiles"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// process is everything that one server runs: the roles in its configuration, and the admin listener.
type process struct {
	cfg *config.Loaded
	log *slog.Logger

	redis     *embedded.Redis // nil: Redis is a separate process
	poster    *outbound.Poster
	tracker   *tracker.Tracker
	provider  *oidc.Provider // nil: people sign in with the server's own tokens only
	api       *api.Server
	listener  *endpoint // nil without the role api
	admin     *endpoint
	tls       *tls.Config // nil: the listeners speak plain HTTP
	publicURL string

	shutdownTimeout time.Duration // tests set a shorter one than the constant

	certificates certificates
}

// open checks the addresses, connects to Redis and wires the parts. Nothing is served until run.
func open(ctx context.Context, cfg *config.Loaded, keys *token.Keyring, log *slog.Logger) (*process, error) {
	takeRedisLog(log)
	for _, s := range cfg.Removed() {
		log.Warn("a setting was removed and has no effect: take it out before the next release, which refuses it",
			"setting", s.Name, "source", s.Source.String(), "instead", s.Instead)
	}
	p := &process{cfg: cfg, log: log, shutdownTimeout: shutdownTimeout, certificates: certificates{}}
	if err := p.open(ctx, keys); err != nil {
		p.abandon()
		return nil, errors.New(cfg.Scrub(err.Error()))
	}
	return p, nil
}

func (p *process) open(ctx context.Context, keys *token.Keyring) (err error) {
	// Addresses are checked first: a port in use is found before anything reaches Redis.
	if p.admin, err = newEndpoint("admin-listen", p.cfg.AdminListen); err != nil {
		return err
	}
	if p.cfg.Roles.API {
		if p.listener, err = newEndpoint("listen", p.cfg.Listen); err != nil {
			return err
		}
	}
	if p.cfg.TLSCert != "" {
		if p.tls, err = tlsfiles.Server(p.cfg.TLSCert, p.cfg.TLSKey, p.cfg.TLSClientCA, p.log); err != nil {
			return err
		}
	}
	connections := p.cfg.MaxConnections
	if p.cfg.Roles.API {
		if connections, err = p.fitConnections(); err != nil {
			return err
		}
	}
	return p.setUp(ctx, keys, connections, prometheus.NewRegistry())
}

// registry is where metrics are registered and read.
type registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

// Creates the parts and wires them.
func (p *process) setUp(ctx context.Context, keys *token.Keyring, connections int, reg registry) (err error) {
	p.publicURL = p.findPublicURL()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo())
	reg.MustRegister(p.certificates)
	p.certificates.ofListeners(p.tls)
	if p.tracker, err = p.openTracker(ctx, reg); err != nil {
		return err
	}
	if err := p.manageWebhooks(ctx); err != nil {
		return err
	}
	if p.provider, err = p.openProvider(); err != nil {
		return err
	}
	p.api, err = api.New(api.Config{
		Services: api.ServicesOf(p.tracker), Keys: keys, Provider: p.provider, PublicURL: p.publicURL, LogsURL: p.cfg.LogsURL,
		Version: version, Logger: p.log, Registerer: reg, Gatherer: reg,
		TokenCacheSize: p.cfg.TokenCacheSize, MaxConns: connections,
		TenantBeats: p.cfg.TenantBeats, TenantCalls: p.cfg.TenantCalls, AdminHosts: p.adminHosts(), TLS: p.tls,
	})
	return err
}

func (p *process) openTracker(ctx context.Context, reg registry) (*tracker.Tracker, error) {
	o := tracker.Options{
		RedisURL: p.cfg.Redis, Shards: p.cfg.Shards, RedisTimeout: p.cfg.RedisTimeout,
		FinishedRetention: p.cfg.FinishedRetain, EventsPerShard: p.cfg.EventsPerShard,
		WorkerInterval: p.cfg.WorkerInterval, WorkerTimeoutMultiplier: p.cfg.WorkerMultiplier,
		HealthCheckPeriod: p.cfg.HealthCheck, Brake: p.cfg.MassExpiryBrake == "on",
		TenantTasks: int64(p.cfg.TenantTasks), TenantBytes: int64(p.cfg.TenantBytes), TenantWorkers: int64(p.cfg.TenantWorkers),
		TenantFires: p.cfg.TenantCalls,
		Durability:  store.Durability(p.cfg.Durability), DurableReplicas: p.cfg.DurableReplicas,
		Logger: p.log, Registerer: reg, Gatherer: reg,
		Replica: stats.Facts{
			Version: version, Commit: commit, Roles: strings.Split(p.cfg.Roles.String(), ","), Since: time.Now().UTC(), Settings: p.cfg.Digests(),
		},
	}
	ranges, err := p.cfg.WebhookRanges()
	if err != nil {
		return nil, err
	}
	p.poster = outbound.New(outbound.Options{Allow: ranges})
	o.WebhookPoster = p.poster
	if strings.HasPrefix(p.cfg.Redis, "rediss") {
		var err error
		if o.RedisTLS, err = tlsfiles.Client(p.cfg.RedisCA, p.cfg.RedisCert, p.cfg.RedisKey, p.cfg.RedisName, p.log); err != nil {
			return nil, err
		}
		p.certificates.ofRedis(o.RedisTLS)
	}
	if p.cfg.WorkerProbe != "off" {
		o.Probe = probe.New(p.cfg.WorkerProbe == "any").Probe
	}
	if p.cfg.Redis == config.Embedded {
		var err error
		if p.redis, err = embedded.Start(); err != nil {
			return nil, err
		}
		o.RedisURL = p.redis.URL()
		if o.Shards == 0 {
			o.Shards = embedded.Shards
		}
		o.EventsPerShard = cmp.Or(o.EventsPerShard, embedded.EventsPerShard)
		o.MaxPendingBeats, o.MaxPendingCalls = embedded.MaxPendingBeats, embedded.MaxPendingCalls
		p.log.Warn(embedded.Caveat)
	}
	return tracker.Open(ctx, o)
}

// findPublicURL returns the URL that workers are given for their calls.
func (p *process) findPublicURL() string {
	if p.cfg.PublicURL != "" || p.listener == nil {
		if p.cfg.PublicURL == "" {
			return "http://127.0.0.1" // a sweeper creates no envelopes, and the admin pages do not show it
		}
		return p.cfg.PublicURL
	}
	host, _, _ := net.SplitHostPort(p.cfg.Listen)
	url := baseURL(p.listener, host, p.tls != nil)
	if reachable(host) != host {
		p.log.Warn("listening on every interface without a public-url: workers on other machines cannot use the address in their envelopes; set "+
			"--public-url", "callbackBaseUrl", url)
	}
	return url
}

// baseURL returns the URL of an endpoint, with the configured host and the actual port.
func baseURL(e *endpoint, host string, secure bool) string {
	_, port, _ := net.SplitHostPort(e.addr)
	scheme := "http"
	if secure {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(reachable(host), port)
}

func (p *process) adminURL() string {
	host, _, _ := net.SplitHostPort(p.cfg.AdminListen)
	return baseURL(p.admin, host, p.cfg.AdminTLS == "on")
}

// adminHosts returns the host names of the admin listener.
func (p *process) adminHosts() []string {
	host, _, _ := net.SplitHostPort(p.cfg.AdminListen)
	return append(p.cfg.AdminNames(), host)
}

// apiURL returns the URL at which a client on this machine reaches the API; empty without the role.
func (p *process) apiURL() string {
	if p.listener == nil {
		return ""
	}
	host, _, _ := net.SplitHostPort(p.cfg.Listen)
	return baseURL(p.listener, host, p.tls != nil)
}

// line returns the one line that announces that the process is up.
func (p *process) line() string {
	what := "sweeping"
	if p.listener != nil {
		what = "listening on " + p.apiURL()
	}
	return fmt.Sprintf("lubdub %s %s (admin %s, roles %s, redis %s)", version, what, p.adminURL(), p.cfg.Roles, config.RedactURL(p.cfg.Redis))
}
