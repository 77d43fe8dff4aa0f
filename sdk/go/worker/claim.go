package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Limits of claims.
const (
	claimWait = 30 * time.Second // how long the server waits for a task before it returns none
	maxClaim  = 100              // the server's maximum
	// idlePause bounds the pause after an empty response that came without waiting, for example because the queue is paused.
	idlePause = 5 * time.Second
)

// errNoMore ends the claims.
var errNoMore = errors.New("no more claims")

// keepClaiming claims tasks and starts them, until the worker drains or stops.
func (w *Worker) keepClaiming(ctx, doing context.Context) {
	for idle := 0; ; {
		places, ok := w.reserve()
		if !ok {
			return
		}
		began := w.clock.Now()
		tasks, err := w.claim(ctx, places)
		w.accept(doing, tasks)
		if err != nil {
			return
		}
		if idle++; len(tasks) > 0 || w.clock.Now().Sub(began) >= claimWait/2 {
			idle = 0
			continue
		}
		if !clock.Sleep(w.clock, clock.Backoff(idle+3, idlePause), w.stopping.Done()) {
			return
		}
	}
}

// reserve waits for free places and takes them; it returns false when the worker claims no more.
func (w *Worker) reserve() (places int, ok bool) {
	w.await(func() bool {
		places = min(w.set.concurrency-len(w.jobs), maxClaim)
		over := w.draining || w.fatal != nil || w.stopping.Err() != nil
		if ok = !over && places > 0 && !w.paused; ok {
			w.claiming = places
		}
		return over || ok
	}, w.stopping.Done(), nil)
	return places, ok
}

// claim repeats one claim, under one id, until it is granted or refused. It returns no tasks and no error if the worker had to register
// again, and errNoMore if it must claim no more.
func (w *Worker) claim(ctx context.Context, places int) ([]v1.TaskEnvelope, error) {
	waitMs := claimWait.Milliseconds()
	request := v1.ClaimRequest{Max: &places, WaitMs: &waitMs, ClaimID: rand.Text(),
		Start: w.client.Lease() != client.Strict} // a strict lease begins when the SDK sends the start
	if w.handlers.fallback == nil { // a claim that names no types gets tasks of every type, and those without one
		request.Types = w.types()
	}
	for n := 0; ; n++ {
		s, token := w.current()
		sent := w.clock.Now()
		a, err := w.client.ClaimTasks(ctx, w.queue, token, request)
		if ctx.Err() == nil {
			w.observe("a claim", sent, err)
		}
		if err == nil {
			w.client.Metrics().Claimed("ok", len(a.Tasks))
			return a.Tasks, nil
		}
		if ctx.Err() != nil {
			return nil, errNoMore
		}
		switch {
		case errors.Is(err, client.ErrWorkerDraining):
			w.client.Metrics().Claimed("refused", 0)
			w.drainNow(s)
			return nil, errNoMore
		case w.endHeld(s, err):
			return nil, errNoMore
		case gone(err):
			if !w.comeBack(s, err) {
				return nil, errNoMore
			}
			return nil, nil
		case !client.MayRetry(err):
			w.client.Metrics().Claimed("refused", 0)
			w.fail(fmt.Errorf("worker: the server refused a claim: %w", err))
			return nil, errNoMore
		}
		w.client.Metrics().Claimed("unanswered", 0)
		if !clock.Sleep(w.clock, client.RetryAfter(err)+clock.Backoff(n, maxPause), ctx.Done()) {
			return nil, errNoMore
		}
	}
}

func (w *Worker) drainNow(s *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.draining && w.session == s && w.stopping.Err() == nil {
		w.set.log.Info("Draining: the server requested it", "workerId", s.id, "active", len(w.jobs))
	}
	w.draining = true
	w.waiters.wake()
}

// accept begins the claimed tasks.
func (w *Worker) accept(doing context.Context, tasks []v1.TaskEnvelope) {
	w.mu.Lock()
	w.claiming = 0
	for i := range tasks { // before they start, so that no heartbeat meanwhile omits them
		e := &tasks[i]
		w.inventory[keyOf(e.TaskID, e.Attempt)] = &entry{taskID: e.TaskID, number: e.Attempt}
	}
	if w.gaveBack { // they arrived after the hard stop, and are given back
		tasks = nil
	}
	var begun []*job
	for i := range tasks {
		j := &job{worker: w, envelope: &tasks[i], settled: make(chan struct{})}
		w.jobs[j] = struct{}{}
		begun = append(begun, j)
	}
	w.client.Metrics().Running(len(w.jobs))
	w.waiters.wake()
	w.mu.Unlock()
	for _, j := range begun {
		go j.run(doing)
	}
}
