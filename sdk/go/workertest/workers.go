package workertest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Worker is the state of a worker.
type Worker struct {
	WorkerID string
	Request  v1.RegisterWorkerRequest
	Status   v1.WorkerStatus
	// Reason is why it is OFFLINE, or the reason of its drain.
	Reason string
	// Held are the ids of its tasks.
	Held []string
	// Beats is the number of heartbeats, ActiveCount the value of the last one, Completed and Failed the sums of their deltas.
	Beats             int
	ActiveCount       int
	Completed, Failed int64
}

type fakeWorker struct {
	Worker
	forcedOffline bool
	lastBeat      time.Time
	seq           int64
	missed        map[*task]bool // omitted by its last inventory
}

// Workers returns all workers that have registered, in order.
func (s *Server) Workers() []Worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	var all []Worker
	for _, w := range s.workers {
		shown := w.Worker
		for _, t := range s.heldBy(w) {
			shown.Held = append(shown.Held, t.TaskID)
		}
		slices.Sort(shown.Held)
		all = append(all, shown)
	}
	slices.SortFunc(all, func(a, b Worker) int { return strings.Compare(a.WorkerID, b.WorkerID) })
	return all
}

// Drain drains a worker.
func (s *Server) Drain(workerID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workers[workerID].Status = v1.Draining
	s.change()
}

// Offline ends a worker as after its heartbeat timeout: other workers get its tasks, and it may register again.
func (s *Server) Offline(workerID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offline(s.workers[workerID], "HEARTBEAT_TIMEOUT")
}

// ForceOffline ends a worker as an operator does: other workers get its tasks, and workers of its queue, machine and name may not register
// until Resume.
func (s *Server) ForceOffline(workerID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.workers[workerID]
	w.forcedOffline = true
	s.offline(w, "FORCED_OFFLINE")
}

// Resume undoes ForceOffline.
func (s *Server) Resume(workerID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workers[workerID].forcedOffline = false
}

// DrainMachine drains the machine of all workers, or resumes it: workers that register while it is drained must wait.
func (s *Server) DrainMachine(drained bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drained = drained
	s.change()
}

// Forget deletes a worker, as a loss of data does. It keeps its tasks.
func (s *Server) Forget(workerID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.workers, workerID)
}

func (s *Server) offline(w *fakeWorker, reason string) {
	w.Status, w.Reason = v1.Offline, reason
	for _, t := range s.heldBy(w) {
		s.lose(t, "WORKER_LOST")
	}
	s.change()
}

func (s *Server) heldBy(w *fakeWorker) (held []*task) {
	for _, t := range s.tasks {
		if t.WorkerID == w.WorkerID && (t.State == v1.Running || t.State == v1.Dispatched) {
			held = append(held, t)
		}
	}
	return held
}

func (s *Server) register(token string, body []byte) (any, *refuse) {
	if token != Token {
		return nil, errUnauthorized
	}
	r, bad := decode[v1.RegisterWorkerRequest](body)
	if bad != nil {
		return nil, bad
	}
	if r.Queue == "" || len(r.Types) == 0 {
		return nil, refusal(http.StatusBadRequest, v1.CodeInvalidRequest, "queue and types are needed")
	}
	var w *fakeWorker
	for _, known := range s.workers {
		if r.RegistrationID != "" && known.Request.RegistrationID == r.RegistrationID {
			w = known
		}
	}
	for _, other := range s.workers {
		if is := &other.Request; w == nil && other.forcedOffline && is.Queue == r.Queue && is.MachineID == r.MachineID && is.Name == r.Name {
			bad := refusal(http.StatusConflict, v1.CodeWorkerHeld, "an operator has taken it offline")
			bad.WorkerID, bad.Remedy = other.WorkerID, "lubdub worker resume "+other.WorkerID
			return nil, bad
		}
	}
	if w == nil {
		s.number++
		w = &fakeWorker{Worker: Worker{WorkerID: fmt.Sprintf("wkr_%04d", s.number), Request: r, Status: v1.Online}}
		s.workers[w.WorkerID] = w
	}
	w.lastBeat = s.time.Now()
	s.change()
	return v1.RegisterWorkerResponse{
		WorkerID: w.WorkerID, MachineID: r.MachineID, WorkerToken: "worker/" + w.WorkerID, TokenExpiresAt: v1.At(w.lastBeat.Add(time.Hour)),
		HeartbeatIntervalMs: s.interval.Milliseconds(), HeartbeatTimeoutMs: s.timeout.Milliseconds(), ShouldDrain: s.drained,
	}, nil
}

// worker returns a worker that may act. The mutex is held.
func (s *Server) worker(id, token string) (*fakeWorker, *refuse) {
	w := s.workers[id]
	switch {
	case token != "worker/"+id && token != Token:
		return nil, errUnauthorized
	case w == nil:
		return nil, refusal(http.StatusNotFound, v1.CodeWorkerNotFound, "register again")
	case w.Status == v1.Offline:
		r := refusal(http.StatusGone, v1.CodeWorkerOffline, "register again")
		r.Reason = w.Reason
		return nil, r
	}
	return w, nil
}

func (s *Server) workerBeat(id, token string, body []byte) (any, *refuse) {
	w, bad := s.worker(id, token)
	if bad != nil {
		return nil, bad
	}
	r, bad := decode[v1.WorkerHeartbeatRequest](body)
	if bad != nil {
		return nil, bad
	}
	if r.Seq == nil && r.CompletedDelta+r.FailedDelta > 0 {
		return nil, refusal(http.StatusBadRequest, v1.CodeInvalidRequest, "deltas need seq")
	}
	w.lastBeat = s.time.Now()
	for i, item := range r.Tasks {
		if bad := checkDetails(fmt.Sprintf("tasks[%d].details", i), item.Details); bad != nil {
			return nil, bad
		}
	}
	w.Beats++
	newer := r.Seq == nil || *r.Seq > w.seq
	if r.Seq != nil && newer {
		w.seq = *r.Seq
		w.Completed += r.CompletedDelta
		w.Failed += r.FailedDelta
	}
	if r.ActiveCount != nil {
		w.ActiveCount = *r.ActiveCount
	}
	a := v1.WorkerHeartbeatResponse{
		Accepted: true, ShouldDrain: s.drained || w.Status == v1.Draining, ServerTime: v1.At(w.lastBeat),
		HeartbeatIntervalMs: s.interval.Milliseconds(), HeartbeatTimeoutMs: s.timeout.Milliseconds(),
		CancelTasks: []v1.CancelTask{}, LostTasks: []v1.LostTask{},
	}
	for _, item := range r.Tasks {
		t, bad := s.authorize(item.TaskID, "worker/"+id, item.Attempt, http.StatusGone)
		if bad == nil {
			s.applyBeat(t, item.ProgressPct, item.Message, item.Details)
			continue
		}
		a.LostTasks = append(a.LostTasks, v1.LostTask{TaskID: item.TaskID, Attempt: item.Attempt, Error: bad.Error.Error})
	}
	if r.Tasks != nil && newer {
		a.LostTasks = append(a.LostTasks, s.miss(w, r.Tasks)...)
	}
	for _, t := range s.heldBy(w) {
		if t.cancelRequested {
			if t.notifiedAt.IsZero() {
				t.notifiedAt = w.lastBeat
			}
			a.CancelTasks = append(a.CancelTasks, v1.CancelTask{TaskID: t.TaskID, Attempt: t.Attempt, Reason: &t.why})
		}
	}
	s.change()
	return a, nil
}

// miss takes from a worker what two of its inventories in a row omit. A heartbeat without one does not count.
func (s *Server) miss(w *fakeWorker, listed []v1.WorkerTaskItem) (lost []v1.LostTask) {
	before := w.missed
	w.missed = map[*task]bool{}
	for _, t := range s.heldBy(w) {
		switch {
		case slices.ContainsFunc(listed, func(i v1.WorkerTaskItem) bool { return i.TaskID == t.TaskID && i.Attempt == t.Attempt }):
		case before[t]:
			lost = append(lost, v1.LostTask{TaskID: t.TaskID, Attempt: t.Attempt, Error: v1.CodeTaskExpired})
			s.lose(t, "NOT_IN_INVENTORY")
		default:
			w.missed[t] = true
		}
	}
	return lost
}

func (s *Server) drain(id, token string, body []byte) (any, *refuse) {
	w, bad := s.worker(id, token)
	if bad != nil {
		return nil, bad
	}
	r, bad := decode[v1.DrainRequest](body)
	if bad != nil {
		return nil, bad
	}
	w.Status, w.Reason = v1.Draining, r.Reason
	s.change()
	return v1.Worker{WorkerID: id, Status: w.Status}, nil
}

func (s *Server) deregister(id, token string, body []byte) (any, *refuse) {
	w, bad := s.worker(id, token)
	if bad != nil {
		return nil, bad
	}
	if _, bad := decode[v1.DeregisterRequest](body); bad != nil {
		return nil, bad
	}
	for _, t := range s.heldBy(w) { // returned to the queue: nothing was lost
		t.Lost--
	}
	s.offline(w, "DEREGISTERED")
	return v1.Worker{WorkerID: id, Status: w.Status}, nil
}

// claim returns tasks, and waits for the first.
func (s *Server) claim(ctx context.Context, queue, token string, body []byte) (any, *refuse) {
	id := strings.TrimPrefix(token, "worker/")
	r, bad := decode[v1.ClaimRequest](body)
	if bad != nil {
		return nil, bad
	}
	most := 1
	if r.Max != nil {
		most = *r.Max
	}
	var wait time.Duration
	if r.WaitMs != nil {
		wait = time.Duration(*r.WaitMs) * time.Millisecond
	}
	until := s.time.Now().Add(wait)
	for last := wait <= 0; ; {
		s.sweep()
		w, bad := s.worker(id, token)
		if bad != nil {
			return nil, bad
		}
		if s.drained || w.Status == v1.Draining {
			return nil, refusal(http.StatusConflict, v1.CodeWorkerDraining, "it gets no new tasks")
		}
		if w.Request.Queue != queue {
			return nil, errForbidden
		}
		w.lastBeat = s.time.Now()
		if got := s.handOut(w, r.ClaimID, r.Types, most); len(got.Tasks) > 0 || last {
			return got, nil
		}
		next := until
		for _, t := range s.queued {
			if !t.readyAt.IsZero() && t.readyAt.Before(next) {
				next = t.readyAt
			}
		}
		timer, changed := s.time.NewTimer(next.Sub(s.time.Now())), s.changed
		s.mu.Unlock()
		s.wait(ctx, changed, timer)
		timer.Stop()
		s.mu.Lock()
		last = ctx.Err() != nil || !s.time.Now().Before(until)
	}
}

// handOut gives a worker waiting tasks. The mutex is held.
func (s *Server) handOut(w *fakeWorker, claim string, types []string, most int) v1.ClaimResponse {
	out := v1.ClaimResponse{Tasks: []v1.TaskEnvelope{}}
	key := w.WorkerID + "/" + claim
	for _, id := range s.claims[key] {
		if t := s.tasks[id]; t.WorkerID == w.WorkerID && !t.over() && t.State != v1.Queued {
			out.Tasks = append(out.Tasks, *s.envelope(t))
		}
	}
	if len(s.claims[key]) > 0 && claim != "" {
		return out
	}
	if types == nil {
		types = append([]string{""}, w.Request.Types...)
	}
	for _, t := range slices.Clone(s.queued) {
		if !t.readyAt.IsZero() || t.request.Queue != w.Request.Queue || !slices.Contains(types, t.request.Type) || len(out.Tasks) == most {
			continue
		}
		s.queued = slices.DeleteFunc(s.queued, func(q *task) bool { return q == t })
		s.dispatch(t, w.WorkerID)
		s.claims[key] = append(s.claims[key], t.TaskID)
		e := s.envelope(t)
		e.ReadyAt = v1.At(t.since)
		out.Tasks = append(out.Tasks, *e)
	}
	return out
}

// serve answers a request; an error means that the caller has disconnected.
func (s *Server) serve(ctx context.Context, w http.ResponseWriter, r *http.Request, body []byte) error {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	reply, bad := s.route(ctx, r, parts, token, body)
	if err := ctx.Err(); err != nil {
		return err
	}
	if bad != nil {
		answer(w, bad.status, bad.Error)
		return nil
	}
	status := http.StatusOK
	if r.Method == http.MethodPost && len(parts) == 1 && (parts[0] == "tasks" || parts[0] == "workers") {
		status = http.StatusCreated
	}
	answer(w, status, reply)
	return nil
}

func (s *Server) route(ctx context.Context, r *http.Request, parts []string, token string, body []byte) (any, *refuse) {
	what := parts[0]
	id := ""
	if len(parts) > 1 {
		id = parts[1]
	}
	if len(parts) == 3 {
		what += "/" + parts[2]
	}
	switch r.Method + " " + what {
	case "POST tasks/started":
		return s.started(id, token, body)
	case "POST tasks/heartbeat":
		r, bad := decode[v1.HeartbeatRequest](body)
		if bad != nil {
			return nil, bad
		}
		a, bad := s.heartbeat(id, token, r)
		return a, bad
	case "POST tasks/completed":
		return s.completed(id, token, body)
	case "POST heartbeats":
		return s.heartbeats(token, body)
	case "POST workers":
		return s.register(token, body)
	case "POST workers/heartbeat":
		return s.workerBeat(id, token, body)
	case "POST workers/drain":
		return s.drain(id, token, body)
	case "POST workers/deregister":
		return s.deregister(id, token, body)
	case "POST queues/claim":
		return s.claim(ctx, id, token, body)
	case "POST tasks":
		return s.createTask(token, r.Header.Get("Traceparent"), body)
	}
	return nil, refusal(http.StatusNotFound, v1.CodeNotFound, "workertest has no "+r.Method+" "+what)
}

func (s *Server) createTask(token, trace string, body []byte) (any, *refuse) {
	if token != Token {
		return nil, errUnauthorized
	}
	r, bad := decode[v1.CreateTaskRequest](body)
	if bad != nil {
		return nil, bad
	}
	r.Traceparent = cmp.Or(r.Traceparent, trace)
	if r.Queue == "" {
		t := s.create(r)
		s.dispatch(t, "")
		return s.envelope(t), nil
	}
	t := s.enqueue(r)
	return v1.Task{TaskID: t.TaskID, State: t.State, Queue: &r.Queue}, nil
}
