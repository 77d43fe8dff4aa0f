//go:build go1.25

package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
)

// The next attempt begins with the last checkpoint as it was when it was saved, also if no heartbeat has sent it before the handler ended.
func TestTheNextAttemptBeginsWithTheCheckpoint(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		var began []string
		s.run(func(_ context.Context, task *worker.Task) (any, error) {
			var at map[string]int
			ok, err := task.LastCheckpoint(&at)
			if _, _, moved := task.LastProgress(); moved != (len(began) == 2) {
				t.Errorf("attempt %d has progress before it: %v", len(began)+1, moved)
			}
			if began = append(began, fmt.Sprint(at, ok, err)); len(began) == 3 {
				return at, nil
			}
			if len(began) == 2 {
				_ = task.Progress(3, "x")
			} else {
				text := json.RawMessage(`{ "frame": 7320 }`)
				if err := task.Checkpoint(text); err != nil {
					t.Error(err)
				}
				text[11] = '0'
			}
			return nil, worker.Snooze(0)
		})
		id := s.enqueue()
		time.Sleep(time.Minute)
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		if got := strings.Join(began, "; "); got != "map[] false <nil>; map[frame:7320] true <nil>; map[frame:7320] true <nil>" {
			t.Error(got)
		}
		if got := s.server.Task(id); string(got.Output) != `{"frame":7320}` || got.ProgressPct != 3 {
			t.Errorf("%+v", got)
		}
	})
}

// A checkpoint goes with the next heartbeat, and with further ones until one was accepted. Progress and checkpoints are sent independently.
func TestACheckpointIsSentOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		s.run(func(_ context.Context, task *worker.Task) (any, error) {
			_ = task.Progress(1, "begun")
			time.Sleep(45 * time.Second) // some heartbeats
			s.server.Unavailable(time.Second)
			_ = task.Checkpoint("old")
			_ = task.Checkpoint([]any{"kept", 1})
			time.Sleep(time.Minute)
			s.server.Up()
			time.Sleep(time.Minute)
			_ = task.Progress(2, "")
			time.Sleep(time.Minute)
			return nil, nil
		})
		s.enqueue()
		time.Sleep(10 * time.Minute)
		accepted, tries := 0, 0
		for _, r := range s.paths("/heartbeat") {
			has := func(text string) bool { return bytes.Contains(r.Body, []byte(text)) }
			if has(`"old"`) || has("details") && has("progressPct") {
				t.Errorf("%s", r.Body)
			}
			if has(`"details":["kept",1]`) {
				if tries++; r.Status == 200 {
					accepted++
				}
			}
		}
		if accepted != 1 || tries < 2 {
			t.Errorf("sent in %d heartbeats, of which %d were accepted", tries, accepted)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// A checkpoint that cannot be sent is refused at the call, and replaces nothing.
func TestAWrongCheckpointIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		most := strings.Repeat("x", 16<<10-2)
		s.run(func(_ context.Context, task *worker.Task) (any, error) {
			for _, right := range []any{json.RawMessage(strings.Repeat("[", 100) + `"[\\"` + strings.Repeat("]", 100)), most} {
				if err := task.Checkpoint(right); err != nil {
					t.Error(err)
				}
			}
			deep := json.RawMessage(strings.Repeat("[", 101) + `"\\\"]"` + strings.Repeat("]", 101))
			for _, wrong := range []any{nil, (*int)(nil), math.NaN(), func() {}, most + "x", deep, json.RawMessage("\"\xff\"")} {
				if err := task.Checkpoint(wrong); err == nil || !strings.Contains(err.Error(), "checkpoint") {
					t.Errorf("%T: %v", wrong, err)
				}
			}
			return nil, nil
		})
		id := s.enqueue()
		time.Sleep(time.Minute)
		if got := s.server.Task(id); string(got.Details) != `"`+most+`"` {
			t.Errorf("%d bytes are kept", len(got.Details))
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// What tasks that are given back have not sent is sent before that, whether their handlers have returned or not, however much it is, also
// if a server refuses it once or the tasks' tokens have expired.
func TestCheckpointsOfTasksThatAreGivenBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n = 100
		s := newSite(t, worker.Concurrency(n), worker.StopWithin(5*time.Second, 6*time.Second))
		large := strings.Repeat("x", 15<<10)
		refused := map[string]bool{}
		s.server.Intercept(func(r *http.Request, body []byte) (int, any, bool) {
			switch {
			case !bytes.Contains(body, []byte("details")):
				return 0, nil, false
			case !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer worker"):
				return http.StatusUnauthorized, v1.Error{Error: v1.CodeUnauthorized}, true
			case !refused[r.URL.Path]:
				refused[r.URL.Path] = true
				return http.StatusServiceUnavailable, v1.Error{Error: v1.CodeStoreUnavailable}, true
			}
			return 0, nil, false
		})
		s.run(func(ctx context.Context, task *worker.Task) (any, error) {
			<-ctx.Done()
			_ = task.Checkpoint(task.ID() + large)
			if task.ID() == "task_2" {
				time.Sleep(time.Hour)
			}
			return nil, ctx.Err()
		})
		var ids []string
		for range n {
			ids = append(ids, s.enqueue())
		}
		synctest.Wait()
		if err := s.stop(); err == nil {
			t.Error("nothing is unfinished")
		}
		for _, id := range ids {
			if got := s.server.Task(id); !strings.HasPrefix(string(got.Details), `"`+id+"x") || got.State != "QUEUED" {
				t.Errorf("%s: %s with %d bytes", id, got.State, len(got.Details))
			}
		}
		time.Sleep(2 * time.Hour)
	})
}

// The last checkpoint before a completion arrives although the task's token has expired.
func TestTheLastCheckpointWithTheWorkersToken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		s.server.Intercept(func(r *http.Request, _ []byte) (int, any, bool) {
			expired := strings.HasPrefix(r.URL.Path, "/v1/tasks/") && !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer worker")
			return http.StatusUnauthorized, v1.Error{Error: v1.CodeUnauthorized}, expired && !strings.HasSuffix(r.URL.Path, "/started")
		})
		s.run(func(_ context.Context, task *worker.Task) (any, error) {
			return nil, task.Checkpoint(7)
		})
		id := s.enqueue()
		time.Sleep(time.Minute)
		if got := s.server.Task(id); string(got.Details) != "7" || got.State != v1.Succeeded {
			t.Errorf("%+v", got)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// Of many large checkpoints each heartbeat sends some, until all are sent.
func TestManyLargeCheckpoints(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n = 100
		s := newSite(t, worker.Concurrency(n))
		large := strings.Repeat("x", 15<<10)
		refused := false
		s.server.Intercept(func(_ *http.Request, body []byte) (int, any, bool) { // the first heartbeat with some
			if refused || !bytes.Contains(body, []byte("details")) {
				return 0, nil, false
			}
			refused = true
			return http.StatusServiceUnavailable, v1.Error{Error: v1.CodeStoreUnavailable}, true
		})
		s.run(func(_ context.Context, task *worker.Task) (any, error) {
			_ = task.Checkpoint(large)
			time.Sleep(5 * time.Minute)
			return nil, nil
		})
		var ids []string
		for range n {
			ids = append(ids, s.enqueue())
		}
		time.Sleep(4 * time.Minute)
		for _, id := range ids {
			if got := s.server.Task(id); len(got.Details) != len(large)+2 {
				t.Errorf("of %s %d bytes have arrived", id, len(got.Details))
			}
		}
		for _, r := range s.paths("/heartbeat") {
			if len(r.Body) > 1<<20+20<<10 {
				t.Errorf("a heartbeat has %d bytes", len(r.Body))
			}
		}
		time.Sleep(5 * time.Minute)
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}
