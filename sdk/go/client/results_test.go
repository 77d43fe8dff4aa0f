//go:build go1.25

package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// ends is a server of POST /v1/tasks:wait, in a bubble's time.
type ends struct {
	*testing.T
	client *client.Client

	mu       sync.Mutex
	tasks    map[string]string // of tasks that have ended, as JSON
	changed  chan struct{}     // closed with the next end
	refuse   func(n int) *http.Response
	requests []v1.WaitTasksRequest
	open     int // requests under way
	most     int // at a time
}

func newEnds(t *testing.T) *ends {
	e := &ends{T: t, tasks: map[string]string{}, changed: make(chan struct{})}
	e.client = newClient(t, "https://lubdub.example", client.Transport(carrier(e.answer)))
	return e
}

func (e *ends) end(id, task string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tasks[id] = task
	close(e.changed)
	e.changed = make(chan struct{})
}

func (e *ends) answer(r *http.Request) (*http.Response, error) {
	var body v1.WaitTasksRequest
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/tasks:wait" {
		e.Errorf("%s: %v", r.URL, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests = append(e.requests, body)
	e.open++
	defer func() { e.open-- }()
	e.most = max(e.most, e.open)
	if e.refuse != nil {
		if res := e.refuse(len(e.requests)); res != nil {
			return res, nil
		}
	}
	late := time.After(time.Duration(*body.WaitMs) * time.Millisecond)
	for {
		var tasks, missing []string
		for _, id := range body.TaskIDs {
			switch task := e.tasks[id]; {
			case task == "none":
				missing = append(missing, `"`+id+`"`)
			case task != "" && len(tasks) < 100:
				tasks = append(tasks, task)
			}
		}
		answer := reply(200, `{"tasks":[`+strings.Join(tasks, ",")+`],"notFound":[`+strings.Join(missing, ",")+`]}`)
		if len(tasks)+len(missing) > 0 {
			return answer, nil
		}
		changed := e.changed
		e.mu.Unlock()
		select {
		case <-changed:
			e.mu.Lock()
		case <-late:
			e.mu.Lock()
			return answer, nil
		case <-r.Context().Done():
			e.mu.Lock()
			return nil, r.Context().Err()
		}
	}
}

// seen returns the requests so far.
func (e *ends) seen() []v1.WaitTasksRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.requests)
}

func (e *ends) underWay() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open
}

func succeeded(id string) string {
	return `{"taskId":"` + id + `","state":"SUCCEEDED","output":{"name":"` + id + `"}}`
}

// named is the output of the tasks.
type named struct{ Name string }

// awaitResult begins to wait for a result.
func (e *ends) awaitResult(ctx context.Context, id string) <-chan error {
	done := make(chan error, 1)
	go func() {
		var out named
		err := e.client.Result(ctx, id, &out)
		if err == nil && out.Name != id {
			err = fmt.Errorf("the output of %s is %+v", id, out)
		}
		done <- err
	}()
	return done
}

func TestResult(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		e := newEnds(t)
		e.end("t1", succeeded("t1"))
		e.end("failed", `{"taskId":"failed","state":"FAILED","reason":"WORKER_REPORTED","error":{"message":"no such file"}}`)
		e.end("lost", `{"taskId":"lost","state":"FAILED","reason":"HEARTBEAT_TIMEOUT","error":null}`)
		e.end("cancelled", `{"taskId":"cancelled","state":"CANCELLED","cancelReason":"user_requested"}`)
		e.end("gone", "none")
		if err := <-e.awaitResult(t.Context(), "t1"); err != nil {
			t.Error(err)
		}
		if err := e.client.Result(t.Context(), "t1", nil); err != nil {
			t.Error(err)
		}
		if err := e.client.Result(t.Context(), "t1", new(int)); err == nil || !strings.Contains(err.Error(), "output of task t1") {
			t.Error(err)
		}
		for id, text := range map[string]string{
			"failed":    "lubdub: task failed FAILED (WORKER_REPORTED): no such file",
			"lost":      "lubdub: task lost FAILED (HEARTBEAT_TIMEOUT)",
			"cancelled": "lubdub: task cancelled CANCELLED: user_requested",
		} {
			var failed *client.TaskFailed
			if err := e.client.Result(t.Context(), id, nil); !errors.As(err, &failed) || failed.Task.TaskID != id || err.Error() != text {
				t.Errorf("%s: %v", id, err)
			}
		}
		if err := e.client.Result(t.Context(), "gone", nil); !errors.Is(err, client.ErrTaskNotFound) {
			t.Error(err)
		}
		before := len(e.seen())
		if err := e.client.Result(t.Context(), "a/b", nil); err == nil || len(e.seen()) != before {
			t.Error(err)
		}
	})
}

// Results that are awaited one after the other share one request at a time, and there are few.
func TestResultsShareOneRequest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		e := newEnds(t)
		const n = 900
		var all []<-chan error
		for i := range n {
			all = append(all, e.awaitResult(t.Context(), fmt.Sprint("t", i)))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Minute)
		before := len(e.seen())
		if before > 60 {
			t.Errorf("%d requests", before)
		}
		if last := e.seen()[before-1]; len(last.TaskIDs) != n || *last.WaitMs < 10_000 {
			t.Errorf("the last request is for %d tasks, for %d ms", len(last.TaskIDs), *last.WaitMs)
		}
		for i := range n {
			e.end(fmt.Sprint("t", i), succeeded(fmt.Sprint("t", i)))
		}
		for _, one := range all {
			if err := <-one; err != nil {
				t.Fatal(err)
			}
		}
		if e.most != 1 {
			t.Errorf("%d requests at a time", e.most)
		}
	})
}

// Many tasks that end one after the other, and a server that does not wait, cause few requests.
func TestRequestsForResultsArePaced(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		e := newEnds(t)
		var all []<-chan error
		for i := range 1000 {
			all = append(all, e.awaitResult(t.Context(), fmt.Sprint("t", i)))
		}
		time.Sleep(time.Minute)
		before := len(e.seen())
		for i := range 1000 {
			e.end(fmt.Sprint("t", i), succeeded(fmt.Sprint("t", i)))
			time.Sleep(time.Millisecond)
		}
		for _, one := range all {
			if err := <-one; err != nil {
				t.Fatal(err)
			}
		}
		if n := len(e.seen()) - before; n > 100 {
			t.Errorf("%d requests for 1,000 ends in a second", n)
		}
		e.refuse = func(int) *http.Response { return reply(200, `{"tasks":[],"notFound":[]}`) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		before = len(e.seen())
		if err := <-e.awaitResult(ctx, "u"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if n := len(e.seen()) - before; n > 100 {
			t.Errorf("%d requests in a minute to a server that does not wait", n)
		}
	})
}

// A task that is added while the client asks for others is asked for within 0.1 s, and long requests are cancelled for it.
func TestAnAddedResultIsAskedForSoon(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		e := newEnds(t)
		for i := range 50 {
			e.awaitResult(t.Context(), fmt.Sprint("slow", i))
			time.Sleep(time.Duration(i) * 100 * time.Millisecond)
			id := fmt.Sprint("t", i)
			e.end(id, succeeded(id))
			begun := time.Now()
			if err := <-e.awaitResult(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(begun); d > 200*time.Millisecond { // a request of up to 0.1 s, and twice that
				t.Fatalf("after %v", d)
			}
		}
	})
}

// More tasks than a request may name have turns: no task waits for the end of others.
func TestMoreResultsThanARequestMayName(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		e := newEnds(t)
		const n = 3500
		var all []<-chan error
		for i := range n {
			all = append(all, e.awaitResult(t.Context(), fmt.Sprint("t", i)))
		}
		time.Sleep(time.Minute)
		for i := 0; i < n; i += 250 {
			id := fmt.Sprint("t", i)
			e.end(id, succeeded(id))
			begun := time.Now()
			select {
			case err := <-all[i]:
				if d := time.Since(begun); err != nil || d > 2*time.Second {
					t.Errorf("%s after %v: %v", id, d, err)
				}
			case <-time.After(time.Hour):
				t.Fatalf("no result of %s", id)
			}
		}
		for _, r := range e.seen() {
			if len(r.TaskIDs) > 1000 {
				t.Fatalf("a request for %d tasks", len(r.TaskIDs))
			}
		}
	})
}

func TestResultsOutliveRefusals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		e := newEnds(t)
		e.end("t", succeeded("t"))
		e.refuse = func(n int) *http.Response {
			switch {
			case n == 1:
				return reply(503, `{"error":"overloaded","message":"m"}`, "Retry-After", "7")
			case n < 20:
				return reply(502, "")
			}
			return nil
		}
		begun := time.Now()
		if err := <-e.awaitResult(t.Context(), "t"); err != nil || time.Since(begun) < 7*time.Second {
			t.Error(err, time.Since(begun))
		}
		e.refuse = func(int) *http.Response {
			return reply(503, `{"error":"overloaded","message":"m"}`, "Retry-After", "3600")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := <-e.awaitResult(ctx, "t"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		e.refuse, begun = nil, time.Now() // the pause ended with the last call
		if err := <-e.awaitResult(t.Context(), "t"); err != nil || time.Since(begun) > time.Second {
			t.Error(err, time.Since(begun))
		}
		e.refuse = func(int) *http.Response { return reply(403, `{"error":"forbidden","message":"m"}`) }
		for _, one := range []<-chan error{e.awaitResult(t.Context(), "a"), e.awaitResult(t.Context(), "b")} {
			if err := <-one; !errors.Is(err, client.ErrForbidden) {
				t.Error(err)
			}
		}
	})
}

// A call that stops waiting affects no other call. The requests end with the last one, and with the client.
func TestResultsAreAskedForWhileACallWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		e := newEnds(t)
		one, cancel := context.WithCancel(t.Context())
		other, cancelOther := context.WithCancel(t.Context())
		first, second, third := e.awaitResult(one, "t"), e.awaitResult(other, "t"), e.awaitResult(other, "u")
		time.Sleep(time.Minute)
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		e.end("t", succeeded("t"))
		if err := <-second; err != nil {
			t.Error(err)
		}
		cancelOther()
		if err := <-third; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		time.Sleep(time.Millisecond)
		if n := e.underWay(); n != 0 {
			t.Errorf("%d requests are under way although no call waits", n)
		}
		before := len(e.seen())
		time.Sleep(time.Hour)
		if n := len(e.seen()); n != before {
			t.Errorf("%d requests although no call waits", n-before)
		}
		last := e.awaitResult(t.Context(), "u")
		time.Sleep(time.Minute)
		e.client.Close()
		if err := <-last; !errors.Is(err, client.ErrClosed) {
			t.Error(err)
		}
		if err := <-e.awaitResult(t.Context(), "u"); !errors.Is(err, client.ErrClosed) {
			t.Error(err)
		}
	})
}
