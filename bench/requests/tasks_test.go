package requests

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lubdub-io/lubdub/bench/load"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// named are tasks whose ids are known.
func named(n int) *Tasks {
	t := New(n, time.Second, 2*time.Second)
	t.prefix = "bench-abcdef-"
	return t
}

// withTokens are tasks that have tokens.
func withTokens(n int) *Tasks {
	t := named(n)
	for i := range n {
		t.setToken(i, fmt.Appendf(nil, "token-of-%d", i))
	}
	return t
}

// parse reads one request as a server would, and nothing may be left of it.
func parse(t *testing.T, request []byte, body any) *http.Request {
	t.Helper()
	r := bufio.NewReader(bytes.NewReader(request))
	req, err := http.ReadRequest(r)
	if err != nil {
		t.Fatalf("%v: %s", err, request)
	}
	text, err := io.ReadAll(req.Body)
	if err == nil && body != nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		err = d.Decode(body)
	}
	if err != nil || r.Buffered() != 0 || req.ContentLength != int64(len(text)) {
		t.Fatalf("%v, %d bytes are left: %s", err, r.Buffered(), request)
	}
	return req
}

func idOf(i int) string { return fmt.Sprintf("bench-abcdef-%013d", i) }

func TestIDsHaveTheLengthOfReportedOnes(t *testing.T) {
	if id := string(withTokens(1).appendID(nil, 4711)); len(id) != 26 || id != idOf(4711) {
		t.Error(id)
	}
	if p := newPrefix(); len(p) != len("bench-abcdef-") || p == newPrefix() {
		t.Errorf("%q, and another run must have another", p)
	}
}

// Every task is beaten for, in another order than that of creation, each by one connection, with its own token.
func TestSingles(t *testing.T) {
	const n, conns = 100, 7
	tasks := withTokens(n)
	seen := map[string]int{}
	var order []string
	for i := range conns {
		s := tasks.Beats(i, conns)
		for range 2 * len(s.(*singles).share) {
			var beat v1.HeartbeatRequest
			req := parse(t, s.Next(nil), &beat)
			id := strings.TrimSuffix(strings.TrimPrefix(req.URL.Path, "/v1/tasks/"), "/heartbeat")
			var number int
			if _, err := fmt.Sscanf(id, "bench-abcdef-%d", &number); err != nil ||
				req.Header.Get("Authorization") != fmt.Sprintf("Bearer token-of-%d", number) {
				t.Fatalf("%v: %s with %s", err, id, req.Header.Get("Authorization"))
			}
			if beat.Attempt != 1 || beat.WorkerID != "worker-1" || beat.ProgressPct == nil || *beat.ProgressPct < 10 || *beat.Message == "" {
				t.Fatalf("%+v", beat)
			}
			seen[id]++
			order = append(order, id)
		}
	}
	if len(seen) != n {
		t.Errorf("%d of %d tasks", len(seen), n)
	}
	for id, times := range seen {
		if times != 2 {
			t.Errorf("%s: %d times", id, times)
		}
	}
	if slices.IsSorted(order[:n/conns]) {
		t.Error("they come in the order of creation")
	}
}

func TestOnceEnds(t *testing.T) {
	tasks := withTokens(10)
	for name, source := range map[string]func(i, n int) load.Source{
		"started": tasks.Start, "heartbeat": tasks.BeatOnce, "completed": tasks.Complete,
	} {
		seen := 0
		for s := source(0, 1); ; seen++ {
			request := s.Next(nil)
			if request == nil {
				break
			}
			if req := parse(t, request, nil); !strings.HasSuffix(req.URL.Path, "/"+name) {
				t.Error(req.URL.Path)
			}
		}
		if seen != 10 {
			t.Errorf("%s: %d of 10", name, seen)
		}
	}
	var done v1.CompletedRequest
	if parse(t, tasks.Complete(0, 1).Next(nil), &done); done.Outcome != v1.OutcomeSucceeded {
		t.Errorf("%+v", done)
	}
}

func TestBatches(t *testing.T) {
	tasks := withTokens(25)
	s := tasks.Batches(10, true, true)(0, 1)
	seen := map[string]bool{}
	for _, want := range []int{10, 10, 5} {
		var body v1.HeartbeatsRequest
		if req := parse(t, s.Next(nil), &body); req.URL.Path != "/v1/heartbeats" || len(body.Heartbeats) != want {
			t.Fatalf("%s with %d", req.URL.Path, len(body.Heartbeats))
		}
		for _, item := range body.Heartbeats {
			if !strings.HasPrefix(item.TaskToken, "token-of-") || idOf(atoi(item.TaskToken)) != item.TaskID || item.ProgressPct == nil ||
				item.Attempt != 1 {
				t.Errorf("%+v", item)
			}
			seen[item.TaskID] = true
		}
	}
	if s.Next(nil) != nil || len(seen) != 25 {
		t.Errorf("the load continues after its end, or %d of 25 tasks were found", len(seen))
	}
	var bare v1.HeartbeatsRequest
	again := tasks.Batches(100, false, false)(0, 1)
	for range 3 { // no task twice in one batch
		if parse(t, again.Next(nil), &bare); len(bare.Heartbeats) != 25 || bare.Heartbeats[0].Message != nil {
			t.Errorf("%d beats, %+v", len(bare.Heartbeats), bare.Heartbeats[0])
		}
	}
}

func atoi(token string) (n int) {
	_, _ = fmt.Sscanf(token, "token-of-%d", &n)
	return n
}

// Only what was acknowledged counts, item by item.
func TestBatchAnswers(t *testing.T) {
	tasks := withTokens(5)
	answer := func(statuses ...int) []byte {
		var r v1.HeartbeatsResponse
		for i, status := range statuses {
			r.Results = append(r.Results, v1.HeartbeatResult{TaskID: idOf(i), Status: status})
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, c := range map[string]struct {
		status int
		body   []byte
		beats  int
		notOK  map[string]int64
	}{
		"all":     {200, answer(200, 200, 200, 200, 200), 5, nil},
		"some":    {200, answer(200, 410, 200, 503, 410), 2, map[string]int64{"410 in a batch": 2, "503 in a batch": 1}},
		"too few": {200, answer(200, 409), 1, map[string]int64{"409 in a batch": 1, "no result in the batch": 3}},
		"none":    {503, nil, 0, map[string]int64{"503": 5}},
	} {
		s := tasks.Batches(5, true, false)(0, 1)
		s.Next(nil)
		var tally load.Tally
		if beats := s.Answered(c.status, c.body, &tally); beats != c.beats || !maps.Equal(tally.NotOK, c.notOK) {
			t.Errorf("%s: %d beats, %v", name, beats, tally.NotOK)
		}
	}
}

func TestCreation(t *testing.T) {
	tasks := named(2500)
	tasks.Tenants = 3
	for i := range 2 {
		s := tasks.Create("control")(i, 2)
		for request := s.Next(nil); request != nil; request = s.Next(request[:0]) {
			var body v1.CreateTasksRequest
			req := parse(t, request, &body)
			if req.URL.Path != "/v1/tasks:batch" || req.Header.Get("Authorization") != "Bearer control" || len(body.Tasks) > 1000 {
				t.Fatalf("%s with %d", req.URL.Path, len(body.Tasks))
			}
			var results []any
			for _, task := range body.Tasks {
				if *task.HeartbeatTimeoutMs != 2000 || *task.HeartbeatIntervalMs != 1000 || !strings.HasPrefix(task.TenantID, "tenant-") {
					t.Fatalf("%+v", task)
				}
				results = append(results, map[string]any{"status": 201, "taskId": task.TaskID, "taskToken": "token-of-" + task.TaskID})
			}
			answer, _ := json.Marshal(map[string]any{"results": results})
			var tally load.Tally
			if n := s.Answered(200, answer, &tally); n != len(body.Tasks) || tally.NotOK != nil {
				t.Fatalf("%d of %d, %v", n, len(body.Tasks), tally.NotOK)
			}
		}
	}
	for i := range 2500 {
		if got, want := string(tasks.token(uint32(i))), "token-of-"+idOf(i); got != want {
			t.Fatalf("task %d has %q, not %q", i, got, want)
		}
	}
}

func TestCreationThatFails(t *testing.T) {
	tasks := named(3)
	s := tasks.Create("control")(0, 1)
	s.Next(nil)
	var tally load.Tally
	n := s.Answered(200,
		[]byte(`{"results":[{"status":201,"taskToken":"a"},{"status":409,"error":"task_exists"},{"status":201,"taskToken":"c"}]}`), &tally)
	if n != 2 || tally.NotOK["409 task_exists"] != 1 {
		t.Error(n, tally.NotOK)
	}
	if string(tasks.token(0)) != "a" || string(tasks.token(2)) != "c" {
		t.Errorf("%q and %q", tasks.token(0), tasks.token(2))
	}
	tasks.DropRefused()
	if slices.Sort(tasks.order); !slices.Equal(tasks.order, []uint32{0, 2}) {
		t.Errorf("what was created is %v", tasks.order)
	}
	if n := s.Answered(503, nil, &tally); n != 0 || tally.NotOK["503"] != 3 {
		t.Error(n, tally.NotOK)
	}
}

// A life is create, started, three beats, completed; a refusal ends it early.
func TestLives(t *testing.T) {
	l := Lives("control")(0, 1)
	var tally load.Tally
	beats := 0
	for _, want := range []string{"/v1/tasks", "/v1/tasks/t1/started", "/v1/tasks/t1/heartbeat", "/v1/tasks/t1/heartbeat",
		"/v1/tasks/t1/heartbeat", "/v1/tasks/t1/completed", "/v1/tasks", "/v1/tasks/t1/started", "/v1/tasks"} {
		req := parse(t, l.Next(nil), nil)
		if req.URL.Path != want {
			t.Fatalf("%s, not %s", req.URL.Path, want)
		}
		status, body := 200, "{}"
		if want == "/v1/tasks" {
			status, body = 201, `{"taskId":"t1","taskToken":"its own"}`
		} else if auth := req.Header.Get("Authorization"); auth != "Bearer its own" {
			t.Errorf("%s with %q", want, auth)
		}
		if tally.NotOK == nil && beats == 3 && strings.HasSuffix(want, "started") {
			status = 503
		}
		beats += l.Answered(status, []byte(body), &tally)
	}
	if beats != 3 || tally.NotOK["503"] != 1 {
		t.Errorf("%d beats, %v", beats, tally.NotOK)
	}
}

// A list is walked page by page to its end, and then from its beginning again.
func TestListing(t *testing.T) {
	l := &listing{control: []byte("ctl")}
	var tally load.Tally
	for _, step := range []struct{ wantQuery, answer string }{
		{"?pageSize=100 HTTP", `{"tasks":[],"nextPageToken":"a1"}`},
		{"?pageSize=100&pageToken=a1 HTTP", `{"tasks":[],"nextPageToken":"b2"}`},
		{"?pageSize=100&pageToken=b2 HTTP", `{"tasks":[],"nextPageToken":""}`},
		{"?pageSize=100 HTTP", `{"tasks":[]}`},
		{"?pageSize=100 HTTP", `{"tasks":[]}`},
	} {
		got := string(l.Next(nil))
		if !strings.HasPrefix(got, "GET /v1/tasks"+step.wantQuery) || !strings.Contains(got, "Bearer ctl\r\n\r\n") {
			t.Fatalf("%q", got)
		}
		if n := l.Answered(200, []byte(step.answer), &tally); n != 1 {
			t.Error(n)
		}
	}
	l.token = []byte("b2")
	if n := l.Answered(503, []byte(`{"error":"store_unavailable"}`), &tally); n != 0 || tally.NotOK["503 store_unavailable"] != 1 ||
		len(l.token) > 0 {
		t.Errorf("%d %+v", n, tally)
	}
}

// What was refused is created by the next run, and nothing twice.
func TestCreationAgain(t *testing.T) {
	all := named(5)
	var tally load.Tally
	first := all.Create("ctl")(0, 1)
	first.Next(nil)
	answer := `{"results":[{"status":201,"taskToken":"a"},{"status":503,"error":"overloaded"},{"status":201,"taskToken":"c"},` +
		`{"status":503,"error":"overloaded"},{"status":201,"taskToken":"e"}]}`
	if n := first.Answered(200, []byte(answer), &tally); n != 3 {
		t.Fatal(n, tally)
	}
	second := all.Create("ctl")(0, 1)
	request := string(second.Next(nil))
	for i := range uint32(5) {
		id := string(all.appendID(nil, i))
		if missing := i == 1 || i == 3; strings.Contains(request, id) != missing {
			t.Errorf("task %d: %s", i, request)
		}
	}
	if n := second.Answered(200, []byte(`{"results":[{"taskToken":"b"},{"taskToken":"d"}]}`), &tally); n != 2 ||
		string(all.token(1)) != "b" || string(all.token(3)) != "d" {
		t.Error(n, tally)
	}
	if all.Create("ctl")(0, 1).Next(nil) != nil {
		t.Error("all were created")
	}
}
