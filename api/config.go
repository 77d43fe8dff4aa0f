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

	"github.com/lubdub-io/lubdub/api/token"
)

// DefaultIdleTimeout is how long a connection may idle between two requests. Whatever keeps connections to a Server alive
// must close them sooner, or a request may meet one that is just being closed.
const DefaultIdleTimeout = 90 * time.Second

// Config of a Server. Zero fields mean the default that their comment names; Services, Keys and PublicURL must
// be given.
type Config struct {
	Services  Services
	Keys      *token.Keyring
	PublicURL string // what envelopes carry as callbackBaseUrl, for example https://lubdub.example.com
	Version   string // of the build; empty: "devel"
	BasePath  string // below which a proxy shows the server, such as /lubdub; its requests may come with it or without. Empty: /

	Logger     *slog.Logger          // nil: slog.Default()
	Registerer prometheus.Registerer // where metrics are registered; nil: nowhere
	Gatherer   prometheus.Gatherer   // what /metrics shows; nil: the Registerer when it can, else nothing

	TokenCacheSize int // verified tokens kept, about 1 KB each, rounded up to a power of two; must be given
	MaxConns       int // open connections; for one more another gives way, or it is answered 503; must be given
	MaxControl     int // requests of the control plane under way; one more is answered 503; 0: a sixteenth of MaxConns, at least 16
	MaxStreams     int // streams of events; one more is answered 503; 0: half of MaxConns, at least 16
	MaxBodyBytes   int // memory of request bodies above 16 KiB; one more is answered 503; 0: 256 MiB. Tests have less

	// What each tenant may send a second; more is answered 429. 0: as much as it likes.
	TenantBeats int // heartbeats of tasks and workers, and the other callbacks
	TenantCalls int // everything else that takes a token

	// AdminHosts are the names under which operators reach ServeAdmin's pages, besides addresses and localhost; another
	// Host is refused with 421.
	AdminHosts []string

	// On Linux, TCP connections of the API are served by event loops, and by a goroutine each while they ask for anything but
	// to beat.
	NoEventLoop bool // every connection has a goroutine of its own instead, as over TLS and on other systems; for tests

	shareFrom int // so many answers that come together a loop does not write alone; 0: as suits the machine

	TLS *tls.Config // of the API's listener; nil: it speaks plain HTTP

	ReadTimeout  time.Duration // for one request to arrive whole; 0: 10 s
	WriteTimeout time.Duration // for one answer to be taken; 0: 10 s
	IdleTimeout  time.Duration // between two requests of a connection; 0: DefaultIdleTimeout

	Now func() time.Time // tells tokens' and deadlines' time; nil: this process's, corrected by Tracker.Skew. For tests
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
		return fmt.Errorf("api: the public URL %q must be http://host or https://host, with a path at most", c.PublicURL)
	}
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	if c.BasePath != "" && (c.BasePath[0] != '/' || strings.HasSuffix(c.BasePath, "/") || strings.ContainsAny(c.BasePath, `?#%"\`)) {
		return fmt.Errorf("api: the base path %q must be like /lubdub", c.BasePath)
	}
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
