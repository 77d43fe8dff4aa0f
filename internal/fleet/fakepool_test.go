package fleet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// fakePool is the half of the fake that knows registered workers and queues. Its faults come on top of fake's.
type fakePool struct {
	workers  map[string]*fakeWorker
	queued   map[string][]*fakeTask // by queue, the first first
	claims   map[string]any         // what was answered, by worker and claim id
	claimed  int
	assigned int
	victim   *fakeWorker // the first that is to be killed

	slowClaim  time.Duration // how long the answer to a claim takes
	slowBeat   time.Duration // and that to the first beat of each worker called worker-0
	lateVictim time.Duration // and that to the first beat of the first worker that is to be killed: its silence is found so much later
	mute       bool          // the silence of workers is never found
	killWorker bool          // workers that beat are declared dead after 2 s
	keep       bool          // the tasks of a dead worker are given to no other worker
	twice      bool          // an attempt that was lost is in the history twice
	stranger   bool          // verdicts name another worker
	acceptDead bool          // a dead worker's beat is answered as if it lived
	noEnroll   bool          // no worker may register
	drop       bool          // every tenth attempt is given to a worker that never receives it, and none of a job twice
	hasty      bool          // attempts that have started are ended by their start timeout
	noClaims   bool          // every claim is answered 503
	unsure     bool          // every other claim is done and answered 503
	partly     int           // that many batches of creations are answered 503 item by item
}

const (
	fakeWorkerTimeout = 1500 // ms
	fakeClaimTakes    = 200 * time.Millisecond
)

type fakeWorker struct {
	v1.Worker
	name   string
	beats  int
	held   map[*fakeTask]bool
	silent *time.Timer
	killed *time.Timer
}

// wait is how long the answer to a call takes once it has been done.
func (f *fake) wait(path string) time.Duration {
	switch {
	case strings.HasSuffix(path, "/claim"):
		return max(f.pool.slowClaim, fakeClaimTakes)
	case strings.HasPrefix(path, "/v1/workers/") && strings.HasSuffix(path, "/heartbeat"):
		f.mu.Lock()
		defer f.mu.Unlock()
		if w := f.pool.workers[strings.Split(path, "/")[3]]; w != nil && w.name == "worker-0" && w.beats == 1 {
			return f.pool.slowBeat
		} else if w == f.pool.victim && w != nil && w.beats == 1 {
			return f.pool.lateVictim
		}
	}
	return 0
}

func (f *fake) workers(r *http.Request, parts []string, in []byte) (int, any) {
	if parts[0] == "queues" {
		return f.claim(parts[1], r.Header.Get("Authorization"), in)
	}
	if len(parts) == 1 {
		return f.register(in)
	}
	w := f.pool.workers[parts[1]]
	if len(parts) == 2 {
		w.HeldCount = len(w.held)
		return 200, w.Worker
	}
	if w.Status == v1.Offline && !f.pool.acceptDead {
		return 410, v1.Error{Error: v1.CodeWorkerOffline}
	}
	if parts[2] == "deregister" {
		f.bury(w, "DEREGISTERED")
		return 200, w.Worker
	}
	w.beats++
	if !f.pool.mute {
		timeout := fakeWorkerTimeout * time.Millisecond
		if w == f.pool.victim && w.beats == 1 {
			timeout += f.pool.lateVictim
		}
		w.silent.Reset(timeout)
	}
	return 200, v1.WorkerHeartbeatResponse{Accepted: true, ServerTime: v1.At(time.Now())}
}

func (f *fake) register(in []byte) (int, any) {
	if f.pool.noEnroll {
		return 403, v1.Error{Error: v1.CodeForbidden}
	}
	var q v1.RegisterWorkerRequest
	_ = json.Unmarshal(in, &q)
	w := &fakeWorker{name: q.Name, held: map[*fakeTask]bool{}}
	w.WorkerID, w.Status = fmt.Sprintf("wkr_%d", len(f.pool.workers)), v1.Online
	if q.Name == "doomed" && f.pool.victim == nil {
		f.pool.victim = w
	}
	die := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.bury(w, "HEARTBEAT_TIMEOUT")
	}
	w.silent = time.AfterFunc(fakeWorkerTimeout*time.Millisecond, die)
	if f.pool.mute {
		w.silent.Stop()
	}
	if f.pool.killWorker {
		w.killed = time.AfterFunc(2*time.Second, die)
	}
	f.pool.workers[w.WorkerID] = w
	return 201, v1.RegisterWorkerResponse{WorkerID: w.WorkerID, WorkerToken: w.WorkerID, HeartbeatIntervalMs: fakeWorkerTimeout / 3,
		HeartbeatTimeoutMs: fakeWorkerTimeout}
}

// bury ends a worker and gives what it held to others.
func (f *fake) bury(w *fakeWorker, reason string) {
	if w.Status == v1.Offline {
		return
	}
	w.stop()
	w.Status, w.StatusReason = v1.Offline, &reason
	for t := range w.held {
		if f.pool.keep || terminal(t.State) {
			continue
		}
		lost, id := "WORKER_LOST", w.WorkerID
		if f.pool.stranger {
			id = "wkr_stranger"
		}
		h := v1.HistoryEntry{Attempt: t.Attempt, WorkerID: &id, Outcome: "LOST", Reason: &lost,
			Evidence: &v1.Evidence{DetectedAt: v1.At(time.Now()), TimeoutMs: fakeWorkerTimeout, SilentMs: fakeWorkerTimeout}}
		t.History = append(t.History, h)
		if f.pool.twice {
			t.History = append(t.History, h)
		}
		t.State = v1.Queued
		f.pool.queued[t.request.Queue] = append(f.pool.queued[t.request.Queue], t)
	}
	clear(w.held)
}

func (w *fakeWorker) stop() {
	for _, timer := range []*time.Timer{w.silent, w.killed} {
		if timer != nil {
			timer.Stop()
		}
	}
}

func (f *fake) claim(queue, token string, in []byte) (int, any) {
	w := f.pool.workers[strings.TrimPrefix(token, "Bearer ")]
	if w.Status == v1.Offline {
		return 410, v1.Error{Error: v1.CodeWorkerOffline}
	}
	if f.pool.noClaims {
		return 503, v1.Error{Error: v1.CodeStoreUnavailable}
	}
	var q v1.ClaimRequest
	_ = json.Unmarshal(in, &q)
	id := w.WorkerID + " " + q.ClaimID
	if a := f.pool.claims[id]; a != nil {
		return 200, a
	}
	a := v1.ClaimResponse{Tasks: []v1.TaskEnvelope{}}
	for len(f.pool.queued[queue]) > 0 && len(a.Tasks) < min(*q.Max, 8) {
		t := f.pool.queued[queue][0]
		f.pool.queued[queue] = f.pool.queued[queue][1:]
		t.Attempt++
		t.State = v1.Dispatched
		w.held[t] = true
		if f.pool.assigned++; f.pool.drop && f.pool.assigned%10 == 0 && !t.dropped {
			t.dropped = true // thrice would take longer than a job is waited for
			t.limit = f.startTimeout(w, t, time.Duration(*t.request.StartTimeoutMs)*time.Millisecond)
			continue
		}
		if f.pool.hasty && t.Attempt == 1 {
			t.grace = f.startTimeout(w, t, fakeClaimTakes+jobWork/2) // which its start does not stop
		}
		a.Tasks = append(a.Tasks, t.envelope())
	}
	f.pool.claims[id] = a
	if f.pool.claimed++; f.pool.unsure && f.pool.claimed%2 == 0 {
		return 503, v1.Error{Error: v1.CodeStoreUnavailable}
	}
	return 200, a
}

// startTimeout gives an attempt to others after a while.
func (f *fake) startTimeout(w *fakeWorker, t *fakeTask, after time.Duration) *time.Timer {
	attempt, reason, id := t.Attempt, "START_TIMEOUT", w.WorkerID
	return time.AfterFunc(after, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !w.held[t] || t.Attempt != attempt || terminal(t.State) {
			return
		}
		delete(w.held, t)
		t.State = v1.Queued
		t.History = append(t.History, v1.HistoryEntry{Attempt: attempt, WorkerID: &id, Outcome: "TIMED_OUT", Reason: &reason,
			Evidence: &v1.Evidence{DetectedAt: v1.At(time.Now())}})
		f.pool.queued[t.request.Queue] = append(f.pool.queued[t.request.Queue], t)
	})
}

func (f *fake) createMany(in []byte) (int, any) {
	var q v1.CreateTasksRequest
	_ = json.Unmarshal(in, &q)
	var a v1.CreateTasksResponse
	for _, item := range q.Tasks {
		result := any(v1.HeartbeatResult{Status: 503})
		if f.pool.partly <= 0 {
			id := f.keys[item.IdempotencyKey]
			if id == "" {
				id = fmt.Sprintf("task_%d", len(f.tasks))
				t := &fakeTask{request: item.CreateTaskRequest, queued: true}
				t.TaskID, t.State = id, v1.Queued
				f.tasks[id], f.keys[item.IdempotencyKey] = t, id
				f.pool.queued[item.Queue] = append(f.pool.queued[item.Queue], t)
			}
			result = map[string]any{"status": 201, "taskId": id}
		}
		b, _ := json.Marshal(result)
		a.Results = append(a.Results, b)
	}
	f.pool.partly--
	return 200, a
}

// lost reports whether an attempt of a job was taken from the calling worker.
func (t *fakeTask) lost(attempt int) bool {
	return t.queued && (attempt != t.Attempt || t.State == v1.Queued)
}
