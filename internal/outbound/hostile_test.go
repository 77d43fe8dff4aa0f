package outbound

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lubdub-io/lubdub/internal/bubble"
	"github.com/lubdub-io/lubdub/internal/tlstest"
)

const (
	ok200    = "HTTP/1.1 200 OK\r\n"
	switches = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: hook\r\n\r\n"
)

// receivers that never end an exchange. Each gets a connection, and returns once that is closed.
var receivers = map[string]struct {
	serve  func(c net.Conn)
	status int    // that counts
	scheme string // "": http
	raw    bool   // of https: no handshake is made for it
}{
	"never reads":                  {serve: func(c net.Conn) {}},
	"never answers":                {serve: request},
	"a status line that drips":     {serve: drips("", "H")},
	"headers that drip":            {serve: drips(ok200, "X")},
	"headers without end":          {serve: floods(ok200, "X-A: "+strings.Repeat("a", 100)+"\r\n")},
	"a flood of 102":               {serve: floods("", "HTTP/1.1 102 Processing\r\n\r\n")},
	"102 now and then":             {serve: drips("", "HTTP/1.1 102 Processing\r\n\r\n")},
	"100 now and then":             {serve: drips("", "HTTP/1.1 100 Continue\r\n\r\n")},
	"101 and silence":              {serve: sends(switches), status: 101},
	"101 and a flood":              {serve: floods(switches, "data"), status: 101},
	"101 that drips":               {serve: drips(switches, "d"), status: 101},
	"101 over TLS":                 {serve: sends(switches), status: 101, scheme: "https"},
	"200 without its body":         {serve: sends(ok200 + "Content-Length: 10\r\n\r\n"), status: 200},
	"200 with a body that drips":   {serve: drips(ok200+"Content-Length: 1000000\r\n\r\n", "b"), status: 200},
	"200 with chunks that drip":    {serve: drips(ok200+"Transfer-Encoding: chunked\r\n\r\n", "1\r\nb\r\n"), status: 200},
	"200 with a flood":             {serve: floods(ok200+"\r\n", "data"), status: 200},
	"200 with trailers that drip":  {serve: drips(ok200+"Transfer-Encoding: chunked\r\n\r\n0\r\n", "X"), status: 200},
	"200 over TLS without a body":  {serve: sends(ok200 + "Content-Length: 10\r\n\r\n"), status: 200, scheme: "https"},
	"302 with a body that drips":   {serve: drips("HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", "b"), status: 302},
	"410 without its body":         {serve: sends("HTTP/1.1 410 Gone\r\nContent-Length: 10\r\n\r\n"), status: 410},
	"500 with a body that drips":   {serve: drips("HTTP/1.1 500 Broken\r\n\r\n", "b"), status: 500},
	"HTTP/2 without a request":     {serve: sends("\x00\x00\x00\x04\x00\x00\x00\x00\x00")},
	"HTTP/2 frames over TLS":       {serve: floods("", "\x00\x00\x00\x04\x00\x00\x00\x00\x00"), scheme: "https"},
	"a TLS handshake that stalls":  {serve: func(c net.Conn) {}, scheme: "https", raw: true},
	"a TLS handshake that drips":   {serve: drips("", "\x16"), scheme: "https", raw: true},
	"TLS, and nothing behind it":   {serve: request, scheme: "https"},
	"plain HTTP where TLS belongs": {serve: drips("", "HTTP/1.1 200 OK\r\n\r\n"), scheme: "https", raw: true},
}

// request reads a request.
func request(c net.Conn) { _, _ = http.ReadRequest(bufio.NewReader(c)) }

func sends(text string) func(net.Conn) {
	return func(c net.Conn) {
		request(c)
		_, _ = io.WriteString(c, text)
	}
}

func floods(first, more string) func(net.Conn) {
	return func(c net.Conn) {
		sends(first)(c)
		for _, err := io.WriteString(c, more); err == nil; _, err = io.WriteString(c, more) {
			time.Sleep(time.Millisecond) // in the bubble: a flood that never waits would let no time pass
		}
	}
}

func drips(first, more string) func(net.Conn) {
	return func(c net.Conn) {
		sends(first)(c)
		for _, err := io.WriteString(c, more); err == nil; _, err = io.WriteString(c, more) {
			time.Sleep(time.Second)
		}
	}
}

// watched is a connection that remembers whether it was closed.
type watched struct {
	net.Conn
	closed *atomic.Int64
}

func (w watched) Close() error {
	w.closed.Add(1)
	return w.Conn.Close()
}

// piped is a Poster whose connections all lead to serve, without a network. closed counts how often one was closed.
func piped(config *tls.Config, serve func(c net.Conn)) (p *Poster, closed *atomic.Int64) {
	p, closed = New(Options{}), &atomic.Int64{}
	p.connect = func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer func() { _ = there.Close() }()
			c := there
			if config != nil {
				c = tls.Server(there, config)
			}
			serve(c)
			_, _ = io.Copy(io.Discard, there) // until the Poster has closed it
		}()
		return watched{here, closed}, nil
	}
	p.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // of the test's own receivers
	return p, closed
}

// Whatever a receiver does, a request ends within its time, or at once when its context ends, and its connection is closed then.
func TestNoReceiverHoldsARequest(t *testing.T) {
	file, key := tlstest.NewCA(t).Issue("receiver", "example.com")
	certificate, err := tls.LoadX509KeyPair(file, key)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range receivers {
		for _, ended := range []bool{false, true} {
			what := name + ", in its time"
			if ended {
				what = name + ", its context ends"
			}
			t.Run(what, func(t *testing.T) {
				bubble.Run(t, func(t *testing.T) {
					var config *tls.Config
					if r.scheme == "https" && !r.raw {
						config = &tls.Config{Certificates: []tls.Certificate{certificate}}
					}
					p, closed := piped(config, r.serve)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					most := Timeout
					if ended {
						most = time.Second / 2
						time.AfterFunc(most, cancel)
					}
					began := time.Now()
					scheme := "http"
					if r.scheme != "" {
						scheme = r.scheme
					}
					status, _, err := p.Post(ctx, scheme+"://example.com/", nil, []byte("{}"))
					if took := time.Since(began); took > most {
						t.Errorf("it took %v, want at most %v", took, most)
					}
					if status != r.status || (err == nil) != (status != 0) {
						t.Errorf("status %d, %v; want %d", status, err, r.status)
					}
					if synctest.Wait(); closed.Load() == 0 {
						t.Error("its connection is open")
					}
					time.Sleep(time.Minute) // in the bubble: until the receiver has noticed
				})
			})
		}
	}
}

// A connection that cannot be made ends the request in its time too.
func TestNoDialHoldsARequest(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		p := New(Options{})
		p.connect = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		began := time.Now()
		_, _, err := p.Post(t.Context(), "https://example.com/", nil, nil)
		if took := time.Since(began); took != Timeout || err == nil || !strings.Contains(err.Error(), "no connection") {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// What is answered well is read to its end, and its connection is used again.
func TestConnectionsAreUsedAgain(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		served, dialled := 0, 0
		p, closed := piped(nil, func(c net.Conn) {
			dialled++
			for in := bufio.NewReader(c); ; served++ {
				if _, err := http.ReadRequest(in); err != nil {
					return
				}
				_, _ = io.WriteString(c, ok200+"Content-Length: 2\r\n\r\nok")
			}
		})
		for range 3 {
			if status, body, err := p.Post(t.Context(), "http://example.com/", nil, nil); status != 200 || string(body) != "ok" || err != nil {
				t.Fatalf("%d %q %v", status, body, err)
			}
			time.Sleep(Timeout) // in the bubble; the time of the request that is over does not close it
		}
		synctest.Wait()
		if served != 3 || dialled != 1 || closed.Load() != 0 {
			t.Errorf("%d requests over %d connections", served, dialled)
		}
		p.client.CloseIdleConnections()
	})
}
