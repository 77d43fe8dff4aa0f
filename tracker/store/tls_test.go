package store_test

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/tlsfiles"
	"github.com/lubdub-io/lubdub/internal/tlstest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// Lubdub connects to a Redis with TLS that requires a client certificate.
func TestRedisOverTLS(t *testing.T) {
	t.Parallel()
	ca := tlstest.NewCA(t)
	serverCert, serverKey := ca.Issue("redis", "redis.test")
	cert, key := ca.Issue("lubdub", "lubdub")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := ln.Addr().(*net.TCPAddr).Port
	_ = ln.Close()
	redistest.StartServer(t, "--tls-port", strconv.Itoa(port), "--tls-cert-file", serverCert, "--tls-key-file", serverKey,
		"--tls-ca-cert-file", ca.File, "--tls-auth-clients", "yes")
	url := "rediss://" + redistest.As(net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) + "/0"

	good, err := tlsfiles.Client(ca.File, cert, key, "redis.test", trackertest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	life(t, trackertest.Open(t, tracker.Options{RedisURL: url, RedisTLS: good, RedisTimeout: 10 * time.Second}))

	for name, files := range map[string][4]string{
		"no certificate": {ca.File, "", "", "redis.test"}, "another name": {ca.File, cert, key, ""}, "the system's roots": {"", cert, key,
			"redis.test"},
	} {
		c, err := tlsfiles.Client(files[0], files[1], files[2], files[3], trackertest.Quiet)
		if err != nil {
			t.Fatal(err)
		}
		if tr, err := tracker.Open(t.Context(), tracker.Options{RedisURL: url, RedisTLS: c, Logger: trackertest.Quiet}); err == nil {
			_ = tr.Close(t.Context())
			t.Errorf("%s: it was accepted", name)
		}
	}
	if tr, err := tracker.Open(t.Context(), tracker.Options{RedisURL: url, Logger: trackertest.Quiet}); err == nil {
		_ = tr.Close(t.Context())
		t.Error("a server of an unknown CA was accepted")
	}
}
