package session

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/contexts"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
)

// transport carries requests, and learns the server's clock and certificate from the answers.
type transport struct {
	http.RoundTripper
	clockAhead atomic.Int64 // how far the server's clock is ahead of ours, in nanoseconds
	certEnds   atomic.Int64 // when the server's certificate does, in seconds since 1970; 0: it showed none
}

func newTransport(at contexts.Context) (*transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if at.CAFile != "" {
		pem, err := os.ReadFile(at.CAFile)
		if err != nil {
			return nil, exit.Misused(err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, exit.Misusef("%s holds no certificate in PEM form", at.CAFile)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &transport{RoundTripper: t}, nil
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.RoundTripper.RoundTrip(req)
	if err == nil {
		if date, failed := http.ParseTime(res.Header.Get("Date")); failed == nil {
			ahead := time.Until(date)
			if ahead.Abs() < 2*time.Second { // the header has whole seconds
				ahead = 0
			}
			t.clockAhead.Store(int64(ahead))
		}
		if res.TLS != nil && len(res.TLS.PeerCertificates) > 0 {
			t.certEnds.Store(res.TLS.PeerCertificates[0].NotAfter.Unix())
		}
	}
	return res, err
}
