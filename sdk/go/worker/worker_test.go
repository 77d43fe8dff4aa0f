//go:build go1.25

package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
	"github.com/lubdub-io/lubdub/sdk/go/workertest"
)

func TestAWorkerDoesWhatItClaims(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, worker.Name("mailer"), worker.Version("1.2.3"), worker.Labels(map[string]string{"region": "eu"}), worker.Concurrency(2))
		var at atomic.Int32
		var most atomic.Int32
		s.run(func(ctx context.Context, task *worker.Task) (any, error) {
			most.Store(max(most.Load(), at.Add(1)))
			defer at.Add(-1)
			var in struct{ To string }
			if err := task.Payload(&in); err != nil || in.To != "a@b.c" || worker.TaskOf(ctx) != task || task.Type() != "job" {
				t.Errorf("%+v, %v", in, err)
			}
			_ = task.Progress(50, "half")
			time.Sleep(15 * time.Second)
			return map[string]int{"sent": 1}, nil
		})
		if !s.worker.Registered() || s.server.Workers()[0].Status != v1.Online {
			t.Error("it is not registered")
		}
		r := s.server.Workers()[0].Request
		if r.Name != "mailer" || r.Version != "1.2.3" || r.Labels["region"] != "eu" || *r.MaxConcurrent != 2 || r.PID == 0 || r.Hostname == "" ||
			r.MachineID == "" || r.Runtimes[0] != "go" || !strings.HasPrefix(runtime.Version(), r.Runtimes[1]) {
			t.Errorf("registered as %+v", r)
		}
		ids := []string{s.enqueue(), s.enqueue(), s.enqueue()}
		time.Sleep(12 * time.Second)
		if s.worker.ActiveCount() != 2 || s.server.Workers()[0].ActiveCount != 2 || s.server.Task(ids[0]).Message != "half" {
			t.Errorf("%d are done; the server knows %+v", s.worker.ActiveCount(), s.server.Workers()[0])
		}
		time.Sleep(30 * time.Second)
		for _, id := range ids {
			if got := s.server.Task(id); got.State != v1.Succeeded || string(got.Output) != `{"sent":1}` {
				t.Errorf("%+v", got)
			}
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		if w := s.server.Workers()[0]; w.Status != v1.Offline || w.Reason != "DEREGISTERED" || w.Completed != 3 || most.Load() != 2 {
			t.Errorf("%+v; %d at once", w, most.Load())
		}
		if s.worker.Registered() {
			t.Error("it is still registered")
		}
	})
}

func TestHowHandlersEnd(t *testing.T) {
	for name, test := range map[string]struct {
		handler  worker.Handler
		opts     []worker.Option
		category v1.ErrorCategory
		message  string
	}{
		"an error": {func(context.Context, *worker.Task) (any, error) { return nil, io.EOF }, nil, v1.CategoryUserCode, "EOF"},
		"a panic":  {func(context.Context, *worker.Task) (any, error) { panic("at the disco") }, nil, v1.CategoryUserCode, "at the disco"},
		"Goexit": {func(context.Context, *worker.Task) (any, error) { runtime.Goexit(); return nil, nil }, nil, v1.CategoryUserCode,
			"ended its goroutine"},
		"no JSON": {func(context.Context, *worker.Task) (any, error) { return make(chan int), nil }, nil, v1.CategoryUserCode, "output"},
		"bad input": {func(_ context.Context, t *worker.Task) (any, error) { return nil, t.Payload(new(int)) }, nil,
			v1.CategoryDataQuality, "payload"},
		"a timeout": {untilDone, []worker.Option{worker.TaskTimeout(time.Minute)}, v1.CategoryTimeout, "too long"},
		"no timeout": {func(context.Context, *worker.Task) (any, error) { time.Sleep(time.Hour); return nil, io.EOF },
			[]worker.Option{worker.TaskTimeout(0)}, v1.CategoryUserCode, "EOF"},
		"ignores its context": {func(context.Context, *worker.Task) (any, error) { time.Sleep(10 * time.Minute); return nil, nil },
			[]worker.Option{worker.TaskTimeout(time.Minute)}, v1.CategoryTimeout, "too long"},
		"stuck": {func(ctx context.Context, task *worker.Task) (any, error) {
			time.Sleep(50 * time.Second)
			reported := time.Now()
			_ = task.Progress(1, "a sign of life")
			if <-ctx.Done(); time.Since(reported) != time.Minute {
				t.Errorf("it was taken for stuck %v after its progress", time.Since(reported))
			}
			return nil, nil
		}, []worker.Option{worker.Watchdog(time.Minute)}, v1.CategoryTimeout, "no progress for 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newSite(t, test.opts...)
				s.run(test.handler)
				once := 1
				id := s.server.Enqueue(v1.CreateTaskRequest{Type: "job", Payload: json.RawMessage(`{}`), Retry: &v1.RetryPolicy{MaxAttempts: &once}})
				time.Sleep(2 * time.Hour)
				got := s.server.Task(id)
				if got.State != v1.Failed || got.Error == nil || got.Error.Category != test.category ||
					!strings.Contains(got.Error.Message, test.message) {
					t.Errorf("%+v %+v", got, got.Error)
				}
				if n := s.worker.ActiveCount(); n != 0 {
					t.Errorf("%d places are taken", n)
				}
				if err := s.stop(); err != nil || s.server.Workers()[0].Failed != 1 {
					t.Errorf("%v, %+v", err, s.server.Workers()[0])
				}
			})
		})
	}
}

// A test of a handler needs no worker: its task has what the envelope has, and drops its reports.
func TestAHandlerRunsWithoutAWorker(t *testing.T) {
	handle := func(ctx context.Context, task *worker.Task) (any, error) {
		var frames, from int
		if err := task.Payload(&frames); err != nil {
			return nil, err
		}
		if _, err := task.LastCheckpoint(&from); err != nil {
			return nil, err
		}
		pct, message, _ := task.LastProgress()
		_, drains := worker.DrainDeadline(ctx)
		return fmt.Sprintln(from, frames, pct, message, task.Attempt(), drains), errors.Join(task.Progress(50, "half"), task.Checkpoint(frames))
	}
	for want, e := range map[string]*v1.TaskEnvelope{
		"0 9 0  1 false\n": {Attempt: 1, Payload: json.RawMessage(`9`)},
		"7 9 5 cut 2 false\n": {Attempt: 2, Payload: json.RawMessage(`9`), LastProgress: &v1.Progress{ProgressPct: json.RawMessage(`5`),
			Message: json.RawMessage(`"cut"`), Details: json.RawMessage(`7`)}},
	} {
		if got, err := handle(t.Context(), &worker.Task{Envelope: e}); got != want || err != nil {
			t.Errorf("%v, not %s: %v", got, want, err)
		}
	}
}

func TestACancelReachesTheHandler(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		s.run(func(ctx context.Context, _ *worker.Task) (any, error) {
			<-ctx.Done()
			var cancelled client.Cancelled
			if !errors.As(context.Cause(ctx), &cancelled) || cancelled.Reason != "user_requested" {
				t.Errorf("the cause is %v", context.Cause(ctx))
			}
			return nil, &client.StoppedError{Phase: "sending", Partial: 3}
		})
		id := s.enqueue()
		synctest.Wait()
		s.server.Cancel(id, "user_requested")
		time.Sleep(11 * time.Second)
		if got := s.server.Task(id); got.State != v1.Cancelled || got.Phase != "sending" || string(got.Partial) != "3" {
			t.Errorf("%+v", got)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// A task that is cancelled before it has started is completed without its handler.
func TestACancelledTaskIsNotBegun(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		s.run(func(context.Context, *worker.Task) (any, error) { t.Error("it was begun"); return 1, nil })
		s.server.Intercept(func(r *http.Request, _ []byte) (int, any, bool) {
			if task, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/v1/tasks/"), "/started"); ok {
				s.server.Cancel(task, "user_requested")
			}
			return 0, nil, false
		})
		id := s.enqueue()
		synctest.Wait()
		if got := s.server.Task(id); got.State != v1.Cancelled {
			t.Errorf("%+v", got)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestMiddlewareAndJSON(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		var order []string
		for _, name := range []string{"outer", "inner"} {
			s.worker.Use(func(next worker.Handler) worker.Handler {
				return func(ctx context.Context, t *worker.Task) (any, error) {
					order = append(order, name)
					return next(ctx, t)
				}
			})
		}
		type in struct{ To string }
		worker.HandleJSON(s.worker, "json", func(ctx context.Context, m in) (string, error) { return "to " + m.To, nil })
		s.run(untilDone)
		id := s.server.Enqueue(v1.CreateTaskRequest{Type: "json", Payload: json.RawMessage(`{"to":"x"}`)})
		time.Sleep(time.Second)
		if got := s.server.Task(id); string(got.Output) != `"to x"` || fmt.Sprint(order) != "[outer inner]" {
			t.Errorf("%+v, %v", got, order)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestBadUseFailsEarly(t *testing.T) {
	ok := func(context.Context, *worker.Task) (any, error) { return nil, nil }
	t.Setenv("TERMINATION_GRACE_PERIOD_SECONDS", "30")
	for want, make := range map[string]func(*client.Client) (*worker.Worker, error){
		"call Handle before Run": func(c *client.Client) (*worker.Worker, error) { return worker.New(c, "default") },
		"no queue":               func(c *client.Client) (*worker.Worker, error) { return worker.New(c, "") },
		"two handlers for \"job\"": func(c *client.Client) (*worker.Worker, error) {
			w, err := worker.New(c, "default")
			w.Handle("job", ok)
			w.Handle("job", ok)
			return w, err
		},
		"at least one type": func(c *client.Client) (*worker.Worker, error) {
			w, err := worker.New(c, "default")
			w.HandleDefault(ok)
			return w, err
		},
		"two default handlers": func(c *client.Client) (*worker.Worker, error) {
			w, err := worker.New(c, "default")
			w.HandleDefault(ok)
			w.HandleDefault(ok)
			return w, err
		},
		"have no handler": func(c *client.Client) (*worker.Worker, error) {
			w, err := worker.New(c, "default", worker.Types("job", "other"))
			w.Handle("job", ok)
			return w, err
		},
		"is nil": func(c *client.Client) (*worker.Worker, error) {
			w, err := worker.New(c, "default")
			w.Handle("job", nil)
			return w, err
		},
		"terminationGracePeriodSeconds": func(c *client.Client) (*worker.Worker, error) {
			return worker.New(c, "default", worker.StopWithin(time.Second, 30*time.Second))
		},
		"must not come before": func(c *client.Client) (*worker.Worker, error) {
			return worker.New(c, "default", worker.StopWithin(3*time.Second, time.Second))
		},
		"1 is the least": func(c *client.Client) (*worker.Worker, error) { return worker.New(c, "default", worker.Concurrency(0)) },
	} {
		s := workertest.New(t)
		c, err := client.New(s.URL(), s.Options()...)
		if err != nil {
			t.Fatal(err)
		}
		w, err := make(c)
		if err == nil {
			err = w.Run(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), want) || len(s.Requests()) != 0 {
			t.Errorf("want %q, got %v after %d requests", want, err, len(s.Requests()))
		}
	}
}
