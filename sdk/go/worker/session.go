package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
	machine  string
	token    string // under the worker's mutex
	interval time.Duration
	timeout  time.Duration
	accepted time.Time // when the last accepted beat was sent
	exchange bool      // the server takes completions together
}

// Limits of the pauses between two attempts.
const (
	maxPause   = 5 * time.Second
	maxRejoin  = time.Minute
	crashCount = 3 // more registrations than this within a minute are a crash loop
)

// register registers the worker, and retries until the server answers.
func (w *Worker) register(ctx context.Context) error {
	r := w.registration()
	r.RegistrationID = rand.Text()
	if !w.pauseBeforeRejoining(ctx) {
		return ctx.Err()
	}
	for n := 0; ; n++ {
		sent := w.clock.Now()
		a, err := w.client.RegisterWorker(ctx, r)
		w.observe("a registration", sent, err)
		if err == nil {
			w.enter(a, sent)
			return nil
		}
		if !client.MayRetry(err) || ctx.Err() != nil {
			return err
		}
		if !clock.Sleep(w.clock, client.RetryAfter(err)+clock.Backoff(n, 30*time.Second), ctx.Done()) {
			return ctx.Err()
		}
	}
}

// pauseBeforeRejoining waits if the worker has registered repeatedly within a short time.
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
		id: a.WorkerID, machine: a.MachineID, token: a.WorkerToken, accepted: sent, exchange: slices.Contains(a.Capabilities, "exchange"),
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
	if a.ShouldDrain && !w.paused && !w.draining {
		w.set.log.Info("machine "+s.machine+" is drained; waiting until it is resumed", "workerId", s.id, "machineId", s.machine)
	}
	w.paused = a.ShouldDrain && !w.draining
	w.session = s
	w.totals.restart()
	w.entering = append(w.entering, w.clock.Now())
	w.pace.answered(sent, s.interval)
	clear(w.ending) // the new one does not hold it
	w.waiters.wake()
	w.rouse()
}

// gone reports whether an error means that the server does not know the worker, or lets it act no more: it must register again.
func gone(err error) bool {
	var e *client.Error
	return errors.Is(err, client.ErrWorkerNotFound) || errors.Is(err, client.ErrWorkerOffline) ||
		(errors.As(err, &e) && e.Status == http.StatusUnauthorized)
}

// comeBack registers again after a session is gone, and retries until it succeeds or the worker stops. Tasks that are still held continue,
// and the new session lists them. A refusal does not end the worker: a deployment that rejects tokens for a while must not stop workers.
func (w *Worker) comeBack(old *session, why error) bool {
	select {
	case w.joining <- struct{}{}:
		defer func() { <-w.joining }()
	case <-w.stopping.Done():
		return false
	}
	w.mu.Lock()
	stale, held := w.session != old, w.held // since another call was refused
	w.mu.Unlock()
	if stale || held || w.stopping.Err() != nil {
		return stale
	}
	w.set.log.Warn("Worker "+old.id+" is lost and registers again", "workerId", old.id, "error", why)
	for n := 0; ; n++ {
		err := w.register(w.stopping)
		if err == nil || w.stopping.Err() != nil {
			return err == nil
		}
		if w.endHeld(old, err) {
			return false
		}
		if n == 0 {
			w.set.log.Error("The server refuses to register the worker again; it keeps trying", "workerId", old.id, "error", err)
		}
		if !clock.Sleep(w.clock, time.Second+clock.Backoff(n, 30*time.Second), w.stopping.Done()) {
			return false
		}
	}
}

// fail ends the worker with an error.
func (w *Worker) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fatal == nil {
		w.fatal = err
	}
	w.waiters.wake()
}

// ForcedOffline is the error of a worker that an operator took offline, or whose machine: it must not register until that is undone.
type ForcedOffline struct {
	// Remedy is the command that undoes it.
	Remedy string
	// Err is the server's refusal.
	Err error
}

// HeldOffline is ForcedOffline.
//
// Deprecated: use ForcedOffline. The next release removes HeldOffline.
type HeldOffline = ForcedOffline

// Error includes the remedy.
func (h *ForcedOffline) Error() string {
	return fmt.Sprintf("worker: an operator has taken this worker offline; run `%s` before it is started again: %v", h.Remedy, h.Err)
}

// Unwrap returns the refusal.
func (h *ForcedOffline) Unwrap() error { return h.Err }

const forcedOffline = "FORCED_OFFLINE"

// refusalOf returns a ForcedOffline if the refusal means that an operator has taken the worker offline, else nil.
func refusalOf(id string, err error) error {
	var e *client.Error
	switch {
	case !errors.As(err, &e):
		return nil
	case e.Code == client.ErrWorkerHeld:
		return &ForcedOffline{cmp.Or(e.Details.Remedy, "lubdub worker resume "+cmp.Or(e.Details.WorkerID, id)), err}
	case e.Code == client.ErrWorkerOffline && e.Details.Reason == forcedOffline:
		return &ForcedOffline{"lubdub worker resume " + id, err}
	}
	return nil
}

// endHeld ends the worker if a refusal means that an operator has taken it offline: its tasks are lost, and it sends nothing more.
func (w *Worker) endHeld(s *session, err error) bool {
	refused := refusalOf(s.id, err)
	if refused == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held {
		return true
	}
	w.set.log.Error("An operator has taken the worker offline: it ends", "workerId", s.id, "active", len(w.jobs), "error", refused)
	w.fatal, w.held, w.over = refused, true, true
	for _, e := range w.inventory {
		if e.attempt != nil {
			e.attempt.Lost("", forcedOffline)
		}
	}
	w.leave()
	w.waiters.wake()
	w.rouse()
	return true
}

// outage is a time in which the server does not answer.
type outage struct {
	since time.Time // zero: none
	what  string    // the call whose answer ends it
}

// beatCalls names the calls whose answers are the best evidence: they are frequent, and wait for nothing.
const beatCalls = "heartbeats"

// observe logs when an outage begins and ends. A claim may wait long for its answer: if beats fail too, only a beat's answer ends it.
func (w *Worker) observe(what string, sent time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := &w.outage
	switch failed := err != nil && client.MayRetry(err); {
	case failed && o.since.IsZero():
		o.since, o.what = sent, what
		w.set.log.Warn("No answer from Lubdub to "+what+"; trying again until there is one", "error", err)
	case failed && what == beatCalls:
		o.what = what
	case !failed && what == o.what && !o.since.IsZero():
		w.set.log.Info("Lubdub answers again", "after", w.clock.Now().Sub(o.since).Round(time.Millisecond))
		*o = outage{}
	}
}

// current returns the session and its current token.
func (w *Worker) current() (*session, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session, w.session.token
}

// deregister deregisters the worker, which gives back its tasks. It fails if the server does not answer.
func (w *Worker) deregister() error {
	s, token := w.current()
	w.set.log.Info("Deregistering worker ID: "+s.id, "workerId", s.id)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer w.clock.AfterFunc(maxPause, cancel)()
	_, err := w.client.DeregisterWorker(ctx, s.id, token, v1.DeregisterRequest{Reason: "it stops"})
	if err == nil || gone(err) {
		return nil
	}
	w.set.log.Warn("The worker could not deregister; the server will miss its heartbeats", "workerId", s.id, "error", err)
	return err
}
