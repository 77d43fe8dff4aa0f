//go:build go1.25

package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type letter struct {
	To string `json:"to"`
}

const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestEnqueue(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var sent v1.CreateTaskRequest
		var keys, traces []string
		c := newClient(t, "https://lubdub.example", client.Transport(carrier(func(r *http.Request) (*http.Response, error) {
			keys, traces = append(keys, r.Header.Get("Idempotency-Key")), append(traces, r.Header.Get("Traceparent"))
			if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
				t.Error(err)
			}
			return reply(201, `{"taskId":"t1","queue":"mail","state":"QUEUED"}`), nil
		})))
		task, err := c.Enqueue(t.Context(), "mail", "send_email", letter{"a@example.com"}, client.Delay(time.Minute),
			client.Traceparent(trace), client.Set(func(r *v1.CreateTaskRequest) { r.Labels = map[string]string{"team": "billing"} }))
		if err != nil || task.TaskID != "t1" {
			t.Fatal(task, err)
		}
		if sent.Queue != "mail" || sent.Type != "send_email" || string(sent.Payload) != `{"to":"a@example.com"}` ||
			sent.DelayMs == nil || *sent.DelayMs != 60_000 || traces[0] != trace || sent.Labels["team"] != "billing" {
			t.Errorf("sent %+v", sent)
		}
		if _, err := c.Enqueue(t.Context(), "mail", "send_email", nil, client.IdempotencyKey("k")); err != nil {
			t.Fatal(err)
		}
		if len(keys) != 2 || keys[0] == "" || keys[1] != "k" {
			t.Errorf("idempotency keys %q", keys)
		}
		for name, wrong := range map[string]func() (*v1.Task, error){
			"payload": func() (*v1.Task, error) { return c.Enqueue(t.Context(), "mail", "send_email", make(chan int)) },
			"queue":   func() (*v1.Task, error) { return c.Enqueue(t.Context(), "", "send_email", nil) },
			"a queue": func() (*v1.Task, error) {
				return c.Enqueue(t.Context(), "mail", "send_email", nil, client.Set(func(r *v1.CreateTaskRequest) { *r = v1.CreateTaskRequest{} }))
			},
		} {
			if _, err := wrong(); err == nil || !strings.Contains(err.Error(), name) || len(keys) != 2 {
				t.Errorf("%s: %v after %d requests", name, err, len(keys))
			}
		}
	})
}

// Tasks without a trace context get that of the call's context, each request once; those with one keep it.
func TestTasksGetTheTraceContextOfTheCall(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, trace)
		var traces []string
		c := newClient(t, "https://lubdub.example", client.TraceContext(func(ctx context.Context) string {
			text, _ := ctx.Value(key{}).(string)
			return text
		}), client.Transport(carrier(func(r *http.Request) (*http.Response, error) {
			traces = append(traces, r.Header.Get("Traceparent"))
			if len(traces) == 1 {
				return reply(503, `{"error":"store_unavailable","message":"m"}`), nil
			}
			if strings.HasSuffix(r.URL.Path, ":batch") {
				return reply(200, `{"results":[{"status":201,"taskId":"t1","queue":"mail","state":"QUEUED"}]}`), nil
			}
			return reply(201, `{"taskId":"t1","queue":"mail","state":"QUEUED"}`), nil
		})))
		for _, create := range []func() error{
			func() error { _, err := c.Enqueue(ctx, "mail", "x", nil); return err }, // its first request is answered 503
			func() error { _, err := c.Enqueue(ctx, "mail", "x", nil, client.Traceparent("own")); return err },
			func() error { _, err := c.Enqueue(t.Context(), "mail", "x", nil); return err },
			func() error { _, err := c.CreateTasks(ctx, make([]v1.CreateTasksItem, 1)); return err },
			func() error {
				_, err := c.Enqueue(context.WithValue(t.Context(), key{}, trace+"\n"), "mail", "x", nil)
				return err
			},
			func() error {
				_, err := c.CreateTask(ctx, v1.CreateTaskRequest{Queue: "mail", Traceparent: "body"})
				return err
			},
		} {
			if err := create(); err != nil {
				t.Error(err)
			}
		}
		if got, want := strings.Join(traces, " "), strings.Join([]string{trace, trace, "own", "", trace, "", ""}, " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// batches is a server that creates the tasks of batches; refuse says with which status and body it refuses one, by its type and how often
// it was sent.
type batches struct {
	*testing.T
	sizes  []int
	times  map[string]int
	keys   map[string]string
	refuse func(taskType string, nth int) string
	down   bool
}

func (b *batches) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	var in v1.CreateTasksRequest
	if err := errors.Join(err, json.Unmarshal(body, &in)); err != nil || len(in.Tasks) > 1000 || len(body) > 4<<20 {
		b.Errorf("%d tasks, %d bytes: %v", len(in.Tasks), len(body), err)
	}
	b.sizes = append(b.sizes, len(in.Tasks))
	if b.down {
		return reply(403, `{"error":"forbidden","message":"no"}`), nil
	}
	var results []string
	for _, task := range in.Tasks {
		result := b.refuse(task.Type, b.times[task.Type])
		b.times[task.Type]++
		if known := b.keys[task.Type]; task.IdempotencyKey == "" || known != "" && known != task.IdempotencyKey {
			b.Errorf("task %s has the key %q, and had %q before", task.Type, task.IdempotencyKey, known)
		}
		if b.keys != nil {
			b.keys[task.Type] = task.IdempotencyKey
		}
		if result == "" {
			result = fmt.Sprintf(`{"status":201,"taskId":%q,"queue":"q","state":"QUEUED"}`, task.Type)
		}
		results = append(results, result)
	}
	return reply(200, `{"results":[`+strings.Join(results, ",")+`]}`), nil
}

func numbered(n int, payload any) iter.Seq[client.NewTask] {
	return func(yield func(client.NewTask) bool) {
		for i := range n {
			if !yield(client.NewTask{Queue: "q", Type: fmt.Sprint(i), Payload: payload}) {
				return
			}
		}
	}
}

// Each task has one result, in order: created, refused, refused for now and created later, or not encodable.
func TestEnqueueMany(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := &batches{T: t, times: map[string]int{}, keys: map[string]string{}, refuse: func(taskType string, nth int) string {
			switch {
			case taskType == "3":
				return `{"status":409,"error":"task_exists","message":"it exists"}`
			case taskType == "1500" && nth == 0:
				return `{"status":503,"error":"store_unavailable","message":"again"}`
			}
			return ""
		}}
		c := newClient(t, "https://lubdub.example", client.Transport(b))
		n := 0
		for task, err := range c.EnqueueMany(t.Context(), func(yield func(client.NewTask) bool) {
			for task := range numbered(2500, nil) {
				if task.Type == "7" {
					task.Payload = make(chan int)
				}
				if !yield(task) {
					return
				}
			}
		}) {
			switch {
			case n == 3:
				if !errors.Is(err, client.ErrTaskExists) {
					t.Errorf("task 3: %v", err)
				}
			case n == 7:
				if err == nil || !strings.Contains(err.Error(), "payload") {
					t.Errorf("task 7: %v", err)
				}
			case err != nil || task.TaskID != fmt.Sprint(n):
				t.Errorf("task %d: %+v, %v", n, task, err)
			}
			n++
		}
		if got := fmt.Sprint(b.sizes); n != 2500 || got != "[999 1000 1 500]" {
			t.Errorf("%d results, batches of %s", n, got)
		}
	})
}

// A batch has limited bytes, ends with the loop, and gives its failure to each of its tasks.
func TestEnqueueManyInBatches(t *testing.T) {
	b := &batches{T: t, times: map[string]int{}, refuse: func(string, int) string { return "" }}
	c := newClient(t, "https://lubdub.example", client.Transport(b))
	for _, err := range c.EnqueueMany(t.Context(), numbered(50, strings.Repeat("x", 200<<10))) {
		if err != nil {
			t.Error(err)
		}
	}
	if got := fmt.Sprint(b.sizes); got != "[10 10 10 10 10]" {
		t.Errorf("batches of %s with 200 KiB each", got)
	}
	b.sizes = nil
	for range c.EnqueueMany(t.Context(), numbered(5000, nil)) {
		break
	}
	if len(b.sizes) != 1 {
		t.Errorf("%d batches for a loop that ended at its first result", len(b.sizes))
	}
	b.down = true
	refused := 0
	for _, err := range c.EnqueueMany(t.Context(), numbered(1200, nil)) {
		if errors.Is(err, client.ErrForbidden) {
			refused++
		}
	}
	if refused != 1200 {
		t.Errorf("%d of 1200 tasks were refused", refused)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for range c.EnqueueMany(ctx, numbered(5000, nil)) {
		cancel()
		n++
	}
	if n != 1000 {
		t.Errorf("%d results of a loop whose context ended with the first batch", n)
	}
}
