package system

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// livez reports that the process answers. It does not use Redis: a restart does not repair Redis.
func (h *Handlers) livez(req *httpapi.Request) (int, any, error) {
	return fasthttp.StatusOK, v1.Health{Status: "ok"}, nil
}

// readyz reports whether this replica should get requests: it is not draining. Trouble with the store concerns all replicas, and on a
// Cluster perhaps only some shards: a balancer that stopped sending requests for it would cut off the healthy shards too, and everything
// for a while after the recovery. So trouble is reported, requests keep coming, and those that need the store are answered 503.
func (h *Handlers) readyz(req *httpapi.Request) (int, any, error) {
	status, health := h.Health(&req.Ctx.Response.Header)
	return status, health, nil
}

func (h *Handlers) version(*httpapi.Request) (int, any, error) {
	return fasthttp.StatusOK, h.Build(), nil
}

// Build returns the version of this build.
func (h *Handlers) Build() v1.Version {
	return v1.Version{Name: "lubdub", Version: h.Config.Version, Go: runtime.Version()}
}

// Health returns the state of this server, and when to retry if it is shutting down.
func (h *Handlers) Health(header *fasthttp.ResponseHeader) (int, v1.Health) {
	status, is := h.state()
	if status != fasthttp.StatusOK {
		header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(int(httpapi.DefaultRetryAfter/time.Second)))
	}
	return status, is
}

// state returns the state of this server.
func (h *Handlers) state() (int, v1.Health) {
	if h.Draining() {
		return fasthttp.StatusServiceUnavailable, v1.Health{Status: "draining", Message: "The server is shutting down; use another one",
			Next: "Nothing, where a balancer is in front: it sends requests elsewhere. Clients that call this server directly should call another."}
	}
	if err := h.ready.await(); err != nil {
		h.Logger.Warn("the store is in trouble", "error", err)
		return fasthttp.StatusOK, v1.Health{Status: "degraded", Message: troubleOf(err), Next: nextOf(err)}
	}
	return fasthttp.StatusOK, v1.Health{Status: "ok"}
}

// troubleOf describes what is wrong with the store, in words that any client may read.
func troubleOf(err error) string {
	if e, ok := errors.AsType[*store.EvictionError](err); ok {
		return e.Message
	}
	return "Redis is not responding. Requests that need it get 503 until it recovers; see the log"
}

// nextOf describes what to do about it.
func nextOf(err error) string {
	if _, ok := errors.AsType[*store.EvictionError](err); ok {
		return "Change the policy as the message says before Redis is full: it would evict tasks"
	}
	return "From this server's host, find out which Redis is down: lubdub doctor --redis \"$LUBDUB_REDIS\", or redis-cli ping. While other " +
		"Redis servers respond, GET /v1/system and the System page of the dashboard name it. No task is failed for silence meanwhile"
}

const (
	readyFor  = 200 * time.Millisecond // how long the result of a check is cached
	readyWait = 500 * time.Millisecond // longest wait for one; it continues without the caller
)

var errNoAnswerYet = errors.New("it has not answered yet")

// readiness checks the store at most once per readyFor, one check at a time, however many clients ask: the page is open to everyone.
type readiness struct {
	check func(context.Context) error

	mu   sync.Mutex
	done chan struct{} // closed when the current or last check has ended; nil: there was none
	at   time.Time     // when the last check ended; zero: one is under way
	err  error         // of the last check
}

func (r *readiness) await() error {
	done := r.startCheck()
	select {
	case <-done:
	default:
		wait := time.NewTimer(readyWait)
		defer wait.Stop()
		select {
		case <-done:
		case <-wait.C:
			return errNoAnswerYet
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// startCheck begins a check unless one is under way or the last result is still cached.
func (r *readiness) startCheck() (done <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done == nil || !r.at.IsZero() && time.Since(r.at) >= readyFor {
		ended := make(chan struct{})
		r.done, r.at = ended, time.Time{}
		go func() {
			err := r.check(context.Background()) // which limits its own time
			r.mu.Lock()
			defer r.mu.Unlock()
			r.err, r.at = err, time.Now()
			close(ended)
		}()
	}
	return r.done
}
