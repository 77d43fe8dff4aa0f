package bench

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

func answer(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestRegistrations(t *testing.T) {
	r := &registrations{queue: "q", control: []byte("enroll"), workers: make([]*worker, 3), at: 1, end: 3}
	var tally load.Tally
	registered := 0
	for i := 1; ; i++ {
		request := r.Next(nil)
		if request == nil {
			break
		}
		var body v1.RegisterWorkerRequest
		req := parse(t, request, &body)
		if req.URL.Path != "/v1/workers" || req.Header.Get("Authorization") != "Bearer enroll" || body.Queue != "q" ||
			*body.MaxConcurrent < 10_000 || len(body.Types) != 1 {
			t.Fatalf("%s %+v", req.URL.Path, body)
		}
		status := 201
		if i == 2 {
			status = 403
		}
		registered += r.Answered(status, answer(t, v1.RegisterWorkerResponse{WorkerID: fmt.Sprint("w", i), WorkerToken: fmt.Sprint("t", i)}),
			&tally)
	}
	if registered != 1 || tally.NotOK["403"] != 1 || string(r.workers[1].id) != "w1" || string(r.workers[1].token) != "t1" ||
		r.workers[0] != nil || r.workers[2] != nil {
		t.Errorf("%d registered, %v", registered, tally.NotOK)
	}
}

func workersOf(n int) (workers []*worker) {
	for i := range n {
		workers = append(workers, &worker{id: fmt.Append(nil, "w", i), token: fmt.Append(nil, "t", i)})
	}
	return workers
}

// Every worker beats, with its own token; seq rises for each whoever beats for it.
func TestWorkerBeats(t *testing.T) {
	for _, c := range []struct{ workers, conns int }{{10, 3}, {1, 4}} {
		last := map[string]int64{}
		workers := workersOf(c.workers)
		for round := range 2 {
			for i := range c.conns {
				s := beatsOf(workers)(i, c.conns)
				for range c.workers {
					var body v1.WorkerHeartbeatRequest
					req := parse(t, s.Next(nil), &body)
					id := strings.TrimSuffix(strings.TrimPrefix(req.URL.Path, "/v1/workers/"), "/heartbeat")
					if req.Header.Get("Authorization") != "Bearer t"+id[1:] || body.Seq == nil || *body.Seq <= last[id] || body.CompletedDelta == 0 {
						t.Fatalf("round %d: %s %+v after %d", round, id, body, last[id])
					}
					last[id] = *body.Seq
				}
			}
		}
		if len(last) != c.workers {
			t.Errorf("%d of %d workers beat", len(last), c.workers)
		}
	}
}

func TestEnqueuing(t *testing.T) {
	j := newJobs(3)
	e := &enqueuing{creation{tasks: j.tasks, control: []byte("control"), to: 3}}
	var body v1.CreateTasksRequest
	if req := parse(t, e.Next(nil), &body); req.URL.Path != "/v1/tasks:batch" || len(body.Tasks) != 3 {
		t.Fatalf("%s %+v", req.URL.Path, body)
	}
	for _, task := range body.Tasks {
		if task.Queue != j.queue || task.Type != jobType || task.HeartbeatTimeoutMs != nil ||
			*task.StartTimeoutMs != quietTimeout.Milliseconds() {
			t.Errorf("%+v: it must live by its worker's beat", task)
		}
	}
	for name, c := range map[string]struct {
		status int
		body   string
		tasks  int
		notOK  map[string]int64
	}{
		"all":  {200, `{"results":[{"status":201},{"status":201},{"status":201}]}`, 3, nil},
		"some": {200, `{"results":[{"status":201},{"status":409},{"status":201}]}`, 2, map[string]int64{"not created in a batch": 1}},
		"none": {503, `{"error":"overloaded"}`, 0, map[string]int64{"503 overloaded": 3}},
	} {
		var tally load.Tally
		if n := e.Answered(c.status, []byte(c.body), &tally); n != c.tasks || !maps.Equal(tally.NotOK, c.notOK) {
			t.Errorf("%s: %d, %v", name, n, tally.NotOK)
		}
	}
}

// Claims go on until the queue is empty, and what was claimed can be beaten for.
func TestClaims(t *testing.T) {
	j := newJobs(30)
	c := newClaims(j.queue, workersOf(1)[0], 10, j.tasks)
	envelope := func(i int) v1.TaskEnvelope {
		return v1.TaskEnvelope{TaskID: string(j.appendID(nil, uint32(i))), RunID: "run", TaskToken: fmt.Sprint("token-", i)}
	}
	var tally load.Tally
	for _, got := range [][]int{{29, 3}, {0}, nil} {
		var body v1.ClaimRequest
		if req := parse(t, c.Next(nil), &body); req.URL.Path != "/v1/queues/"+j.queue+"/claim" || *body.Max != 10 || body.WaitMs != nil ||
			req.Header.Get("Authorization") != "Bearer t0" {
			t.Fatalf("%s %+v", req.URL.Path, body)
		}
		a := v1.ClaimResponse{Tasks: []v1.TaskEnvelope{}}
		for _, i := range got {
			a.Tasks = append(a.Tasks, envelope(i))
		}
		if n := c.Answered(200, answer(t, a), &tally); n != len(got) {
			t.Errorf("%d of %d", n, len(got))
		}
	}
	if c.Next(nil) != nil || tally.NotOK != nil {
		t.Errorf("it goes on with an empty queue, %v", tally.NotOK)
	}
	for _, i := range []uint32{29, 3, 0} {
		if got := string(j.token(i)); got != fmt.Sprint("token-", i) {
			t.Errorf("task %d has the token %q", i, got)
		}
	}
	foreign := newClaims(j.queue, workersOf(1)[0], 10, newJobs(30).tasks)
	if n := foreign.Answered(200, answer(t, v1.ClaimResponse{Tasks: []v1.TaskEnvelope{envelope(1)}}), &tally); n != 0 ||
		len(tally.NotOK) != 1 {
		t.Errorf("somebody else's task was taken: %d %v", n, tally.NotOK)
	}
	counted := newClaims(j.queue, workersOf(1)[0], 1, nil)
	if n := counted.Answered(200, answer(t, v1.ClaimResponse{Tasks: []v1.TaskEnvelope{envelope(1)}}), &tally); n != 1 ||
		counted.Next(nil) == nil {
		t.Errorf("%d claimed", n)
	}
	if n := counted.Answered(409, []byte(`{"error":"worker_draining"}`), &tally); n != 0 || tally.NotOK["409 worker_draining"] != 1 ||
		counted.Next(nil) != nil {
		t.Errorf("%d %v, and after a refusal nothing is claimed", n, tally.NotOK)
	}
}

// The first waits of all polls end evenly over the longest wait, and each poll then goes on with that.
func TestPolls(t *testing.T) {
	const n = 4
	var refused atomic.Int64
	var tally load.Tally
	source := pollsOf("q", workersOf(n), &refused)
	wait := func(s load.Source) int64 {
		var body v1.ClaimRequest
		parse(t, s.Next(nil), &body)
		return *body.WaitMs
	}
	for i := range n {
		s := source(i, n)
		s.(*polls).pause = func() {}
		if got, want := wait(s), int64(longestPoll*(i+1)/n); got != want {
			t.Errorf("poll %d waits for %d ms at first, not %d", i, got, want)
		}
		if i == 0 {
			s.Answered(503, []byte(`{"error":"overloaded"}`), &tally)
			if got := wait(s); got != longestPoll/n || refused.Load() != 1 {
				t.Errorf("refused, it waits for %d ms; %d refusals", got, refused.Load())
			}
		}
		s.Answered(200, []byte(`{"tasks":[]}`), &tally)
		if got := wait(s); got != longestPoll {
			t.Errorf("poll %d goes on with %d ms", i, got)
		}
	}
}

// A task counts as rescued when it was lost once and waits in its queue again.
func TestRescues(t *testing.T) {
	lost := `{"attempt":1,"endedAt":"2026-01-02T03:04:05.678Z","outcome":"LOST","reason":"WORKER_LOST"}`
	for name, c := range map[string]struct {
		body  string
		tasks int
		notOK string
	}{
		"once":    {`{"state":"QUEUED","history":[` + lost + `]}`, 1, ""},
		"twice":   {`{"state":"QUEUED","history":[` + lost + `,` + lost + `]}`, 0, "not taken exactly once"},
		"failed":  {`{"state":"FAILED","history":[` + lost + `]}`, 0, "state FAILED"},
		"not yet": {`{"state":"RUNNING","history":[]}`, 0, "state RUNNING"},
		"otherwise": {`{"state":"QUEUED","history":[{"endedAt":"2026-01-02T03:04:05.678Z","outcome":"TIMED_OUT","reason":"START_TIMEOUT"}]}`, 0,
			"state QUEUED"},
	} {
		r := &rescues{tasks: given(2), walk: walk{share: []uint32{1}, once: true}, control: "control", at: make([]time.Time, 2)}
		if req := parse(t, r.Next(nil), nil); req.Method != "GET" || req.URL.Path != "/v1/tasks/"+idOf(1) {
			t.Error(req.URL.Path)
		}
		var tally load.Tally
		if n := r.Answered(200, []byte(c.body), &tally); n != c.tasks || c.notOK != "" && tally.NotOK[c.notOK] != 1 {
			t.Errorf("%s: %d, %v", name, n, tally.NotOK)
		}
		if c.tasks == 1 && r.at[1].UnixMilli()%1000 != 678 {
			t.Errorf("%s: at %v", name, r.at[1])
		}
		if r.Next(nil) != nil {
			t.Error("it goes on")
		}
	}
}
