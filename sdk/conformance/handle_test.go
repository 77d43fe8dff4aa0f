package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// task is one as the server has it.
type task struct {
	Task
	id      string
	attempt int
	number  int // of its token

	assigned    bool      // to a worker
	delivered   bool      // and that was answered
	started     bool      // and that was answered
	cancelled   bool      // cancellation was requested
	why         string    // and why
	ending      *Ending   // nil: it is not over
	lost        bool      // which only a worker's beat reports
	endReported bool      // so
	renew       bool      // its token, with the next answer
	renewed     bool      // the newest token was used
	stale       int       // requests with the one before since then
	missed      int       // beats in a row that do not list it
	unlisted    time.Time // when that was two, the first time
	completing  bool      // its completion was sent
	completion  []byte
	request     v1.CompletedRequest
	arrived     int // completions
	progress    []v1.HeartbeatRequest
	details     []any
	accepted    int
}

func (t *task) token() string { return fmt.Sprintf("task-%s-%d", t.id, t.number) }

func (t *task) over() bool { return t.completing || t.endReported }

// waits reports whether the task's completion was sent and not applied yet.
func (t *task) waits() bool { return t.completing && t.request.Outcome == "" && t.ending == nil }

// workerState is a worker as the server has it.
type workerState struct {
	id          string
	number      int
	renew       bool
	refusedWith int // with what status it is refused; 0: it is not
	why         string
	seq         int64
	deltas      [2]int64
	drained     bool
	renewedAt   time.Time
}

func (w *workerState) token() string { return fmt.Sprintf("worker-%s-%d", w.id, w.number) }

func refusal(status int, code string) *reply {
	return &reply{status: status, body: v1.Error{Error: code, Message: "the case has it so"}}
}

func ok(body any) *reply { return &reply{status: http.StatusOK, body: body} }

func now() v1.Time { return v1.At(time.Now()) }

// It applies a request as a healthy server does.
func (s *server) handle(ctx context.Context, x *exchange) *reply {
	switch x.call {
	case "claim":
		return s.handleClaim(ctx, x)
	case "exchange":
		return s.handleExchange(ctx, x)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch x.call {
	case "register":
		return s.register(x)
	case "beat", "drain", "deregister":
		w := s.workers[x.worker]
		if bad := s.opensWorker(w, x.token); bad != nil {
			return bad
		}
		if x.call == "beat" {
			return s.beat(w, x)
		}
		w.drained = true
		s.change()
		if x.call == "deregister" {
			w.refusedWith = http.StatusGone
		}
		return ok(s.view(w))
	case "started":
		return s.startTask(x)
	case "heartbeat":
		var r v1.HeartbeatRequest
		_ = json.Unmarshal(x.body, &r)
		a := s.applyHeartbeat(x.task, x.token, r)
		if a.Status != http.StatusOK {
			return &reply{status: a.Status, body: v1.Error{
				Error: a.Error, Message: a.Message, State: a.State, Reason: a.Reason, ExpectedAttempt: a.ExpectedAttempt,
				ReceivedAttempt: a.ReceivedAttempt,
			}}
		}
		return ok(v1.HeartbeatResponse{
			Acknowledged: true, ShouldCancel: *a.ShouldCancel, CancelReason: a.CancelReason, ServerTime: now(),
			NextHeartbeatMs: a.NextHeartbeatMs, TaskToken: a.TaskToken, TokenExpiresAt: a.TokenExpiresAt,
		})
	case "heartbeats":
		return s.applyHeartbeats(x)
	case "completed":
		return s.complete(x)
	case "create":
		return s.create(x, nil)
	}
	return refusal(http.StatusNotFound, v1.CodeNotFound)
}

func (s *server) register(x *exchange) *reply {
	if x.token != s.controlToken() {
		return refusal(http.StatusUnauthorized, v1.CodeUnauthorized)
	}
	var r v1.RegisterWorkerRequest
	_ = json.Unmarshal(x.body, &r)
	w := s.workers[s.registered[r.RegistrationID]]
	switch {
	case w == nil && s.held:
		return &reply{status: http.StatusConflict, body: v1.Error{
			Error: v1.CodeWorkerHeld, Message: "the case has it so", WorkerID: s.current, Remedy: "lubdub worker resume " + s.current,
		}}
	case w == nil:
		s.names = append(s.names, r.Name)
		w = &workerState{id: fmt.Sprintf("w%d", len(s.workers)+1), number: 1}
		s.workers[w.id], s.registered[r.RegistrationID], s.current = w, w.id, w.id
	}
	var capabilities []string
	if s.With.Exchange {
		capabilities = []string{"exchange"}
	}
	return &reply{status: http.StatusCreated, body: v1.RegisterWorkerResponse{
		WorkerID: w.id, MachineID: "m", WorkerToken: w.token(), TokenExpiresAt: v1.At(time.Now().Add(time.Hour)),
		HeartbeatIntervalMs: s.Worker.IntervalMs, HeartbeatTimeoutMs: s.Worker.TimeoutMs, ShouldDrain: s.drained,
		Capabilities: capabilities,
	}}
}

// opensWorker returns the refusal of a token that does not open a worker's calls, or nil if it does.
func (s *server) opensWorker(w *workerState, token string) *reply {
	switch {
	case w == nil || w.refusedWith == http.StatusNotFound:
		return refusal(http.StatusNotFound, v1.CodeWorkerNotFound)
	case token != w.token() && token != fmt.Sprintf("worker-%s-%d", w.id, w.number-1):
		return refusal(http.StatusUnauthorized, v1.CodeUnauthorized)
	case w.refusedWith != 0:
		return &reply{status: w.refusedWith, body: v1.Error{Error: v1.CodeWorkerOffline, Message: "the case has it so", Reason: w.why}}
	}
	return nil
}

func (s *server) view(w *workerState) v1.Worker {
	return v1.Worker{
		WorkerID: w.id, TenantID: "default", WorkspaceID: "default", Queue: "default", MachineID: "m", Types: []string{"job"},
		Runtimes: []string{}, Labels: map[string]string{}, Status: v1.Draining, Liveness: v1.LivenessFresh, UnschedulableReasons: []string{},
		RegisteredAt: now(), LastHeartbeatAt: now(), HeartbeatIntervalMs: s.Worker.IntervalMs, HeartbeatTimeoutMs: s.Worker.TimeoutMs,
	}
}

// beat handles a worker's beat.
func (s *server) beat(w *workerState, x *exchange) *reply {
	var r v1.WorkerHeartbeatRequest
	_ = json.Unmarshal(x.body, &r)
	s.count(w, &r)
	a := v1.WorkerHeartbeatResponse{
		Accepted: true, ShouldDrain: s.draining || s.drained, CancelTasks: []v1.CancelTask{}, LostTasks: []v1.LostTask{}, ServerTime: now(),
		HeartbeatIntervalMs: s.Worker.IntervalMs, HeartbeatTimeoutMs: s.Worker.TimeoutMs,
	}
	if s.draining {
		a.DrainDeadline = v1.At(time.Now().Add(time.Minute))
	}
	if s.interval > 0 {
		a.HeartbeatIntervalMs = s.interval
	}
	if w.renew {
		w.renew, w.number = false, w.number+1
		a.WorkerToken, a.TokenExpiresAt = w.token(), v1.At(time.Now().Add(time.Hour))
	}
	for _, item := range r.Tasks {
		t := s.tasks[item.TaskID]
		if t == nil {
			continue
		}
		if t.ending != nil {
			a.LostTasks = append(a.LostTasks, v1.LostTask{TaskID: t.id, Attempt: item.Attempt, Error: t.ending.Error})
			continue
		}
		t.note(v1.HeartbeatRequest{ProgressPct: item.ProgressPct, Message: item.Message, Details: item.Details})
		if t.cancelled {
			a.CancelTasks = append(a.CancelTasks, v1.CancelTask{TaskID: t.id, Attempt: item.Attempt, Reason: &t.why})
		}
	}
	return ok(a)
}

// count adds what a beat has completed, once for each seq.
func (s *server) count(w *workerState, r *v1.WorkerHeartbeatRequest) {
	if r.Seq == nil {
		if r.CompletedDelta != 0 || r.FailedDelta != 0 {
			s.violate("a beat has deltas and no seq")
		}
		return
	}
	deltas := [2]int64{r.CompletedDelta, r.FailedDelta}
	if *r.Seq <= w.seq {
		if *r.Seq == w.seq && deltas != w.deltas {
			s.violate("seq %d had the deltas %v, and has %v", w.seq, w.deltas, deltas)
		}
		return
	}
	w.seq, w.deltas = *r.Seq, deltas
	s.counted.completed += deltas[0]
	s.counted.failed += deltas[1]
	ended := map[v1.Outcome]int64{}
	for _, t := range s.tasks {
		ended[t.request.Outcome]++
	}
	if s.counted.completed > ended[v1.OutcomeSucceeded] || s.counted.failed > ended[v1.OutcomeFailed] {
		s.violate("beats have counted %+v, and there were %v", s.counted, ended)
	}
}

// note keeps the progress and details of a beat.
func (t *task) note(r v1.HeartbeatRequest) {
	if r.Details != nil {
		var value any
		_ = json.Unmarshal(r.Details, &value)
		t.details = append(t.details, value)
	}
	if r.ProgressPct != nil || r.Message != nil {
		t.progress = append(t.progress, r)
	}
}

// opensTask reports whether a token opens a task's callbacks.
func (s *server) opensTask(t *task, token string) bool {
	if strings.HasPrefix(token, "worker-") {
		w := s.workers[strings.Split(token, "-")[1]]
		return w != nil && s.opensWorker(w, token) == nil
	}
	switch token {
	case t.token():
		t.renewed = true
		return true
	case fmt.Sprintf("task-%s-%d", t.id, t.number-1):
		return !t.renewed
	}
	return false
}

func (s *server) startTask(x *exchange) *reply {
	t := s.tasks[x.task]
	if t == nil {
		return refusal(http.StatusNotFound, v1.CodeTaskNotFound)
	}
	if !s.opensTask(t, x.token) {
		return refusal(http.StatusUnauthorized, v1.CodeUnauthorized)
	}
	return ok(v1.StartedResponse{Acknowledged: true, ServerTime: now(), ShouldCancel: t.cancelled, CancelReason: t.why})
}

// applyHeartbeat handles a beat of one attempt.
func (s *server) applyHeartbeat(id, token string, r v1.HeartbeatRequest) v1.HeartbeatResult {
	t := s.tasks[id]
	a := v1.HeartbeatResult{TaskID: id, Status: http.StatusOK}
	switch {
	case t == nil:
		a.Status, a.Error, a.Message = http.StatusNotFound, v1.CodeTaskNotFound, "no such task"
	case !s.opensTask(t, token):
		a.Status, a.Error, a.Message = http.StatusUnauthorized, v1.CodeUnauthorized, "the case has it so"
	case t.ending != nil && !t.lost:
		e := t.ending
		a.Status, a.Error, a.Message, a.State, a.Reason = e.Status, e.Error, "the case has it so", e.State, e.Reason
		a.ExpectedAttempt, a.ReceivedAttempt = e.ExpectedAttempt, e.ReceivedAttempt
	default:
		t.note(r)
		a.Acknowledged, a.ShouldCancel, a.CancelReason, a.ServerTime = true, &t.cancelled, t.why, now()
		a.NextHeartbeatMs = s.Worker.IntervalMs
		if s.Task != nil {
			a.NextHeartbeatMs = s.Task.IntervalMs
		}
		if s.interval > 0 {
			a.NextHeartbeatMs = s.interval
		}
		if t.renew {
			t.renew, t.renewed, t.stale, t.number = false, false, 0, t.number+1
			a.TaskToken, a.TokenExpiresAt = t.token(), v1.At(time.Now().Add(time.Hour))
		}
	}
	return a
}

func (s *server) applyHeartbeats(x *exchange) *reply {
	var r v1.HeartbeatsRequest
	_ = json.Unmarshal(x.body, &r)
	a := v1.HeartbeatsResponse{Results: []v1.HeartbeatResult{}, ServerTime: now()}
	for _, item := range r.Heartbeats {
		token := item.TaskToken
		if token == "" {
			token = x.token
		}
		a.Results = append(a.Results, s.applyHeartbeat(item.TaskID, token, item.HeartbeatRequest))
	}
	return ok(a)
}

func (s *server) complete(x *exchange) *reply {
	t := s.tasks[x.task]
	if t == nil {
		return refusal(http.StatusNotFound, v1.CodeTaskNotFound)
	}
	if !s.opensTask(t, x.token) {
		return refusal(http.StatusUnauthorized, v1.CodeUnauthorized)
	}
	if t.ending != nil {
		code := t.ending.Error
		if code == v1.CodeTaskExpired {
			code = v1.CodeTaskAlreadyTerminal
		}
		return refusal(http.StatusConflict, code)
	}
	_ = json.Unmarshal(x.body, &t.request)
	a := v1.CompletedResponse{Acknowledged: true, FinalState: v1.State(t.request.Outcome), ServerTime: now()}
	if t.WillRetry && t.request.Outcome == v1.OutcomeFailed || t.request.Outcome == v1.OutcomeSnoozed {
		a.WillRetry, a.NextAttempt = true, t.attempt+1
	}
	return ok(a)
}

// create makes creations; rule: how one of them is refused, nil: none is.
func (s *server) create(x *exchange, rule *Rule) *reply {
	var r v1.CreateTasksRequest
	_ = json.Unmarshal(x.body, &r)
	a := v1.CreateTasksResponse{Results: []json.RawMessage{}}
	for _, item := range r.Tasks {
		id, key := item.TaskID, item.IdempotencyKey
		switch known := s.keys[id]; {
		case key == "":
			s.violate("the creation of task %s has no idempotency key", id)
		case known != "" && known != key:
			s.violate("the creation of task %s comes again under another idempotency key", id)
		case s.created[id]:
			s.violate("the creation of task %s was answered and comes again", id)
		}
		s.keys[id] = key
		var result any = struct {
			*v1.TaskEnvelope
			Status int `json:"status"`
		}{s.envelope(&task{id: id, attempt: 1, number: 1}), http.StatusCreated}
		if rule != nil && rule.Task == id {
			result = struct {
				v1.Error
				Status int `json:"status"`
			}{v1.Error{Error: v1.CodeStoreUnavailable, Message: "the case has it so"}, rule.Status}
		} else {
			s.created[id] = true
		}
		text, _ := json.Marshal(result) // it is made of strings and numbers
		a.Results = append(a.Results, text)
	}
	return ok(a)
}
