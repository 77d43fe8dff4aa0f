package api

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/api/oidc"
	"github.com/lubdub-io/lubdub/api/token"
)

// DefaultIdleTimeout is how long a connection may be idle between two requests. Clients and proxies that keep connections to a Server
// open must close them sooner, or they may send a request on a connection that is just being closed.
const DefaultIdleTimeout = 90 * time.Second

// Config configures a Server. Services, Keys, PublicURL, TokenCacheSize and MaxConns are
// required; any other zero field means the default given with it.
type Config struct {
	Services  Services
	Keys      *token.Keyring
	Provider  *oidc.Provider // whose tokens are accepted as control tokens; nil: none
	PublicURL string         // the callbackBaseUrl in task envelopes; if it has a path, requests may include that or not
	LogsURL   string         // template of links to logs, as in the setting logs-url; empty: no links
	Version   string         // of the build; empty: "devel"

	Logger     *slog.Logger          // nil: slog.Default()
	Registerer prometheus.Registerer // where metrics are registered; nil: nowhere
	Gatherer   prometheus.Gatherer   // the source of /metrics; nil: the Registerer if it is a Gatherer, else none

	TokenCacheSize int // verified tokens kept, about 1 KB each, rounded up to a power of two; required
	MaxConns       int // open connections; beyond them an idle one is closed; if none is idle, the new one is answered 503; required
	MaxControl     int // concurrent requests of the control plane; one more is answered 503; 0: a sixteenth of MaxConns, at least 16
	MaxStreams     int // concurrent event streams; one more is answered 503; 0: half of MaxConns, at least 16
	MaxBodyBytes   int // memory of all request bodies above 16 KiB together; beyond it a request is answered 503; 0: 256 MiB. Tests set less

	// What each tenant may send per second; more is answered 429. 0: no limit.
	TenantBeats int // heartbeats of tasks and workers, and the other callbacks
	TenantCalls int // every other request with a token

	// AdminHosts are the host names under which operators reach ServeAdmin's pages, in addition to addresses and localhost. Any other
	// Host is refused with 421.
	AdminHosts []string

	// On Linux, event loops serve the TCP connections of the API. A connection gets a goroutine while it sends requests other than
	// heartbeats.
	NoEventLoop bool // every connection gets its own goroutine, as over TLS and on other systems; for tests

	basePath  string // the path of PublicURL; empty: /
	shareFrom int    // from this many answers at once, a second goroutine helps the loop to write them; 0: depends on the host

	TLS *tls.Config // of the API's listener; nil: plain HTTP

	ReadTimeout  time.Duration // to receive one whole request; 0: 10 s
	WriteTimeout time.Duration // to send one answer; 0: 10 s
	IdleTimeout  time.Duration // between two requests of a connection; 0: DefaultIdleTimeout

	Now func() time.Time // the clock for tokens and deadlines; nil: the process's clock, corrected by Tracker.Skew. For tests
}

func (c *Config) setDefaults() error {
	switch {
	case c.Services.Store == nil:
		return errors.New("api: Config.Services is missing")
	case c.Keys == nil:
		return errors.New("api: Config.Keys is missing")
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("api: the public URL %q must be http://host or https://host, and may have a path", c.PublicURL)
	}
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	c.basePath = strings.TrimRight(u.Path, "/")
	if c.Version == "" {
		c.Version = "devel"
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Gatherer == nil {
		c.Gatherer, _ = c.Registerer.(prometheus.Gatherer)
	}
	if c.TokenCacheSize <= 0 || c.MaxConns <= 0 {
		return errors.New("api: Config.TokenCacheSize and Config.MaxConns must be given")
	}
	for _, n := range []struct {
		field *int
		value int
	}{{&c.MaxControl, max(16, c.MaxConns/16)}, {&c.MaxStreams, max(16, c.MaxConns/2)}, {&c.MaxBodyBytes, 256 << 20}, {&c.TenantBeats, 0},
		{&c.TenantCalls, 0}} {
		if *n.field < 0 {
			return errors.New("api: sizes and limits must not be negative")
		}
		if *n.field == 0 {
			*n.field = n.value
		}
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.ReadTimeout, 10 * time.Second},
		{&c.WriteTimeout, 10 * time.Second},
		{&c.IdleTimeout, DefaultIdleTimeout},
	} {
		if *d.field < 0 {
			return errors.New("api: timeouts must not be negative")
		}
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	return nil
}
