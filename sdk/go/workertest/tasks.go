package workertest

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// task is a task of the server.
type task struct {
	Task
	request         v1.CreateTaskRequest
	lastBeat        time.Time
	dispatched      time.Time
	cancelRequested bool
	why             string
	grace           time.Duration
	notifiedAt      time.Time // when its worker was notified of that; zero: not yet
	completion      []byte    // the body of the last one
	answer          v1.CompletedResponse
	last            *v1.Progress
	readyAt         time.Time // until when it is not handed out; zero: it may be
	since           time.Time // since when it may be handed out
	failures        int
}

// Task is the state of a task.
type Task struct {
	TaskID   string
	State    v1.State
	Attempt  int
	WorkerID string
	// Beats is the number of heartbeats of this attempt.
	Beats       int
	ProgressPct float64
	Message     string
	// Details are the last checkpoint of any attempt.
	Details json.RawMessage
	// Reason is why the server ended it.
	Reason string
	Output json.RawMessage
	Error  *v1.TaskError
	// Phase and Partial are what a worker reported after a cancel.
	Phase   string
	Partial json.RawMessage
	// Lost is how many attempts were taken from workers.
	Lost int
}

// Task returns a task; the test fails if it does not exist.
func (s *Server) Task(id string) Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	t := s.tasks[id]
	if t == nil {
		s.tb.Helper()
		s.tb.Fatalf("workertest: there is no task %s", id)
	}
	return t.Task
}

// Push creates a task without a queue and returns its envelope.
func (s *Server) Push(r v1.CreateTaskRequest) *v1.TaskEnvelope {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.create(r)
	s.dispatch(t, "")
	return s.envelope(t)
}

// Enqueue creates a task that waits in its queue, first for its RunAt or DelayMs, and returns its id.
func (s *Server) Enqueue(r v1.CreateTaskRequest) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Queue == "" {
		r.Queue = "default"
	}
	return s.enqueue(r).TaskID
}

// enqueue creates a task with a queue. The mutex is held.
func (s *Server) enqueue(r v1.CreateTaskRequest) *task {
	t, now := s.create(r), s.time.Now()
	t.State, t.readyAt = v1.Scheduled, r.RunAt.Time
	if t.readyAt.IsZero() {
		t.readyAt = r.NotBefore.Time
	}
	if r.DelayMs != nil {
		t.readyAt = now.Add(msOr(r.DelayMs, 0))
	}
	if !t.readyAt.After(now) {
		t.State, t.readyAt, t.since = v1.Queued, time.Time{}, now
	}
	s.queued = append(s.queued, t)
	s.change()
	return t
}

// Cancel requests cancellation of a task.
func (s *Server) Cancel(id, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tasks[id]; t.State == v1.Queued || t.State == v1.Scheduled {
		s.finish(t, v1.Cancelled, "")
	} else {
		t.cancelRequested, t.why = true, reason
	}
}

// End ends the attempt of a task as the server does: it is FAILED for a reason such as HEARTBEAT_TIMEOUT.
func (s *Server) End(id, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finish(s.tasks[id], v1.Failed, reason)
}

// Supersede starts another attempt of a task, which fences the previous one.
func (s *Server) Supersede(id string) *v1.TaskEnvelope {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tasks[id]
	s.dispatch(t, "")
	return s.envelope(t)
}

func (s *Server) create(r v1.CreateTaskRequest) *task {
	s.number++
	if r.TaskID == "" {
		r.TaskID = fmt.Sprintf("task_%d", s.number)
	}
	t := &task{request: r, Task: Task{TaskID: r.TaskID}, grace: msOr(r.CancelGracePeriodMs, 30*time.Second)}
	s.tasks[r.TaskID] = t
	return t
}

func msOr(ms *int64, otherwise time.Duration) time.Duration {
	if ms == nil {
		return otherwise
	}
	return time.Duration(*ms) * time.Millisecond
}

// dispatch starts the next attempt. The mutex is held.
func (s *Server) dispatch(t *task, worker string) {
	if t.Attempt > 0 && (t.ProgressPct > 0 || t.Details != nil) {
		t.last = &v1.Progress{Details: t.Details}
		if t.ProgressPct > 0 {
			t.last.ProgressPct, _ = json.Marshal(t.ProgressPct)
			t.last.Message, _ = json.Marshal(t.Message)
		}
	}
	t.Attempt++
	t.State, t.WorkerID, t.Beats, t.Reason = v1.Dispatched, worker, 0, ""
	t.lastBeat, t.dispatched = s.time.Now(), s.time.Now()
	s.change()
}

// finish ends a task. The mutex is held.
func (s *Server) finish(t *task, state v1.State, reason string) {
	t.State, t.Reason = state, reason
	s.queued = slices.DeleteFunc(s.queued, func(q *task) bool { return q == t })
	s.change()
}

func (t *task) over() bool {
	return t.State == v1.Succeeded || t.State == v1.Failed || t.State == v1.Cancelled
}

func (t *task) token() string { return fmt.Sprintf("task/%s/%d", t.TaskID, t.Attempt) }

// timeout is the attempt's own heartbeat timeout; 0: its worker's applies.
func (t *task) timeout() time.Duration {
	if t.request.HeartbeatTimeoutMs == nil && t.request.Queue != "" {
		return 0
	}
	return msOr(t.request.HeartbeatTimeoutMs, 90*time.Second)
}

func (s *Server) envelope(t *task) *v1.TaskEnvelope {
	now := s.time.Now()
	e := &v1.TaskEnvelope{
		TaskID: t.TaskID, RunID: "run_" + t.TaskID, TenantID: "default", WorkspaceID: "default", Attempt: t.Attempt, State: v1.Dispatched,
		Resources: json.RawMessage(`{}`), EnqueuedAt: v1.At(t.dispatched), Deadline: t.request.Deadline, CallbackBaseURL: s.URL(),
		TaskToken: t.token(), TokenExpiresAt: v1.At(now.Add(time.Hour)),
		HeartbeatIntervalMs: msOr(t.request.HeartbeatIntervalMs, 30*time.Second).Milliseconds(),
		CancelGracePeriodMs: t.grace.Milliseconds(), RunTimeoutMs: msOr(t.request.RunTimeoutMs, 0).Milliseconds(),
		Labels: t.request.Labels, Payload: t.request.Payload, Traceparent: t.request.Traceparent, LastProgress: t.last,
	}
	if timeout := t.timeout().Milliseconds(); timeout > 0 {
		e.HeartbeatTimeoutMs = &timeout
	}
	if t.request.Type != "" {
		e.Type = &t.request.Type
	}
	if t.request.Queue != "" {
		e.Queue = &t.request.Queue
	}
	return e
}

// sweep ends attempts and workers that have reached their timeout, unless the server is down. The mutex is held.
func (s *Server) sweep() {
	if s.down != nil {
		return
	}
	now := s.time.Now()
	for _, w := range s.workers {
		if w.Status != v1.Offline && now.Sub(w.lastBeat) >= s.timeout {
			s.offline(w, "HEARTBEAT_TIMEOUT")
		}
	}
	for _, t := range s.queued {
		if !t.readyAt.IsZero() && !t.readyAt.After(now) {
			t.State, t.readyAt, t.since = v1.Queued, time.Time{}, t.readyAt
			s.change()
		}
	}
	for _, t := range s.tasks {
		timeout := t.timeout()
		switch {
		case t.State == v1.Running && timeout > 0 && now.Sub(t.lastBeat) > timeout:
			s.lose(t, "HEARTBEAT_TIMEOUT")
		case t.State == v1.Running && !t.notifiedAt.IsZero() && now.Sub(t.notifiedAt) > t.grace:
			s.finish(t, v1.Failed, "CANCEL_TIMEOUT")
		}
	}
}

// lose takes an attempt from its worker. The mutex is held.
func (s *Server) lose(t *task, reason string) {
	t.Lost++
	if t.request.Queue == "" || t.Lost > or(t.policy().MaxLosses, 3) || t.cancelRequested {
		s.finish(t, v1.Failed, reason)
		return
	}
	t.Reason = reason
	s.requeue(t, t.backoff())
}

// fails reports a failure of an attempt, and whether another attempt follows. The mutex is held.
func (s *Server) fails(t *task, e *v1.TaskError) (again bool) {
	retryable := e.Category.Retryable()
	if e.Retryable != nil {
		retryable = *e.Retryable
	}
	if t.request.Queue == "" || t.cancelRequested || !retryable {
		return false
	}
	if t.failures++; t.failures >= or(t.policy().MaxAttempts, 3) {
		return false
	}
	s.requeue(t, msOr(e.RetryAfterMs, t.backoff()))
	return true
}

// requeue returns a task to its queue, for an attempt after a delay. The mutex is held.
func (s *Server) requeue(t *task, delay time.Duration) {
	t.State, t.readyAt = v1.Queued, s.time.Now().Add(delay)
	s.queued = append(s.queued, t)
	s.change()
}

// policy returns the task's retry policy, without the defaults.
func (t *task) policy() v1.RetryPolicy {
	if t.request.Retry == nil {
		return v1.RetryPolicy{}
	}
	return *t.request.Retry
}

// backoff returns the delay before the attempt after the failures and losses so far.
func (t *task) backoff() time.Duration {
	p := t.policy()
	growth := math.Pow(or(p.Multiplier, 2), float64(t.failures+t.Lost-1))
	ms := min(float64(or(p.InitialBackoffMs, 1000))*growth, float64(or(p.MaxBackoffMs, 60_000)))
	return time.Duration(ms) * time.Millisecond
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
