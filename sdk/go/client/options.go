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

// Option changes what New makes.
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
	clock     clock.Clock
}

func defaults() *settings {
	return &settings{
		timeout: 10 * time.Second, tries: 4, proxy: http.ProxyFromEnvironment, log: slog.New(slog.DiscardHandler), metrics: noMetrics{},
		clock: clock.Real,
	}
}

// Token is the control token, as `lubdub token` prints it.
func Token(token string) Option {
	return func(s *settings) error {
		s.token = fixedToken(token)
		return nil
	}
}

// TokenFile reads the token from a file, and again when the server refuses it; spaces around it are not of it.
func TokenFile(path string) Option {
	return func(s *settings) error {
		s.token = &changingToken{get: readToken(path)}
		return nil
	}
}

// TokenFunc asks for the token when it is needed for the first time, and again when the server refuses it.
func TokenFunc(get func(context.Context) (string, error)) Option {
	return func(s *settings) error {
		s.token = &changingToken{get: get}
		return nil
	}
}

// URLs are further addresses of the same deployment. Whoever answered last is asked first; the next one when it does not.
func URLs(more ...string) Option {
	return func(s *settings) error {
		s.urls = append(s.urls, more...)
		return nil
	}
}

// Scope is the tenant and the workspace of every call. Without it they are the token's.
func Scope(tenantID, workspaceID string) Option {
	return func(s *settings) error {
		s.tenant, s.workspace = tenantID, workspaceID
		return nil
	}
}

// UserAgent names the program, before the SDK, in the header User-Agent.
func UserAgent(program string) Option {
	return func(s *settings) error {
		s.agent = program + " "
		return nil
	}
}

// AllowHTTP lets tokens go over http:// to hosts that are not this one. Whoever listens there can take them.
func AllowHTTP() Option {
	return func(s *settings) error {
		s.allowHTTP = true
		return nil
	}
}

// Timeout bounds how long a server may take to answer once, 10 s unless told; what a claim waits comes on top. It must be positive.
func Timeout(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return fmt.Errorf("lubdub: a timeout of %v answers nothing; give a positive one", d)
		}
		s.timeout = d
		return nil
	}
}

// Tries is how often a call that may be repeated is made before its error is returned: 4 unless told; 1: never again.
func Tries(n int) Option {
	return func(s *settings) error {
		if n < 1 {
			return fmt.Errorf("lubdub: %d tries make no call; 1 is the least", n)
		}
		s.tries = n
		return nil
	}
}

// TLS is the configuration of TLS. Certificates of the client's own, and roots, go here.
func TLS(config *tls.Config) Option {
	return func(s *settings) error {
		s.tls = config.Clone()
		return nil
	}
}

// CAFile trusts the authorities in a PEM file, and no others.
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

// Proxy says by which proxy requests go; unless told, as HTTPS_PROXY, HTTP_PROXY and NO_PROXY say. A nil one: by none.
func Proxy(choose func(*http.Request) (*url.URL, error)) Option {
	return func(s *settings) error {
		s.proxy = choose
		return nil
	}
}

// Transport carries requests instead of the client's own, whose TLS and proxy then do not count.
func Transport(t http.RoundTripper) Option {
	return func(s *settings) error {
		if t == nil {
			return errors.New("lubdub: the transport is nil; leave the option out")
		}
		s.transport = t
		return nil
	}
}

// Logger is told of what the client does by itself; unless told, nobody is.
func Logger(log *slog.Logger) Option {
	return func(s *settings) error {
		s.log = log
		return nil
	}
}

// Measure counts what the client does by itself.
func Measure(m Metrics) Option {
	return func(s *settings) error {
		s.metrics = m
		return nil
	}
}

// WithLease says what becomes of tracked work while no server answers; Patient unless told.
func WithLease(l Lease) Option {
	return func(s *settings) error {
		if l > Strict {
			return fmt.Errorf("lubdub: there is no lease %d; it is Patient or Strict", l)
		}
		s.lease = l
		return nil
	}
}
