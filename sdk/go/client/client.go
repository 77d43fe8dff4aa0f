package client

import (
	"context"
	"errors"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync"
)

// Environment variables that New and worker.New read if no option is given.
const (
	EnvURL       = "LUBDUB_URL"        // addresses, separated by commas
	EnvToken     = "LUBDUB_TOKEN"      // the token
	EnvTokenFile = "LUBDUB_TOKEN_FILE" // the file with the token
)

// Client calls one deployment. Any number of goroutines may use it.
type Client struct {
	set   *settings
	base  *endpoints
	token tokenSource
	agent []string

	carrier http.RoundTripper

	closing context.Context // ends with Close
	closed  context.CancelFunc

	results results

	mu      sync.Mutex
	beaters map[string]*beater // by the endpoints of the callbacks
}

// New returns a client of the deployment at url, or at several addresses separated by commas; empty: LUBDUB_URL. If no option sets the
// token, it is that of LUBDUB_TOKEN, or in the file LUBDUB_TOKEN_FILE; without one only calls that have their own succeed, such as those of
// tracked tasks. Nothing is sent yet.
func New(url string, opts ...Option) (*Client, error) {
	set := defaults()
	for _, opt := range opts {
		if err := opt(set); err != nil {
			return nil, err
		}
	}
	if url == "" {
		url = os.Getenv(EnvURL)
	}
	if url == "" && len(set.urls) == 0 {
		return nil, errors.New("lubdub: no address: give client.New the URL of a Lubdub server, or set " + EnvURL)
	}
	if set.token == nil {
		set.token = tokenOfEnvironment()
	}
	if fixed, ok := set.token.(fixedToken); ok {
		if err := checkToken(string(fixed)); err != nil {
			return nil, err
		}
	}
	urls := set.urls
	if url != "" {
		urls = append(strings.Split(url, ","), urls...)
	}
	base, err := newEndpoints(urls, set)
	if err != nil {
		return nil, err
	}
	if set.token != fixedToken("") {
		if err := base.checkSecrecy(); err != nil {
			return nil, err
		}
	}
	c := &Client{
		set: set, base: base, token: set.token, carrier: set.carrier(), agent: []string{set.agent + "lubdub-go/" + Version()},
		beaters: map[string]*beater{},
	}
	c.closing, c.closed = context.WithCancel(context.Background())
	c.results = results{client: c, of: map[string]*awaited{}}
	return c, nil
}

// Close stops the heartbeats of attempts that are still tracked, and ends their contexts with ErrClosed as the cause. The server will
// declare them lost. Calls in flight are not waited for, and those of Result fail with ErrClosed.
func (c *Client) Close() {
	c.closed()
	c.mu.Lock()
	all := c.beaters
	c.beaters = map[string]*beater{}
	c.mu.Unlock()
	for _, b := range all {
		b.close()
	}
	if t, ok := c.carrier.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Metrics returns the argument of Measure, with a function in each field.
func (c *Client) Metrics() Metrics { return c.set.metrics }

// Lease returns the argument of DefaultLease.
func (c *Client) Lease() Lease { return c.set.lease }

func tokenOfEnvironment() tokenSource {
	if token := os.Getenv(EnvToken); token != "" {
		return fixedToken(token)
	}
	if path := os.Getenv(EnvTokenFile); path != "" {
		return &changingToken{get: readToken(path)}
	}
	return fixedToken("")
}

// carrier returns the transport of the requests.
func (s *settings) carrier() http.RoundTripper {
	if s.transport != nil {
		return s.transport
	}
	own := http.DefaultTransport.(*http.Transport).Clone()
	own.Proxy, own.TLSClientConfig = s.proxy, s.tls
	own.ForceAttemptHTTP2 = true
	own.MaxIdleConns, own.MaxIdleConnsPerHost = 0, 1024 // many completions may be sent at the same time; idle connections are closed later
	return own
}

// Version returns the SDK's version: that of its module, or devel in its own checkout.
func Version() string { return version() }

var version = sync.OnceValue(func() string {
	const module = "github.com/lubdub-io/lubdub/sdk/go"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == module && strings.HasPrefix(dep.Version, "v") {
				return dep.Version[1:]
			}
		}
	}
	return "devel"
})
