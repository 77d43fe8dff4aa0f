package fleet

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// worker is a registered worker that claims tasks and keeps them alive with its own beats.
type worker struct {
	fleet    *Fleet
	id       string
	queue    string
	interval time.Duration
	timeout  time.Duration

	mu        sync.Mutex
	token     string
	sent      time.Time     // when its last acknowledged beat was sent
	took      time.Duration // from then until its answer
	longest   time.Duration // between two of those: while it is below the timeout the worker is certainly alive
	lastAcked time.Time     // the server's clock at the last one
	retired   time.Time     // when it left, or began to play dead: silence after that is intended; zero: it is meant to live
	deserts   bool          // it left without deregistering, and with all its tasks
}

// enlist registers a worker. A registration whose answer was lost is repeated with the same id.
func (f *Fleet) enlist(ctx context.Context, r v1.RegisterWorkerRequest) (*worker, error) {
	r.RegistrationID = crand.Text()
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		sent := time.Now()
		a, err := f.enrol.RegisterWorker(ctx, r)
		if err == nil {
			return &worker{
				fleet: f, id: a.WorkerID, queue: r.Queue, token: a.WorkerToken, sent: sent,
				interval: time.Duration(a.HeartbeatIntervalMs) * time.Millisecond, timeout: time.Duration(a.HeartbeatTimeoutMs) * time.Millisecond,
			}, nil
		}
		if !again(err) || !pause(ctx, wait) {
			return nil, err
		}
	}
}

// opens returns the worker's token.
func (w *worker) opens() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.token
}

// beat sends a heartbeat, for the worker and all its tasks.
func (w *worker) beat(ctx context.Context) error {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		w.fleet.tally.beats.Add(1)
		sent := time.Now()
		a, err := w.fleet.api.WorkerHeartbeat(ctx, w.id, w.opens(), v1.WorkerHeartbeatRequest{})
		if err == nil {
			w.mu.Lock()
			w.longest = max(w.longest, time.Since(w.sent))
			w.sent, w.took, w.lastAcked = sent, time.Since(sent), a.ServerTime.Time
			if a.WorkerToken != "" {
				w.token = a.WorkerToken
			}
			w.mu.Unlock()
			return nil
		}
		if !again(err) || !pause(ctx, wait) {
			return err
		}
	}
}

// silence returns the longest time that may have passed between two of its beats, or since the last one, while it was meant to live.
func (w *worker) silence() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.retired.IsZero() {
		return max(w.longest, time.Since(w.sent))
	}
	return w.longest
}

// late reports whether it may have been silent for its timeout: then declaring it dead was right.
func (w *worker) late() bool { return w.silence() >= w.timeout }

// excused reports whether its tasks may have been taken from it.
func (w *worker) excused() bool {
	w.mu.Lock()
	deserts := w.deserts
	w.mu.Unlock()
	return deserts || w.late()
}

// retire marks its silence as intended from here on.
func (w *worker) retire(deserts bool) {
	longest := w.silence()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.longest, w.retired, w.deserts = longest, time.Now(), deserts
}

// work beats, claims tasks and runs them until the context ends. An error means that Lubdub refused it before.
func (w *worker) work(ctx context.Context, beating, claiming *rand.Rand, do func(context.Context, v1.TaskEnvelope)) error {
	on, end := context.WithCancelCause(ctx)
	defer end(nil)
	var both sync.WaitGroup
	both.Go(func() { end(w.keepBeating(on, on, beating)) })
	both.Go(func() { end(w.serve(on, claiming, do)) })
	both.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(on)
}

// keepBeating beats until on ends; it waits for a beat that is then under way, as long as ctx lasts, since that may be stored at any
// time. An error means that Lubdub refused a beat.
func (w *worker) keepBeating(ctx, on context.Context, r *rand.Rand) error {
	for pause(on, jitter(r, w.interval)) {
		if err := w.beat(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("a beat: %w", err)
		}
	}
	return nil
}

// claim claims up to n tasks, and waits for the first. It may return none without an error. It retries under its id while that may
// help: a claim may have taken tasks although its answer was lost, or was that the store did not confirm.
func (w *worker) claim(ctx context.Context, n int, id string) ([]v1.TaskEnvelope, error) {
	waitMs := claimWait.Milliseconds()
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		a, err := w.fleet.api.ClaimTasks(ctx, w.queue, w.opens(), v1.ClaimRequest{Max: &n, WaitMs: &waitMs, ClaimID: id})
		if err == nil {
			return a.Tasks, nil
		}
		if !again(err) || !pause(ctx, wait) {
			return nil, fmt.Errorf("a claim: %w", err)
		}
		w.fleet.tally.unclaimed.Add(1)
	}
}

// serve claims tasks and runs them until the context ends.
func (w *worker) serve(ctx context.Context, r *rand.Rand, do func(context.Context, v1.TaskEnvelope)) error {
	var doing sync.WaitGroup
	defer doing.Wait()
	for n := 0; ; n++ {
		tasks, err := w.claim(ctx, 8, fmt.Sprintf("claim-%d-%d", n, r.Uint32()))
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range tasks {
			doing.Go(func() { do(ctx, e) })
		}
	}
}

const claimWait = time.Second

// leave deregisters.
func (w *worker) leave(ctx context.Context) error {
	w.retire(false)
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		answer, err := w.fleet.api.DeregisterWorker(ctx, w.id, w.opens(), v1.DeregisterRequest{})
		switch {
		case err == nil && answer.Status != v1.Offline:
			return fmt.Errorf("%w: the worker has deregistered and is %s", errAnswer, answer.Status)
		case wait > firstRetry && refusedWith(err) == http.StatusGone:
			return nil // the call before this one has done it, and its answer was lost
		}
		if !again(err) || !pause(ctx, wait) {
			return err
		}
	}
}
