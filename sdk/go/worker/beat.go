package worker

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/internal/beats"
	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

func keyOf(taskID string, number int) string { return taskID + "/" + strconv.Itoa(number) }

// list has an attempt that was claimed in the inventory, from before it has started.
func (w *Worker) list(e *v1.TaskEnvelope) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[keyOf(e.TaskID, e.Attempt)] = &entry{taskID: e.TaskID, number: e.Attempt}
}

// unlist takes it out again, where it did not start.
func (w *Worker) unlist(e *v1.TaskEnvelope) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, keyOf(e.TaskID, e.Attempt))
}

// Holder is what package client beats by. It implements an interface of the SDK's own.
type holder struct{ *Worker }

var _ beats.Holder = holder{}

func (h holder) Hold(a beats.Attempt) {
	id, number := a.Name()
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.held[keyOf(id, number)]
	if e == nil {
		e = &entry{taskID: id, number: number}
		h.held[keyOf(id, number)] = e
	}
	e.attempt = a
	h.rouse() // it may want to be heard more often
}

func (h holder) Release(a beats.Attempt) {
	id, number := a.Name()
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.held[keyOf(id, number)]
	delete(h.held, keyOf(id, number))
	for e != nil && h.beating && e.named == h.beats {
		h.free.Wait()
	}
}

func (h holder) Token() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session == nil {
		return ""
	}
	return h.session.token
}

func (h holder) WorkerID() string { return h.Worker.WorkerID() }

func (h holder) Lease() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session == nil {
		return time.Minute
	}
	return h.session.timeout
}

// rouse has the beats looked at.
func (w *Worker) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// lookEvery is how often leases are looked at, and the probe's watchdog is fed.
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

// look ends leases that are over and sends a beat if one is due; wait is how long there is nothing to look at.
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
	due := w.due
	for _, e := range w.held {
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
	if w.until.After(due) {
		due = w.until
	}
	switch {
	case w.beating || w.over:
	case due.After(now):
		wait = min(wait, due.Sub(now))
	default:
		w.beating = true
		w.beats++
		seq, active := w.write()
		go w.beat(w.session, w.session.token, seq, active, len(w.held), now)
	}
	return max(0, wait), false
}

// write writes a beat with all that is held. Deltas stay as they are, with their number, until they are answered.
func (w *Worker) write() (seq int64, active int) {
	if w.unanswered == nil {
		w.seq++
		w.unanswered = &delta{w.seq, w.completed, w.failed}
		w.completed, w.failed = 0, 0
	}
	d, active := w.unanswered, len(w.jobs)
	b := strconv.AppendInt(append(w.body[:0], `{"seq":`...), d.seq, 10)
	b = strconv.AppendInt(append(b, `,"activeCount":`...), int64(active), 10)
	b = strconv.AppendInt(append(b, `,"completedDelta":`...), d.completed, 10)
	b = strconv.AppendInt(append(b, `,"failedDelta":`...), d.failed, 10)
	b = append(b, `,"tasks":[`...)
	comma := false
	for _, e := range w.held {
		if e.attempt != nil && e.attempt.Over() {
			continue
		}
		if comma {
			b = append(b, ',')
		}
		comma, e.named = true, w.beats
		b = append(append(append(b, `{"taskId":"`...), e.taskID...), `","attempt":`...) // ids need no quoting
		b = strconv.AppendInt(b, int64(e.number), 10)
		if e.attempt != nil {
			b, e.version = e.attempt.AppendProgress(b)
		}
		b = append(b, '}')
	}
	w.body = append(b, `]}`...)
	return d.seq, active
}

// beat sends a beat and takes the answer in.
func (w *Worker) beat(s *session, token string, seq int64, active, named int, sent time.Time) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := w.clock.AfterFunc(min(10*time.Second, s.timeout/3), cancel)
	a, err := w.client.WorkerHeartbeatOnce(ctx, s.id, token, w.body)
	stop()
	took := w.clock.Now().Sub(sent)
	if err == nil {
		w.set.log.Debug("Heartbeat sent successfully", "workerId", s.id, "active", active, "took", took)
		w.client.Metrics().Beat("ok", named, took)
		w.heed(s, a, sent, seq)
		w.beaten(s, nil)
		return
	}
	result := "unanswered"
	if !client.MayRetry(err) {
		result = "refused"
	}
	w.client.Metrics().Beat(result, named, took)
	w.set.log.Warn("A heartbeat was not accepted", "workerId", s.id, "error", err)
	if gone(err) {
		w.comeBack(s, err)
	}
	w.beaten(s, err)
}

// beaten says that no beat is under way any more.
func (w *Worker) beaten(s *session, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.beating = false
	if err != nil && w.session == s {
		w.until = w.clock.Now().Add(client.RetryAfter(err) + clock.Backoff(w.failures, w.session.interval/4))
		w.failures++
	}
	w.free.Broadcast()
	w.change()
	w.rouse()
}

// heed does what the answer to a beat asks for.
func (w *Worker) heed(s *session, a *v1.WorkerHeartbeatResponse, sent time.Time, seq int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.session != s {
		return
	}
	if w.unanswered != nil && w.unanswered.seq == seq {
		w.unanswered = nil
	}
	if a.HeartbeatIntervalMs > 0 {
		s.interval = time.Duration(a.HeartbeatIntervalMs) * time.Millisecond
	}
	if a.HeartbeatTimeoutMs > 0 {
		s.timeout = time.Duration(a.HeartbeatTimeoutMs) * time.Millisecond
	}
	if a.WorkerToken != "" {
		s.token = a.WorkerToken
	}
	s.accepted, w.failures, w.until = sent, 0, time.Time{}
	w.due = sent.Add(w.spread(s.interval))
	lost := map[string]v1.LostTask{}
	for _, l := range a.LostTasks {
		lost[keyOf(l.TaskID, l.Attempt)] = l
	}
	for key, e := range w.held {
		if l, isLost := lost[key]; e.attempt != nil && isLost {
			w.set.log.Warn("Task "+l.TaskID+" is lost", "taskId", l.TaskID, "attempt", l.Attempt, "error", l.Error)
			e.attempt.Lost(l.Error, "")
		} else if e.attempt != nil && e.named == w.beats {
			e.attempt.Accepted(sent, s.timeout, e.version)
		}
	}
	for _, c := range a.CancelTasks {
		if e := w.held[keyOf(c.TaskID, c.Attempt)]; e != nil && e.attempt != nil {
			reason := ""
			if c.Reason != nil {
				reason = *c.Reason
			}
			e.attempt.Cancel(reason)
		}
	}
	if a.ShouldDrain && !w.draining {
		w.set.log.Info("Draining: the server asks for it", "workerId", s.id, "active", len(w.jobs), "deadline", a.DrainDeadline)
		w.draining = true
	}
	if a.ShouldDrain {
		w.drainBy = a.DrainDeadline.Time
	}
}

// spread makes an interval a little shorter, by chance, so that a fleet that was started together does not beat as one.
func (w *Worker) spread(interval time.Duration) time.Duration {
	return time.Duration(float64(interval) * (0.9 + rand.Float64()/10))
}

// endBeats ends the beats.
func (w *Worker) endBeats() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.change()
	w.rouse()
}
