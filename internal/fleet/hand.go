package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	v1 "github.com/lubdub-io/lubdub/api/v1"
)

// hand is a registered worker that claims tasks and keeps them alive with its own beats.
type hand struct {
	fleet    *Fleet
	id       string
	queue    string
	interval time.Duration
	timeout  time.Duration

	mu      sync.Mutex
	token   string
	sent    time.Time     // when its last acknowledged beat left
	longest time.Duration // between two of those: while it is below the timeout the worker is alive beyond doubt
	heard   time.Time     // the server's clock at the last one
}

// enlist registers a worker. A registration whose answer was lost is superseded by the next try.
func (f *Fleet) enlist(ctx context.Context, r v1.RegisterWorkerRequest) (*hand, error) {
	path := "/v1/workers?tenantId=" + f.opts.Tenant + "&workspaceId=" + f.opts.Workspace
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		sent := time.Now()
		var a v1.RegisterWorkerResponse
		err := f.wire.call(ctx, http.MethodPost, path, f.opts.EnrollToken, &r, &a)
		if err == nil {
			return &hand{
				fleet: f, id: a.WorkerID, queue: r.Queue, token: a.WorkerToken, sent: sent,
				interval: time.Duration(a.HeartbeatIntervalMs) * time.Millisecond, timeout: time.Duration(a.HeartbeatTimeoutMs) * time.Millisecond,
			}, nil
		}
		if !again(err) || !pause(ctx, wait) {
			return nil, fmt.Errorf("registering a worker: %w", err)
		}
	}
}

func (h *hand) call(ctx context.Context, path string, in, out any) error {
	h.mu.Lock()
	token := h.token
	h.mu.Unlock()
	return h.fleet.wire.call(ctx, http.MethodPost, path, token, in, out)
}

// beat says "I am alive", for the worker and for all that it holds.
func (h *hand) beat(ctx context.Context) error {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		h.fleet.tally.beats.Add(1)
		sent := time.Now()
		var a v1.WorkerHeartbeatResponse
		err := h.call(ctx, "/v1/workers/"+h.id+"/heartbeat", &v1.WorkerHeartbeatRequest{}, &a)
		if err == nil {
			h.mu.Lock()
			h.longest = max(h.longest, time.Since(h.sent))
			h.sent, h.heard = sent, a.ServerTime.Time
			if a.WorkerToken != "" {
				h.token = a.WorkerToken
			}
			h.mu.Unlock()
			return nil
		}
		if !again(err) || !pause(ctx, wait) {
			return err
		}
	}
}

// silence is the longest time that may have passed between two of its beats.
func (h *hand) silence() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.longest
}

// keepBeating beats until the context ends. An error says that Lubdub refused a beat.
func (h *hand) keepBeating(ctx context.Context, r *rand.Rand) error {
	for pause(ctx, jitter(r, h.interval)) {
		if err := h.beat(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("a beat of the worker %s: %w", h.id, err)
		}
	}
	return nil
}

// claim takes up to n tasks, waiting for the first. None without an error: there were none.
func (h *hand) claim(ctx context.Context, n int, wait time.Duration, id string) ([]v1.TaskEnvelope, error) {
	waitMs := wait.Milliseconds()
	var a v1.ClaimResponse
	err := h.call(ctx, "/v1/queues/"+h.queue+"/claim", &v1.ClaimRequest{Max: &n, WaitMs: &waitMs, ClaimID: id}, &a)
	var r *refusal
	if errors.As(err, &r) && again(err) {
		pause(ctx, max(firstRetry, min(r.RetryAfter, lastRetry)))
		return nil, nil
	}
	return a.Tasks, err
}

// serve claims tasks and does them until the context ends.
func (h *hand) serve(ctx context.Context, r *rand.Rand, do func(context.Context, v1.TaskEnvelope)) error {
	var doing sync.WaitGroup
	defer doing.Wait()
	for n := 0; ctx.Err() == nil; n++ {
		id := fmt.Sprintf("claim-%d-%d", n, r.Uint32()) // the same one again, should the answer be lost
		var tasks []v1.TaskEnvelope
		for {
			var err error
			if tasks, err = h.claim(ctx, 8, claimWait, id); err == nil {
				break
			}
			if ctx.Err() != nil {
				return nil
			}
			if !again(err) {
				return fmt.Errorf("a claim of the worker %s: %w", h.id, err)
			}
			if !pause(ctx, firstRetry) {
				return nil
			}
		}
		for _, e := range tasks {
			doing.Go(func() { do(ctx, e) })
		}
	}
	return nil
}

const claimWait = time.Second

// leave deregisters.
func (h *hand) leave(ctx context.Context) error {
	var w v1.Worker
	err := h.call(ctx, "/v1/workers/"+h.id+"/deregister", &v1.DeregisterRequest{}, &w)
	if err == nil && w.Status != v1.Offline {
		return fmt.Errorf("the worker %s has deregistered and is %s", h.id, w.Status)
	}
	return err
}
