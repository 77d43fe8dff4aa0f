package why

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/session"
)

// Of a worker the finished tasks that the server knows are counted, whatever its heartbeats reported, and failures that it reported
// itself are not among what it lost.
func TestWhyOfAWorkerCountsWhatTheServerKnows(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		answer := `{}`
		switch {
		case r.URL.Path == "/v1/workers/wkr_1":
			answer = `{"workerId":"wkr_1","queue":"mail","status":"OFFLINE","liveness":"LOST"}`
		case r.URL.Path == "/v1/tasks" && q.Get("workerId") == "wkr_1" && q.Get("state") == "SUCCEEDED" && q.Get("pageToken") == "":
			answer = `{"tasks":[{"taskId":"a"},{"taskId":"b"}],"nextPageToken":"n"}`
		case r.URL.Path == "/v1/tasks" && q.Get("state") == "SUCCEEDED":
			answer = `{"tasks":[{"taskId":"c"}]}`
		case r.URL.Path == "/v1/tasks":
			answer = `{"tasks":[{"taskId":"d"}]}`
		case r.URL.Path == "/v1/events":
			answer = `{"events":[{"id":"3","type":"task.failed","subject":"d","data":{"reason":"WORKER_REPORTED"}},` +
				`{"id":"2","type":"task.retrying","subject":"e","data":{"reason":"WORKER_REPORTED"}},` +
				`{"id":"2","type":"task.retrying","subject":"g","data":{"reason":"SNOOZED"}},` +
				`{"id":"1","type":"task.retrying","subject":"f","data":{"reason":"WORKER_LOST"}}]}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	var out bytes.Buffer
	c := session.Flags{}
	c.Server, c.Output, c.Timeout = server.URL, "table", 10*time.Second
	s, err := c.Open(&session.Env{Context: t.Context(), Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	a, err := ExplainWorker(t.Context(), s, "wkr_1")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(a.Sentences, "\n")
	for _, part := range []string{"Tasks that finished on it, within their retention: 3 succeeded, 1 failed.",
		"Outcome of 1 task that it lost:\n  f: requeued"} {
		if !strings.Contains(text, part) {
			t.Errorf("it does not say %q:\n%s", part, text)
		}
	}
	if strings.Contains(text, "reported 0") {
		t.Errorf("it says\n%s", text)
	}
}
