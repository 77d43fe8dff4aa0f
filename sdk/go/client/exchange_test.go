package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"testing"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// exchanges is a server that answers exchanges by the outcome of each completion, which is a status here, and an exchanger.
func exchanges(t *testing.T, before func(*http.Request, []string) int) *exchanger {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in v1.ExchangeRequest
		_ = json.NewDecoder(r.Body).Decode(&in)
		var ids []string
		out := v1.ExchangeResponse{}
		for _, c := range in.Completed {
			ids = append(ids, c.TaskID)
			result := v1.CompletionResult{TaskID: c.TaskID, Status: c.Attempt, Error: fmt.Sprint("code_", c.Attempt)}
			if c.Attempt == 503 {
				result.RetryAfterMs = 1500
			} else if c.Attempt == 200 {
				result = v1.CompletionResult{TaskID: c.TaskID, Status: 200, FinalState: v1.Succeeded}
			}
			out.Completed = append(out.Completed, result)
		}
		if status := before(r, ids); status != http.StatusOK {
			w.WriteHeader(status)
			return
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(s.Close)
	c, err := New(s.URL, Token("t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &exchanger{client: c, base: c.base}
}

func completionOf(worker, task string, status int) *exchanged {
	return &exchanged{worker: worker, token: "w", answer: new(v1.CompletedResponse),
		item: fmt.Appendf(nil, `{"taskId":%q,"attempt":%d,"outcome":"SUCCEEDED"}`, task, status)}
}

// Completions that come while a request is in flight share the next one, and each gets its own result.
func TestCompletionsShareARequest(t *testing.T) {
	t.Parallel()
	var requests [][]string
	arrived, release := make(chan struct{}), make(chan struct{})
	x := exchanges(t, func(r *http.Request, ids []string) int {
		if requests = append(requests, append(ids, r.URL.Path)); len(requests) == 1 {
			close(arrived)
			<-release
		}
		return http.StatusOK
	})
	results := map[string]chan error{}
	send := func(c *exchanged, task string) {
		result := make(chan error, 1)
		results[task] = result
		go func() { result <- x.complete(t.Context(), c) }()
	}
	one := completionOf("w1", "t0", 200)
	send(one, "t0")
	<-arrived
	for i, status := range []int{200, 403, 503, 409} {
		task := fmt.Sprint("t", i+1)
		send(completionOf("w1", task, status), task)
		waitUntil(x, func() bool { return len(x.pending) == i+1 })
	}
	send(completionOf("w2", "t5", 200), "t5")
	waitUntil(x, func() bool { return len(x.pending) == 5 })
	close(release)
	for task, want := range map[string]func(error) bool{
		"t0": func(err error) bool { return err == nil && one.answer.FinalState == v1.Succeeded },
		"t1": func(err error) bool { return err == nil },
		"t2": func(err error) bool { return err == errAlone },
		"t3": func(err error) bool { return again(err) && RetryAfter(err).Milliseconds() == 1500 },
		"t4": func(err error) bool { return errors.Is(err, Code("code_409")) && !again(err) },
		"t5": func(err error) bool { return err == nil },
	} {
		if err := <-results[task]; !want(err) {
			t.Errorf("%s: %v", task, err)
		}
	}
	const first, second = "/v1/workers/w1/exchange", "/v1/workers/w2/exchange"
	want := [][]string{{"t0", first}, {"t1", "t2", "t3", "t4", first}, {"t5", second}}
	if !slices.EqualFunc(requests, want, slices.Equal) {
		t.Errorf("requests %v, want %v", requests, want)
	}
}

func waitUntil(x *exchanger, holds func() bool) {
	for {
		x.mu.Lock()
		ok := holds()
		x.mu.Unlock()
		if ok {
			return
		}
		runtime.Gosched()
	}
}

// A refused exchange makes its completions be sent on their own, and an unanswered one is retried.
func TestRefusedExchanges(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]func(error) bool{
		http.StatusNotFound:           func(err error) bool { return err == errAlone },
		http.StatusUnauthorized:       func(err error) bool { return err == errAlone },
		http.StatusServiceUnavailable: again,
	} {
		x := exchanges(t, func(*http.Request, []string) int { return status })
		if err := x.complete(t.Context(), completionOf("w1", "t1", 200)); !want(err) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// A request is cut off once no caller waits for it, and a completion that was not sent is not sent any more.
func TestAnExchangeForWhichNoCallerWaits(t *testing.T) {
	t.Parallel()
	arrived, cut := make(chan struct{}), make(chan struct{})
	x := exchanges(t, func(r *http.Request, _ []string) int {
		close(arrived)
		<-r.Context().Done()
		close(cut)
		return http.StatusOK
	})
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error)
	for _, task := range []string{"t1", "t2"} {
		go func() { results <- x.complete(ctx, completionOf("w1", task, 200)) }()
		if task == "t1" {
			<-arrived
		}
	}
	waitUntil(x, func() bool { return len(x.pending) == 1 })
	cancel()
	for range 2 {
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	<-cut
	waitUntil(x, func() bool { return !x.alive && len(x.pending) == 0 })
}
