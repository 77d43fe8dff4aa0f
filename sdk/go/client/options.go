package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
)

// Option configures New.
type Option func(*settings) error

type settings struct {
	urls      []string
	token     tokenSource
	tenant    string
	workspace string
	agent     string
	allowHTTP bool
	lease     Lease
	timeout   time.Duration
	tries     int
	tls       *tls.Config
	proxy     func(*http.Request) (*url.URL, error)
	transport http.RoundTripper
	log       *slog.Logger
	metrics   Metrics
	trace     func(context.Context) string
	clock     clock.Clock
}

func defaults() *settings {
	return &settings{
		timeout: 10 * time.Second, tries: 4, proxy: http.ProxyFromEnvironment, log: slog.New(slog.DiscardHandler), metrics: Metrics{}.filled(),
		trace: func(context.Context) string { return "" },
		clock: clock.Real,
	}
}

// Token sets the control token, as `lubdub token` prints it.
func Token(token string) Option {
	return func(s *settings) error {
		s.token = fixedToken(token)
		return nil
	}
}

// TokenFile reads the token from a file, and again when the server refuses it; surrounding whitespace is removed.
func TokenFile(path string) Option {
	return func(s *settings) error {
		s.token = &changingToken{get: readToken(path)}
		return nil
	}
}

// TokenFunc is called for the token when it is first needed, and again when the server refuses it.
func TokenFunc(get func(context.Context) (string, error)) Option {
	return func(s *settings) error {
		s.token = &changingToken{get: get}
		return nil
	}
}

// URLs adds addresses of the same deployment. The one that answered last is tried first; the next one if it does not answer.
func URLs(more ...string) Option {
	return func(s *settings) error {
		s.urls = append(s.urls, more...)
		return nil
	}
}

// Scope sets the tenant and the workspace of every call. By default they are the token's.
func Scope(tenantID, workspaceID string) Option {
	return func(s *settings) error {
		s.tenant, s.workspace = tenantID, workspaceID
		return nil
	}
}

// UserAgent sets the name of the program in the User-Agent header, before the SDK's.
func UserAgent(program string) Option {
	return func(s *settings) error {
		s.agent = program + " "
		return nil
	}
}

// AllowHTTP sends tokens over http:// to other hosts. Anyone on the network path can read them.
func AllowHTTP() Option {
	return func(s *settings) error {
		s.allowHTTP = true
		return nil
	}
}

// Timeout sets how long a server may take to answer, by default 10 s; the wait of a claim is added. It must be positive.
func Timeout(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return fmt.Errorf("lubdub: a timeout of %v is too short; give a positive one", d)
		}
		s.timeout = d
		return nil
	}
}

// Tries sets the maximum number of tries of a call that may be repeated: by default 4; 1: no retries.
func Tries(n int) Option {
	return func(s *settings) error {
		if n < 1 {
			return fmt.Errorf("lubdub: %d tries are too few; 1 is the least", n)
		}
		s.tries = n
		return nil
	}
}

// TLS sets the TLS configuration, such as client certificates and root certificates.
func TLS(config *tls.Config) Option {
	return func(s *settings) error {
		s.tls = config.Clone()
		return nil
	}
}

// CAFile trusts only the authorities in a PEM file.
func CAFile(path string) Option {
	return func(s *settings) error {
		pem, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("lubdub: authorities: %w", err)
		}
		if s.tls == nil {
			s.tls = &tls.Config{}
		}
		s.tls.RootCAs = x509.NewCertPool()
		if !s.tls.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("lubdub: %s holds no certificate in PEM form", path)
		}
		return nil
	}
}

// Proxy chooses the proxy of a request; by default HTTPS_PROXY, HTTP_PROXY and NO_PROXY. nil: no proxy.
func Proxy(choose func(*http.Request) (*url.URL, error)) Option {
	return func(s *settings) error {
		s.proxy = choose
		return nil
	}
}

// Transport sends requests instead of the client's own transport, whose TLS and proxy settings then do not apply.
func Transport(t http.RoundTripper) Option {
	return func(s *settings) error {
		if t == nil {
			return errors.New("lubdub: the transport is nil; omit the option")
		}
		s.transport = t
		return nil
	}
}

// Logger receives log messages; by default there are none.
func Logger(log *slog.Logger) Option {
	return func(s *settings) error {
		s.log = log
		return nil
	}
}

// Measure sets functions that are called with what happens.
func Measure(m Metrics) Option {
	return func(s *settings) error {
		s.metrics = m.filled()
		return nil
	}
}

// TraceContext calls f, with the context of the call, for the W3C trace context of tasks that are created without one. An empty or invalid
// result is ignored. It is sent as a header, which is no part of the request that an idempotency key names. Package lubdubotel has such a
// function for OpenTelemetry.
func TraceContext(f func(context.Context) string) Option {
	return func(s *settings) error {
		s.trace = f
		return nil
	}
}

// WithLease is DefaultLease.
//
// Deprecated: use DefaultLease. The next release removes WithLease.
func WithLease(l Lease) Option { return DefaultLease(l) }

// DefaultLease sets what happens to tracked work while no server answers: Patient unless it is called. LeaseOf sets it for one attempt.
func DefaultLease(l Lease) Option {
	return func(s *settings) error {
		if l > Strict {
			return fmt.Errorf("lubdub: unknown lease %d; use Patient or Strict", l)
		}
		s.lease = l
		return nil
	}
}
