package worker

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/internal/beats"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// rouse makes keepBeating check immediately.
func (w *Worker) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// lookEvery is how often leases are checked and the probe's liveness is refreshed.
const lookEvery = time.Second

// keepBeating beats until endBeats. It never waits for a server, since leases end meanwhile.
func (w *Worker) keepBeating() {
	for {
		wait, over := w.look(w.clock.Now())
		if over {
			return
		}
		t := w.clock.NewTimer(wait)
		select {
		case <-t.C():
		case <-w.wake:
		}
		t.Stop()
	}
}

// look ends leases that have expired and sends a beat if one is due; wait is the time until the next check.
func (w *Worker) look(now time.Time) (wait time.Duration, over bool) {
	w.awake.Store(now.UnixNano())
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over && !w.beating {
		return 0, true
	}
	wait = time.Hour
	if w.set.probe != "" {
		wait = lookEvery
	}
	due := w.pace.due
	for _, e := range w.inventory {
		if e.attempt == nil {
			continue
		}
		if left, matters := e.attempt.Look(now); matters {
			wait = min(wait, left, lookEvery)
		}
		if interval := e.attempt.Interval(); interval > 0 {
			if own := w.session.accepted.Add(interval * 9 / 10); own.Before(due) {
				due = own
			}
		}
	}
	if w.pace.until.After(due) {
		due = w.pace.until
	}
	switch {
	case w.beating || w.over:
	case due.After(now):
		wait = min(wait, due.Sub(now))
	default:
		w.beating = true
		w.beats++
		go w.beat(w.session, w.session.token, w.write(), now)
	}
	return max(0, wait), false
}

// beat sends a beat and applies the answer.
func (w *Worker) beat(s *session, token string, b written, sent time.Time) {
	err := w.withTimeout(s, func(ctx context.Context) error {
		a, err := w.client.WorkerHeartbeatOnce(ctx, s.id, token, w.body)
		took := w.measure(s, b.named, sent, err)
		if err == nil {
			extended := w.applyBeat(s, a, sent, b.seq)
			w.set.log.Debug("Heartbeat sent successfully", "workerId", s.id, "active", b.active, "extended", extended, "took", took)
		}
		return err
	})
	if err == nil && len(b.separate) > 0 {
		sent := w.clock.Now()
		err = w.withTimeout(s, func(ctx context.Context) error { return beats.Client.Heartbeat(ctx, w.client, b.separate) })
		took := w.measure(s, len(b.separate), sent, err)
		if err == nil {
			w.set.log.Debug("Heartbeats of tasks with their own timeouts sent", "workerId", s.id, "tasks", len(b.separate), "took", took)
		}
	}
	w.requestsEnded()
	w.observe(beatCalls, sent, err)
	if err != nil && !w.endHeld(s, err) && gone(err) {
		w.comeBack(s, err)
	}
	w.beatDone(s, err)
}

// requestsEnded records that the requests of a beat have ended: tasks that it named may be completed, even if the worker must register
// again first.
func (w *Worker) requestsEnded() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inFlight = false
	w.free.Broadcast()
}

// withTimeout makes a call for a beat, with a timeout that leaves time for another one.
func (w *Worker) withTimeout(s *session, call func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer w.clock.AfterFunc(min(10*time.Second, s.timeout/3), cancel)()
	return call(ctx)
}

// measure reports the result of a beat, and returns how long it took.
func (w *Worker) measure(s *session, named int, sent time.Time, err error) time.Duration {
	took, result := w.clock.Now().Sub(sent), "ok"
	switch {
	case err == nil:
	case client.MayRetry(err):
		result = "unanswered"
	default:
		result = "refused"
		w.mu.Lock()
		again := w.pace.failures > 0
		w.mu.Unlock()
		if !again && !gone(err) {
			w.set.log.Warn("The server rejects heartbeats; the work continues", "workerId", s.id, "error", err)
		}
	}
	w.client.Metrics().Beat(result, named, took)
	return took
}

// beatDone records that no beat is under way any more.
func (w *Worker) beatDone(s *session, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.beating = false
	if err != nil && w.session == s {
		w.pace.failed(w.clock.Now(), err, s.interval)
	}
	w.free.Broadcast()
	w.waiters.wake()
	w.rouse()
}

// applyBeat applies the answer to a beat, and returns how many tasks' leases the beat has extended.
func (w *Worker) applyBeat(s *session, a *v1.WorkerHeartbeatResponse, sent time.Time, seq int64) (extended int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.session != s {
		return 0
	}
	w.totals.answered(seq)
	if a.HeartbeatIntervalMs > 0 {
		s.interval = time.Duration(a.HeartbeatIntervalMs) * time.Millisecond
	}
	if a.HeartbeatTimeoutMs > 0 {
		s.timeout = time.Duration(a.HeartbeatTimeoutMs) * time.Millisecond
	}
	if a.WorkerToken != "" {
		s.token = a.WorkerToken
	}
	s.accepted = sent
	w.pace.answered(sent, s.interval)
	lost := map[string]v1.LostTask{}
	for _, l := range a.LostTasks {
		lost[keyOf(l.TaskID, l.Attempt)] = l
	}
	for key, e := range w.inventory {
		if l, isLost := lost[key]; e.attempt != nil && isLost {
			e.attempt.Lost(l.Error, "")
		} else if e.attempt != nil && e.extendedBy == w.beats {
			e.attempt.Accepted(sent, s.timeout, e.version)
			extended++
		}
	}
	for _, c := range a.CancelTasks {
		if e := w.inventory[keyOf(c.TaskID, c.Attempt)]; e != nil && e.attempt != nil {
			reason := ""
			if c.Reason != nil {
				reason = *c.Reason
			}
			e.attempt.Cancel(reason)
		}
	}
	if w.paused && a.ShouldDrain {
		return extended
	}
	if w.paused {
		w.paused = false
		w.set.log.Info("machine "+s.machine+" is resumed; the worker begins", "workerId", s.id, "machineId", s.machine)
	}
	if a.ShouldDrain && !w.draining {
		w.set.log.Info("Draining: the server requested it", "workerId", s.id, "active", len(w.jobs), "deadline", a.DrainDeadline)
		w.draining = true
	}
	if a.ShouldDrain {
		w.drainBy = a.DrainDeadline.Time
	}
	return extended
}

// endBeats ends the beats.
func (w *Worker) endBeats() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.waiters.wake()
	w.rouse()
}
