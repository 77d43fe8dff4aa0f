package bench

import (
	"fmt"
	"testing"

	"github.com/lubdub-io/lubdub/bench/load"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// A bare client claims, and starts and completes what it got, each with its own token, until the queue is empty.
func TestNoOps(t *testing.T) {
	o := &noOps{claims: newClaims("q", workersOf(1)[0], 2, nil)}
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
		said := []byte(`{"acknowledged":true}`)
		if r.URL.Path == "/v1/queues/q/claim" {
			said, claims = answer(t, claims[0]), claims[1:]
		}
		ended += o.Answered(200, said, &tally)
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

// A refusal ends it, and is told.
func TestNoOpsEndWithARefusal(t *testing.T) {
	o := &noOps{claims: newClaims("q", workersOf(1)[0], 1, nil), held: []claimedTask{{[]byte("a"), []byte("b")}}}
	var tally load.Tally
	n := o.Answered(409, []byte(`{"error":"attempt_mismatch"}`), &tally)
	if n != 0 || tally.NotOK["409 attempt_mismatch"] != 1 || o.Next(nil) != nil {
		t.Errorf("%d, %v", n, tally.NotOK)
	}
}
