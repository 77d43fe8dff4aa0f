package requests

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"

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

func workersOf(n int) (workers []*Worker) {
	for i := range n {
		workers = append(workers, &Worker{ID: fmt.Append(nil, "w", i), Token: fmt.Append(nil, "t", i)})
	}
	return workers
}

// Every worker beats, with its own token; seq rises for each on every connection.
func TestWorkerBeats(t *testing.T) {
	for _, c := range []struct{ workers, conns int }{{10, 3}, {1, 4}} {
		last := map[string]int64{}
		workers := workersOf(c.workers)
		for round := range 2 {
			for i := range c.conns {
				s := WorkerBeats(workers...)(i, c.conns)
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

func TestCreationInAQueue(t *testing.T) {
	j := NewJobs(3)
	e := j.Create("control")(0, 1)
	var body v1.CreateTasksRequest
	if req := parse(t, e.Next(nil), &body); req.URL.Path != "/v1/tasks:batch" || len(body.Tasks) != 3 {
		t.Fatalf("%s %+v", req.URL.Path, body)
	}
	for _, task := range body.Tasks {
		if task.Queue != j.Queue || task.Type != JobType || task.HeartbeatTimeoutMs != nil ||
			*task.StartTimeoutMs != QuietTimeout.Milliseconds() {
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

// Claims continue until the queue is empty, and claimed tasks accept beats.
func TestClaims(t *testing.T) {
	j := NewJobs(30)
	c := Claims(j.Queue, workersOf(1)[0], 10, j)
	envelope := func(i int) v1.TaskEnvelope {
		return v1.TaskEnvelope{TaskID: string(j.appendID(nil, uint32(i))), RunID: "run", TaskToken: fmt.Sprint("token-", i)}
	}
	var tally load.Tally
	for _, got := range [][]int{{29, 3}, {0}, nil} {
		var body v1.ClaimRequest
		if req := parse(t, c.Next(nil), &body); req.URL.Path != "/v1/queues/"+j.Queue+"/claim" || *body.Max != 10 || body.WaitMs != nil ||
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
		t.Errorf("it continues with an empty queue, %v", tally.NotOK)
	}
	for _, i := range []uint32{29, 3, 0} {
		if got := string(j.token(i)); got != fmt.Sprint("token-", i) {
			t.Errorf("task %d has the token %q", i, got)
		}
	}
	foreign := Claims(j.Queue, workersOf(1)[0], 10, NewJobs(30))
	if n := foreign.Answered(200, answer(t, v1.ClaimResponse{Tasks: []v1.TaskEnvelope{envelope(1)}}), &tally); n != 0 ||
		len(tally.NotOK) != 1 {
		t.Errorf("another worker's task was claimed: %d %v", n, tally.NotOK)
	}
	counted := Claims(j.Queue, workersOf(1)[0], 1, nil)
	if n := counted.Answered(200, answer(t, v1.ClaimResponse{Tasks: []v1.TaskEnvelope{envelope(1)}}), &tally); n != 1 ||
		counted.Next(nil) == nil {
		t.Errorf("%d claimed", n)
	}
	if n := counted.Answered(409, []byte(`{"error":"worker_draining"}`), &tally); n != 0 || tally.NotOK["409 worker_draining"] != 1 ||
		counted.Next(nil) != nil {
		t.Errorf("%d %v, and after a refusal nothing is claimed", n, tally.NotOK)
	}
}

// The first waits of all polls end evenly over the longest wait, and each poll then continues with that.
func TestPolls(t *testing.T) {
	const n = 4
	var refused atomic.Int64
	var tally load.Tally
	source := Polls("q", workersOf(n), &refused)
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
			t.Errorf("poll %d continues with %d ms", i, got)
		}
	}
}

// A bare client claims, and starts and completes what it got, each with its own token, until the queue is empty.
func TestNoOps(t *testing.T) {
	o := NoOps("q", workersOf(1)[0], 2)(0, 1)
	var tally load.Tally
	envelope := func(i int) v1.TaskEnvelope {
		return v1.TaskEnvelope{TaskID: fmt.Sprint("task_", i), TaskToken: fmt.Sprint("token-", i), CallbackBaseURL: "http://x"}
	}
	claims := []v1.ClaimResponse{{Tasks: []v1.TaskEnvelope{envelope(1), envelope(2)}}, {Tasks: []v1.TaskEnvelope{envelope(3)}}, {}}
	ended := 0
	var calls []string
	for {
		request := o.Next(nil)
		if request == nil {
			break
		}
		var body map[string]any
		r := parse(t, request, &body)
		calls = append(calls, r.URL.Path+" "+r.Header.Get("Authorization"))
		response := []byte(`{"acknowledged":true}`)
		if r.URL.Path == "/v1/queues/q/claim" {
			response, claims = answer(t, claims[0]), claims[1:]
		}
		ended += o.Answered(200, response, &tally)
	}
	claim := "/v1/queues/q/claim Bearer t0"
	want := []string{claim}
	for i := 1; i <= 3; i++ {
		for _, call := range []string{"started", "completed"} {
			want = append(want, fmt.Sprintf("/v1/tasks/task_%d/%s Bearer token-%d", i, call, i))
		}
		if i > 1 {
			want = append(want, claim)
		}
	}
	if fmt.Sprint(calls) != fmt.Sprint(want) || ended != 3 || len(tally.NotOK) > 0 {
		t.Errorf("%d ended, %v: %v", ended, tally.NotOK, calls)
	}
}

// A refusal ends it, and is counted.
func TestNoOpsEndWithARefusal(t *testing.T) {
	o := NoOps("q", workersOf(1)[0], 1)(0, 1)
	o.(*noOps).held = []claimedTask{{[]byte("a"), []byte("b")}}
	var tally load.Tally
	n := o.Answered(409, []byte(`{"error":"attempt_mismatch"}`), &tally)
	if n != 0 || tally.NotOK["409 attempt_mismatch"] != 1 || o.Next(nil) != nil {
		t.Errorf("%d, %v", n, tally.NotOK)
	}
}
