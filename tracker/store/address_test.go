package store_test

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/lubdub-io/lubdub/internal/redistest"
)

// Address is one address that always leads to the current primary, like a virtual IP or a proxy in front of Redis.
type Address struct {
	listener net.Listener

	mu    sync.Mutex
	to    string
	conns map[net.Conn]bool
}

// StartAddress starts an address that leads to a server.
func StartAddress(t testing.TB, s *redistest.Server) *Address {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &Address{listener: l, to: s.Addr, conns: map[net.Conn]bool{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { a.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		a.LeadTo(s)
		running.Wait()
	})
	return a
}

// LeadTo makes the address lead to another server, and closes the connections to the previous one.
func (a *Address) LeadTo(s *redistest.Server) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.to = s.Addr
	for c := range a.conns {
		_ = c.Close()
	}
}

// URL returns the URL of database 0.
func (a *Address) URL() string { return "redis://" + redistest.As(a.listener.Addr().String()) + "/0" }

func (a *Address) serve(from net.Conn) {
	defer func() { _ = from.Close() }()
	a.mu.Lock()
	to := a.to
	a.mu.Unlock()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	a.mu.Lock()
	moved := a.to != to
	a.conns[from] = true
	a.mu.Unlock()
	if moved {
		_ = from.Close()
	}
	var answers sync.WaitGroup
	answers.Go(func() {
		_, _ = io.Copy(from, server)
		_ = from.Close()
	})
	_, _ = io.Copy(server, from)
	_ = server.Close()
	answers.Wait()
	a.mu.Lock()
	delete(a.conns, from)
	a.mu.Unlock()
}
