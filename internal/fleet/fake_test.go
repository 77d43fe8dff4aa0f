package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// fake is a Lubdub that lives in the test's own time: an http.RoundTripper, so that a whole show runs inside a
// synctest bubble in an instant. Its faults are what the fleet must find.
type fake struct {
	pool  fakePool
	mu    sync.Mutex
	tasks map[string]*fakeTask
	keys  map[string]string // idempotency key to task id

	// Faults; zero: none.
	late        time.Duration       // every verdict comes this much late
	hideLate    bool                // and the evidence shows that it did not
	early       time.Duration       // or early
	blind       bool                // the silent are never found
	revive      bool                // failed tasks continue when their worker does
	killer      bool                // the living are failed as well
	forget      bool                // finished tasks are not known any more
	noEvidence  bool                // verdicts come without evidence
	noCancel    bool                // beats never request a stop
	noDeadlines bool                // every deadline is refused, as if it had passed
	double      bool                // each creation leaves a second task in the run
	slow        time.Duration       // every callback's response comes this much later than it is applied
	edit        func(task *v1.Task) // changes what GET returns
	outage      func() bool         // answers 503
	lose        func() bool         // the request is applied, and its response is lost
}

type fakeTask struct {
	v1.Task
	request v1.CreateTaskRequest
	queued  bool        // it lives by its worker's beats
	beat    *time.Timer // zombie
	limit   *time.Timer // start, run or deadline
	grace   *time.Timer
	running bool
	dropped bool // an attempt of it was given to a worker that did not receive it
}

func newFake() *fake {
	return &fake{
		tasks: map[string]*fakeTask{}, keys: map[string]string{},
		pool: fakePool{workers: map[string]*fakeWorker{}, queued: map[string][]*fakeTask{}, claims: map[string]any{}},
	}
}

// stop ends all of its timers.
func (f *fake) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, task := range f.tasks {
		for _, timer := range []*time.Timer{task.beat, task.limit, task.grace} {
			if timer != nil {
				timer.Stop()
			}
		}
	}
	for _, w := range f.pool.workers {
		w.stop()
	}
}

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	var in []byte
	if r.Body != nil {
		in, _ = io.ReadAll(r.Body)
	}
	status, out := f.answer(r, in)
	if f.slow > 0 && !strings.HasSuffix(r.URL.Path, "/v1/tasks") && r.Method == http.MethodPost {
		if !pause(r.Context(), f.slow) {
			return nil, r.Context().Err()
		}
	}
	if !pause(r.Context(), f.wait(r.URL.Path)) {
		return nil, r.Context().Err()
	}
	if f.lose != nil && f.lose() {
		return nil, errors.New("connection reset by peer")
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(b)), Request: r}, nil
}

func (f *fake) answer(r *http.Request, in []byte) (int, any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.outage != nil && f.outage() {
		return 503, v1.Error{Error: v1.CodeStoreUnavailable}
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	switch {
	case r.URL.Path == "/v1/tasks":
		return f.create(in, r.Header.Get("Idempotency-Key"))
	case r.URL.Path == "/v1/heartbeats":
		var q v1.HeartbeatsRequest
		_ = json.Unmarshal(in, &q)
		t := f.tasks[q.Heartbeats[0].TaskID]
		status, a := f.callback(t, "heartbeat", nil, q.Heartbeats[0].Attempt)
		b, _ := json.Marshal(a)
		var result v1.HeartbeatResult
		_ = json.Unmarshal(b, &result)
		result.Status = status
		return 200, v1.HeartbeatsResponse{Results: []v1.HeartbeatResult{result}}
	case r.URL.Path == "/v1/tasks:batch":
		return f.createMany(in)
	case parts[0] == "workers" || parts[0] == "queues":
		return f.workers(r, parts, in)
	case parts[0] == "runs":
		run := v1.Run{Counts: map[v1.State]int{}}
		for _, t := range f.tasks {
			run.Counts[t.State]++
			run.TotalCount++
		}
		return 200, run
	}
	t := f.tasks[parts[1]]
	if t == nil {
		return 404, v1.Error{Error: v1.CodeTaskNotFound}
	}
	if len(parts) == 2 {
		if f.forget && terminal(t.State) {
			return 404, v1.Error{Error: v1.CodeTaskNotFound}
		}
		seen := t.Task
		seen.History = append([]v1.HistoryEntry(nil), t.History...)
		if f.edit != nil {
			f.edit(&seen)
		}
		return 200, seen
	}
	var attempt struct{ Attempt int }
	_ = json.Unmarshal(in, &attempt)
	return f.callback(t, parts[2], in, attempt.Attempt)
}

func (f *fake) create(in []byte, key string) (int, any) {
	if id := f.keys[key]; id != "" {
		return 201, f.tasks[id].envelope()
	}
	t := &fakeTask{}
	_ = json.Unmarshal(in, &t.request)
	if d := t.request.Deadline; !d.IsZero() && (f.noDeadlines || !d.After(time.Now())) {
		return 400, v1.Error{Error: v1.CodeInvalidRequest, Message: "deadline has passed"}
	}
	t.TaskID = fmt.Sprintf("task_%d", len(f.tasks))
	t.HeartbeatTimeoutMs, t.HeartbeatIntervalMs = t.request.HeartbeatTimeoutMs, *t.request.HeartbeatIntervalMs
	f.tasks[t.TaskID] = t
	f.keys[key] = t.TaskID
	f.dispatch(t)
	if f.double {
		f.tasks["copy_of_"+t.TaskID] = &fakeTask{Task: v1.Task{State: v1.Queued}}
	}
	return 201, t.envelope()
}

func (f *fake) dispatch(t *fakeTask) {
	t.State, t.Reason, t.running = v1.Dispatched, nil, false
	t.Attempt++
	t.DispatchedAt = v1.At(time.Now())
	if ms := t.request.StartTimeoutMs; ms != nil {
		f.timer(&t.limit, t, *ms, "TIMED_OUT", "START_TIMEOUT", false)
	}
	if d := t.request.Deadline; !d.IsZero() {
		f.timer(&t.limit, t, time.Until(d.Time).Milliseconds(), "TIMED_OUT", "DEADLINE_EXCEEDED", false)
	}
	if f.killer && t.Attempt == 1 {
		time.AfterFunc(1200*time.Millisecond, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			if t.State == v1.Running {
				f.fail(t, "ZOMBIE", "HEARTBEAT_TIMEOUT", 1000)
			}
		})
	}
}

func (t *fakeTask) envelope() v1.TaskEnvelope {
	e := v1.TaskEnvelope{TaskID: t.TaskID, Attempt: t.Attempt, EnqueuedAt: t.DispatchedAt, TaskToken: "t",
		HeartbeatIntervalMs: t.HeartbeatIntervalMs, HeartbeatTimeoutMs: t.HeartbeatTimeoutMs}
	if t.Attempt > 1 {
		e.LastProgress = &v1.Progress{ProgressPct: json.RawMessage("50")}
	}
	return e
}

// timer sets the one of the task's clocks that ends it.
func (f *fake) timer(which **time.Timer, t *fakeTask, ms int64, outcome, reason string, silent bool) {
	if *which != nil {
		(*which).Stop()
	}
	if silent && f.blind {
		return
	}
	attempt := t.Attempt
	*which = time.AfterFunc(time.Duration(ms)*time.Millisecond+f.late-f.early, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !terminal(t.State) && t.Attempt == attempt {
			f.fail(t, outcome, reason, ms)
		}
	})
}

func (f *fake) fail(t *fakeTask, outcome, reason string, ms int64) {
	e := &v1.Evidence{DetectedAt: v1.At(time.Now()), TimeoutMs: ms, SilentMs: ms}
	if !f.hideLate {
		e.DetectionLagMs = (f.late - f.early).Milliseconds()
	}
	if f.noEvidence {
		e = nil
	}
	f.finish(t, v1.Failed, outcome, reason, e)
}

func (f *fake) finish(t *fakeTask, state v1.State, outcome, reason string, e *v1.Evidence) {
	t.State = state
	if t.beat != nil {
		t.beat.Stop()
	}
	h := v1.HistoryEntry{Attempt: t.Attempt, Outcome: outcome, Evidence: e}
	if reason != "" {
		t.Reason, h.Reason = &reason, &reason
	}
	t.History = append(t.History, h)
}

func (f *fake) callback(t *fakeTask, name string, in []byte, attempt int) (int, any) {
	now := v1.At(time.Now())
	switch name {
	case "cancel":
		if terminal(t.State) {
			return 409, v1.Error{Error: v1.CodeTaskAlreadyTerminal, State: t.State}
		}
		t.CancelRequested = true
		if !t.running {
			f.finish(t, v1.Cancelled, "CANCELLED", "", nil)
		}
		return 202, t.Task
	case "attempts":
		var q v1.NextAttemptRequest
		_ = json.Unmarshal(in, &q)
		if q.FromAttempt == t.Attempt {
			f.dispatch(t)
		}
		return 201, t.envelope()
	case "completed":
		var c v1.CompletedRequest
		_ = json.Unmarshal(in, &c)
		if t.lost(attempt) || terminal(t.State) && (len(t.History) < attempt || t.History[attempt-1].Outcome != string(c.Outcome)) {
			return 409, v1.Error{Error: v1.CodeTaskAlreadyTerminal}
		}
		if !terminal(t.State) {
			reason := ""
			if c.Outcome == v1.OutcomeFailed {
				reason = "WORKER_REPORTED"
				t.Error, _ = json.Marshal(c.Error)
			}
			f.finish(t, v1.State(c.Outcome), string(c.Outcome), reason, nil)
		}
		return 200, v1.CompletedResponse{Acknowledged: true, FinalState: v1.State(c.Outcome), ServerTime: now}
	}
	if terminal(t.State) && name == "started" || t.lost(attempt) {
		return 409, v1.Error{Error: v1.CodeTaskAlreadyTerminal}
	}
	if terminal(t.State) && f.revive {
		return 200, v1.HeartbeatResponse{Acknowledged: true, ServerTime: now}
	}
	if terminal(t.State) {
		return 410, v1.Error{Error: v1.CodeTaskExpired}
	}
	if !t.running {
		t.running, t.State = true, v1.Running
		if t.limit != nil && t.request.StartTimeoutMs != nil {
			t.limit.Stop()
		}
		if ms := t.request.RunTimeoutMs; ms != nil {
			f.timer(&t.limit, t, *ms, "TIMED_OUT", "RUN_TIMEOUT", false)
		}
	}
	if !t.queued {
		f.timer(&t.beat, t, *t.HeartbeatTimeoutMs, "ZOMBIE", "HEARTBEAT_TIMEOUT", true)
	}
	cancel := t.CancelRequested && !f.noCancel
	if cancel && t.grace == nil {
		f.timer(&t.grace, t, *t.request.CancelGracePeriodMs, "TIMED_OUT", "CANCEL_TIMEOUT", false)
	}
	return 200, v1.HeartbeatResponse{Acknowledged: true, ShouldCancel: cancel, ServerTime: now}
}
