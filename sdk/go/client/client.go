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

// Environment variables that New and worker.New look at where nothing else is said.
const (
	EnvURL       = "LUBDUB_URL"        // addresses, with commas
	EnvToken     = "LUBDUB_TOKEN"      // the token
	EnvTokenFile = "LUBDUB_TOKEN_FILE" // the file that the token is in
)

// Client talks to one deployment. It is for any number of goroutines at once.
type Client struct {
	set   *settings
	base  *endpoints
	token tokenSource
	agent []string

	carrier http.RoundTripper

	closing context.Context // ends with Close
	closed  context.CancelFunc

	mu      sync.Mutex
	beaters map[string]*beater // by where the callbacks go
}

// New makes a client of the deployment at url, or at several with commas between them; empty: what LUBDUB_URL says. Where no
// option says which token to use, it is that of LUBDUB_TOKEN, or in the file LUBDUB_TOKEN_FILE; without one only such calls
// succeed as bring their own, such as those of tracked tasks. Nothing is sent yet.
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
	return c, nil
}

// Close ends the beats of what is still tracked, and its contexts, with ErrClosed as their cause. The server will take the work
// for lost. Calls that are under way are not waited for.
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

// Metrics is what Measure said.
func (c *Client) Metrics() Metrics { return c.set.metrics }

// Lease is what WithLease said.
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

// carrier carries the requests.
func (s *settings) carrier() http.RoundTripper {
	if s.transport != nil {
		return s.transport
	}
	own := http.DefaultTransport.(*http.Transport).Clone()
	own.Proxy, own.TLSClientConfig = s.proxy, s.tls
	own.ForceAttemptHTTP2 = true
	own.MaxIdleConns, own.MaxIdleConnsPerHost = 0, 1024 // completions come in crowds; what is idle for long is closed
	return own
}

// Version is that of the SDK: what its module was got in, or devel in its own checkout.
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
