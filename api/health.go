package api

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
)

// livez says that the process answers. It never asks Redis: a restart does not heal Redis.
func (c *call) livez() (int, any, error) {
	return fasthttp.StatusOK, v1.Health{Status: "ok"}, nil
}

// readyz says whether this replica should get work: it is not draining and the store answers.
func (c *call) readyz() (int, any, error) {
	status, health := c.s.health()
	return status, health, nil
}

func (c *call) version() (int, any, error) {
	return fasthttp.StatusOK, v1.Version{Name: "lubdub", Version: c.s.cfg.Version, Go: runtime.Version()}, nil
}

func (s *Server) health() (int, v1.Health) {
	if s.draining.Load() {
		return fasthttp.StatusServiceUnavailable, v1.Health{Status: "draining", Message: "The server is shutting down; use another one"}
	}
	if err := s.ready.ask(); err != nil {
		s.log.Warn("not ready", "cause", err)
		return fasthttp.StatusServiceUnavailable, v1.Health{Status: "unavailable", Message: fmt.Sprintf("The store does not answer; see the log, and try again in %s", readyFor)}
	}
	return fasthttp.StatusOK, v1.Health{Status: "ok"}
}

const (
	readyFor     = 200 * time.Millisecond // how long one look at the store counts
	readyTimeout = time.Second
)

// readiness asks the store at most once per readyFor, however many ask: the page is open to everyone.
type readiness struct {
	check func(context.Context) error

	mu  sync.Mutex
	at  time.Time
	err error
}

func (r *readiness) ask() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.at.IsZero() && time.Since(r.at) < readyFor {
		return r.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	r.err = r.check(ctx)
	r.at = time.Now()
	return r.err
}
