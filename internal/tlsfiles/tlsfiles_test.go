package tlsfiles

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/tlstest"
)

var silent = slog.New(slog.DiscardHandler)

// shake connects a client to a server and gives the name of the certificate that it was shown.
func shake(t *testing.T, server, client *tls.Config) (name string, err error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	served := make(chan error, 1)
	go func() {
		conn, err := ln.Accept()
		if err == nil {
			defer conn.Close()
			_, err = tls.Server(conn, server).Write([]byte("x"))
		}
		served <- err
	}()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	c := tls.Client(conn, client)
	if _, err = io.ReadFull(c, make([]byte, 1)); err == nil {
		name = c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	_ = conn.Close()
	return name, errors.Join(err, <-served)
}

func TestNewFilesAreServedAndHalfOnesAreNot(t *testing.T) {
	ca := tlstest.NewCA(t)
	cert, key := ca.Issue("server", "localhost")
	var log bytes.Buffer
	f, err := follow(cert, key, "", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	f.every = 0
	client := ca.Client("", "")
	serves := func(want string) {
		t.Helper()
		client.ServerName = want
		if got, err := shake(t, f.server(), client); got != want {
			t.Fatalf("it serves %q (%v), want %q", got, err, want)
		}
	}
	serves("localhost")
	newCert, newKey := ca.Issue("new", "new.test")
	replace := func(to, from string) {
		t.Helper()
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	replace(cert, newCert)
	serves("localhost")
	serves("localhost")
	if n := strings.Count(log.String(), "cannot be used"); n != 1 {
		t.Errorf("%d log lines that the files do not fit: %s", n, &log)
	}
	replace(key, newKey)
	serves("new.test")
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	serves("new.test")
}

func TestWhichClientsAreAccepted(t *testing.T) {
	ca, other := tlstest.NewCA(t), tlstest.NewCA(t)
	cert, key := ca.Issue("server", "localhost")
	open, err := Server(cert, key, "", silent)
	if err != nil {
		t.Fatal(err)
	}
	closed, err := Server(cert, key, ca.File, silent)
	if err != nil {
		t.Fatal(err)
	}
	old := func(v uint16) *tls.Config {
		c := ca.Client("", "")
		c.MaxVersion = v
		return c
	}
	foreign := ca.Client(other.Issue("client", "client"))
	for name, c := range map[string]struct {
		server, client *tls.Config
		in             bool
	}{
		"anyone": {open, ca.Client("", ""), true}, "TLS 1.2": {open, old(tls.VersionTLS12), true},
		"TLS 1.1":        {open, old(tls.VersionTLS11), false},
		"no certificate": {closed, ca.Client("", ""), false}, "of another CA": {closed, foreign, false},
		"its own":                            {closed, ca.Client(ca.Issue("client", "client")), true},
		"a client that does not know the CA": {open, other.Client("", ""), false},
	} {
		c.client.ServerName = "localhost"
		if _, err := shake(t, c.server, c.client); (err == nil) != c.in {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClient(t *testing.T) {
	ca := tlstest.NewCA(t)
	serverCert, serverKey := ca.Issue("server", "redis.test")
	server, err := Server(serverCert, serverKey, ca.File, silent)
	if err != nil {
		t.Fatal(err)
	}
	cert, key := ca.Issue("client", "lubdub")
	for name, c := range map[string]struct {
		ca, cert, key, server string
		in                    bool
	}{
		"all": {ca.File, cert, key, "redis.test", true}, "no certificate": {ca.File, "", "", "redis.test", false},
		"another name": {ca.File, cert, key, "other.test", false}, "the system's roots": {"", cert, key, "redis.test", false},
	} {
		client, err := Client(c.ca, c.cert, c.key, c.server, silent)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := shake(t, server, client); (err == nil) != c.in {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBadFilesAreRefusedAtTheStart(t *testing.T) {
	ca := tlstest.NewCA(t)
	cert, key := ca.Issue("a", "a")
	_, foreign := ca.Issue("b", "b")
	for name, try := range map[string]func() error{
		"missing":       func() error { _, err := Server("/nowhere", key, "", silent); return err },
		"of two pairs":  func() error { _, err := Server(cert, foreign, "", silent); return err },
		"a key as CA":   func() error { _, err := Server(cert, key, key, silent); return err },
		"a key as root": func() error { _, err := Client(key, "", "", "", silent); return err },
		"client's pair": func() error { _, err := Client("", cert, foreign, "", silent); return err },
	} {
		if try() == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
