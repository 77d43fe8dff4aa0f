//go:build go1.25

package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
)

// A handler that snoozes its task gets it again after that time; a snoozed attempt counts neither as completed nor as failed.
func TestAHandlerSnoozesItsTask(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		var begun []time.Time
		s.run(func(context.Context, *worker.Task) (any, error) {
			if begun = append(begun, time.Now()); len(begun) < 3 {
				return nil, fmt.Errorf("not yet: %w", worker.Snooze(10*time.Minute))
			}
			return "done", nil
		})
		id := s.enqueue()
		time.Sleep(5 * time.Minute)
		if got := s.server.Task(id); got.State != v1.Queued || got.Attempt != 1 {
			t.Errorf("%+v", got)
		}
		time.Sleep(time.Hour)
		got, w := s.server.Task(id), s.server.Workers()[0]
		if got.State != v1.Succeeded || got.Attempt != 3 || w.Completed != 1 || w.Failed != 0 {
			t.Errorf("%+v, its worker %+v", got, w)
		}
		for i := range len(begun) - 1 {
			if d := begun[i+1].Sub(begun[i]); d < 10*time.Minute || d > 11*time.Minute {
				t.Errorf("attempt %d began %v after the one before", i+2, d)
			}
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// What a handler returns decides the completion, however it is wrapped.
func TestWhatAHandlerReturnsIsSent(t *testing.T) {
	for name, test := range map[string]struct {
		returned error
		want     string
	}{
		"retry after": {fmt.Errorf("busy: %w", worker.RetryAfter(1500*time.Microsecond, io.EOF)),
			`{"category":"USER_CODE","message":"busy: EOF","retryable":true,"retryAfterMs":2}`},
		"retry after, of a category": {worker.RetryAfter(time.Second, client.Categorize(v1.CategoryInfrastructure, io.EOF)),
			`{"category":"INFRASTRUCTURE","message":"EOF","retryable":true,"retryAfterMs":1000}`},
		"permanent": {worker.Permanent(io.EOF), `{"category":"USER_CODE","message":"EOF","retryable":false}`},
		"permanent, of a category": {worker.Permanent(client.Categorize(v1.CategoryTimeout, io.EOF)),
			`{"category":"TIMEOUT","message":"EOF","retryable":false}`},
		"the outer failure decides": {client.Permanent(worker.RetryAfter(0, io.EOF)),
			`{"category":"USER_CODE","message":"EOF","retryable":false,"retryAfterMs":0}`},
		"a snooze that is too long": {worker.Snooze(400 * 24 * time.Hour), `{"category":"USER_CODE","message":"snoozed for 9600h0m0s"}`},
		"cancelled":                 {worker.Cancelled("withdrawn"), `{"category":"CANCELLED","message":"withdrawn"}`},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newSite(t)
				s.run(func(context.Context, *worker.Task) (any, error) { return nil, test.returned })
				id := s.enqueue()
				time.Sleep(time.Minute)
				got := s.server.Task(id)
				state := v1.Failed
				if errors.As(test.returned, new(client.Cancelled)) {
					state = v1.Cancelled
				}
				if sent, err := json.Marshal(got.Error); err != nil || string(sent) != test.want || got.State != state {
					t.Errorf("%s with %s, want %s", got.State, sent, test.want)
				}
				if err := s.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
