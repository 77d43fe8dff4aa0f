package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// session is one registration.
type session struct {
	id       string
	token    string // under the worker's mutex
	interval time.Duration
	timeout  time.Duration
	accepted time.Time // when the last beat left that was accepted
}

// The longest pauses between two tries.
const (
	maxPause   = 5 * time.Second
	maxRejoin  = time.Minute
	crashCount = 3 // registrations within a minute that are no crash loop
)

// register enters the worker, until that is answered.
func (w *Worker) register(ctx context.Context) error {
	r := w.registration()
	r.RegistrationID = rand.Text()
	if !w.pauseBeforeRejoining(ctx) {
		return ctx.Err()
	}
	for n := 0; ; n++ {
		sent := w.clock.Now()
		a, err := w.client.RegisterWorker(ctx, r)
		if err == nil {
			w.enter(a, sent)
			return nil
		}
		if !client.MayRetry(err) || ctx.Err() != nil {
			return err
		}
		w.set.log.Warn("The worker could not register, and tries again", "error", err)
		if !clock.Sleep(w.clock, client.RetryAfter(err)+clock.Backoff(n, 30*time.Second), ctx.Done()) {
			return ctx.Err()
		}
	}
}

// pauseBeforeRejoining waits where the worker has registered again and again.
func (w *Worker) pauseBeforeRejoining(ctx context.Context) bool {
	now := w.clock.Now()
	w.mu.Lock()
	w.entering = slices.DeleteFunc(w.entering, func(at time.Time) bool { return now.Sub(at) > time.Minute })
	often := len(w.entering) - crashCount
	w.mu.Unlock()
	if often < 0 {
		return true
	}
	return clock.Sleep(w.clock, min(maxRejoin, time.Second<<min(often, 10)), ctx.Done())
}

func (w *Worker) enter(a *v1.RegisterWorkerResponse, sent time.Time) {
	s := &session{
		id: a.WorkerID, token: a.WorkerToken, accepted: sent,
		interval: time.Duration(a.HeartbeatIntervalMs) * time.Millisecond, timeout: time.Duration(a.HeartbeatTimeoutMs) * time.Millisecond,
	}
	if s.interval <= 0 {
		s.interval = 10 * time.Second
	}
	if s.timeout <= 0 {
		s.timeout = 3 * s.interval
	}
	w.set.log.Info("Worker registered with ID: "+s.id, "workerId", s.id, "queue", w.queue, "types", w.types(), "superseded", a.Superseded)
	if s.timeout < 3*time.Second {
		w.set.log.Warn("A heartbeat timeout this short leaves no room for one Retry-After", "timeout", s.timeout)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.session, w.seq, w.failures, w.until = s, 0, 0, time.Time{}
	w.entering = append(w.entering, w.clock.Now())
	w.due = sent.Add(w.spread(s.interval))
	clear(w.ending)                  // the new one does not hold it
	if d := w.unanswered; d != nil { // refused with the old one, and so not counted
		w.completed, w.failed, w.unanswered = w.completed+d.completed, w.failed+d.failed, nil
	}
	w.change()
	w.rouse()
}

// gone reports whether an error says that the worker is not known any more, or not as one that may act: it must register anew.
func gone(err error) bool {
	var e *client.Error
	return errors.Is(err, client.ErrWorkerNotFound) || errors.Is(err, client.ErrWorkerOffline) ||
		(errors.As(err, &e) && e.Status == http.StatusUnauthorized)
}

// comeBack registers anew instead of a session that is gone, until that is answered or the worker is told to stop. What is still held
// goes on, and is listed by the new one. A refusal does not end it: a deployment that takes no token for a while must not end its workers.
func (w *Worker) comeBack(old *session, why error) bool {
	select {
	case w.joining <- struct{}{}:
		defer func() { <-w.joining }()
	case <-w.stopping.Done():
		return false
	}
	w.mu.Lock()
	stale := w.session != old
	w.mu.Unlock()
	if stale || w.stopping.Err() != nil {
		return stale
	}
	w.set.log.Warn("Worker "+old.id+" is lost and registers anew", "workerId", old.id, "error", why)
	for n := 0; ; n++ {
		err := w.register(w.stopping)
		if err == nil || w.stopping.Err() != nil {
			return err == nil
		}
		w.set.log.Error("The worker may not come back, and asks again", "error", err)
		if !clock.Sleep(w.clock, time.Second+clock.Backoff(n, 30*time.Second), w.stopping.Done()) {
			return false
		}
	}
}

// give ends the worker with an error.
func (w *Worker) give(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fatal == nil {
		w.fatal = err
	}
	w.change()
}

// current is the session, with the token that holds now.
func (w *Worker) current() (*session, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session, w.session.token
}

// deregister leaves, as far as anybody listens.
func (w *Worker) deregister() {
	s, token := w.current()
	w.set.log.Info("Deregistering worker ID: "+s.id, "workerId", s.id)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer w.clock.AfterFunc(maxPause, cancel)()
	if _, err := w.client.DeregisterWorker(ctx, s.id, token, v1.DeregisterRequest{Reason: "it stops"}); err != nil && !gone(err) {
		w.set.log.Warn("The worker could not deregister; the server will find it silent", "workerId", s.id, "error", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.session = nil
}
