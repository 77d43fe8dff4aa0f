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

// site is a server of workertest and a worker of it, in a bubble's time.
type site struct {
	*testing.T
	server *workertest.Server
	worker *worker.Worker
	ended  chan error
}

func newSite(t *testing.T, opts ...worker.Option) *site {
	t.Helper()
	s := &site{T: t, server: workertest.New(t, workertest.MachineTime()), ended: make(chan error, 1)}
	c, err := client.New(s.server.URL(), s.server.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	if s.worker, err = worker.New(c, "default", opts...); err != nil {
		t.Fatal(err)
	}
	return s
}

// run begins to work, and has the test end it.
func (s *site) run(handler worker.Handler) {
	s.worker.Handle("job", handler)
	go func() { s.ended <- s.worker.Run(context.Background()) }()
	synctest.Wait()
}

func (s *site) stop() error {
	s.worker.Close()
	return <-s.ended
}

func (s *site) enqueue() string {
	return s.server.Enqueue(v1.CreateTaskRequest{Queue: "default", Type: "job", Payload: json.RawMessage(`{"to":"a@b.c"}`)})
}

// paths are the requests whose paths end so, in their order.
func (s *site) paths(suffix string) (all []workertest.Request) {
	for _, r := range s.server.Requests() {
		if strings.HasSuffix(r.Path, suffix) {
			all = append(all, r)
		}
	}
	return all
}

func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func untilDone(ctx context.Context, _ *worker.Task) (any, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

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
		"deaf": {func(context.Context, *worker.Task) (any, error) { time.Sleep(10 * time.Minute); return nil, nil },
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
				id := s.enqueue()
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

// While work finishes, beats go on; then handlers are cancelled, and what still runs is given back.
func TestStopping(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, worker.StopWithin(40*time.Second, 60*time.Second))
		n := atomic.Int32{}
		s.run(func(ctx context.Context, _ *worker.Task) (any, error) {
			switch n.Add(1) {
			case 1:
				time.Sleep(35 * time.Second) // finishes
				return 1, nil
			case 2:
				<-ctx.Done() // heeds
				if context.Cause(ctx) != worker.ErrStopping {
					t.Errorf("its context ended with %v", context.Cause(ctx))
				}
				return nil, ctx.Err()
			}
			time.Sleep(time.Hour) // deaf
			return 1, nil
		})
		var ids []string
		for range 3 {
			ids = append(ids, s.enqueue())
			synctest.Wait()
		}
		began := time.Now()
		s.worker.Close()
		synctest.Wait()
		late := s.enqueue()
		time.Sleep(50 * time.Second)
		beats := 0
		for _, r := range s.paths("/heartbeat") {
			if r.At.After(began) {
				beats++
			}
		}
		if beats < 4 {
			t.Errorf("only %d beats within 50 s of stopping", beats)
		}
		err := <-s.ended
		var unfinished *worker.Unfinished
		if !errors.As(err, &unfinished) || len(unfinished.TaskIDs) != 1 || unfinished.TaskIDs[0] != ids[2] ||
			time.Since(began) != 60*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		for i, want := range []string{"SUCCEEDED ", "FAILED INFRASTRUCTURE", "FAILED INFRASTRUCTURE"} {
			got := s.server.Task(ids[i])
			is := string(got.State) + " "
			if got.Error != nil {
				is += string(got.Error.Category)
			}
			if is != want {
				t.Errorf("task %d: %s, want %s", i, is, want)
			}
		}
		if s.server.Task(late).State != v1.Queued || len(s.paths("/drain")) != 1 || len(s.paths("/deregister")) != 1 {
			t.Error("it claims while it stops, or does not say that it stops")
		}
		time.Sleep(2 * time.Hour)
	})
}

func TestASecondSignalStopsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		s.run(untilDone)
		id := s.enqueue()
		synctest.Wait()
		s.worker.Close()
		time.Sleep(time.Second)
		began := time.Now()
		s.worker.Kill()
		if err := <-s.ended; !errors.As(err, new(*worker.Unfinished)) || time.Since(began) != 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if got := s.server.Task(id); got.State != v1.Failed || got.Error.Message != "worker stopped" {
			t.Errorf("%+v", got)
		}
	})
}

func TestTheServerDrains(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, worker.Concurrency(1))
		s.run(func(context.Context, *worker.Task) (any, error) { time.Sleep(time.Minute); return 1, nil })
		first := s.enqueue()
		synctest.Wait()
		s.server.Drain(s.worker.WorkerID())
		second := s.enqueue()
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
		if n := len(s.paths("/claim")); n != 1 {
			t.Errorf("%d claims, though a beat told it to drain", n)
		}
		if s.server.Task(first).State != v1.Succeeded || s.server.Task(second).State != v1.Queued {
			t.Errorf("%+v, %+v", s.server.Task(first), s.server.Task(second))
		}
	})
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

// A worker that the server does not know any more registers anew; what was taken from it is stopped, and done again.
func TestComingBack(t *testing.T) {
	for name, lose := range map[string]func(*workertest.Server, string){
		"offline": (*workertest.Server).Offline, "forgotten": (*workertest.Server).Forget,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newSite(t)
				var begun, lost atomic.Int32
				s.run(func(ctx context.Context, _ *worker.Task) (any, error) {
					begun.Add(1)
					select {
					case <-ctx.Done():
						lost.Add(1)
						return nil, ctx.Err()
					case <-time.After(time.Minute):
						return 1, nil
					}
				})
				s.enqueue()
				synctest.Wait()
				old := s.worker.WorkerID()
				lose(s.server, old)
				time.Sleep(25 * time.Second)
				if s.worker.WorkerID() == old {
					t.Error("it has not registered anew")
				}
				if lost.Load() != 1 {
					t.Errorf("%d handlers were stopped", lost.Load())
				}
				if name == "offline" && begun.Load() != 2 {
					t.Errorf("%d were begun", begun.Load())
				}
				time.Sleep(2 * time.Minute)
				if err := s.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A lost answer counts nothing twice, and a server that is away loses nothing.
func TestCountsAreKept(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		s.run(func(context.Context, *worker.Task) (any, error) { return 1, nil })
		losing := 0
		s.server.LoseAnswers(func(r *http.Request) error {
			if losing++; losing%3 != 0 && !strings.HasSuffix(r.URL.Path, "/drain") {
				return io.ErrUnexpectedEOF
			}
			return nil
		})
		for i := range 50 {
			s.enqueue()
			time.Sleep(2 * time.Second)
			if i == 20 {
				s.server.Unavailable(2 * time.Second)
				time.Sleep(3 * time.Minute)
				s.server.Up()
			}
		}
		s.server.LoseAnswers(nil)
		time.Sleep(time.Minute)
		done := int64(0)
		for _, w := range s.server.Workers() {
			done += w.Completed
		}
		if done != 50 || len(s.server.Workers()) != 1 {
			t.Errorf("%d were counted by %d workers", done, len(s.server.Workers()))
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

// A completion waits for the beat that names its attempt, and no beat after it does.
func TestACompletionWaitsForTheBeatUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		server := workertest.New(t, workertest.MachineTime())
		slow := carrier(func(r *http.Request) (*http.Response, error) {
			res, err := server.RoundTrip(r)
			if strings.HasSuffix(r.URL.Path, "/heartbeat") {
				time.Sleep(4 * time.Second) // the answer takes its time
			}
			return res, err
		})
		c, err := client.New(server.URL(), append(server.Options(), client.Transport(slow))...)
		if err != nil {
			t.Fatal(err)
		}
		w, err := worker.New(c, "default")
		if err != nil {
			t.Fatal(err)
		}
		s := &site{T: t, server: server, worker: w, ended: make(chan error, 1)}
		finish := make(chan struct{})
		s.run(func(context.Context, *worker.Task) (any, error) { <-finish; return 1, nil })
		id := s.enqueue()
		for len(s.paths("/heartbeat")) < 2 {
			time.Sleep(time.Second)
		}
		answered := s.paths("/heartbeat")[1].At.Add(4 * time.Second)
		close(finish)
		time.Sleep(time.Minute)
		if got := s.server.Task(id); got.State != v1.Succeeded {
			t.Fatalf("%+v", got)
		}
		completed := s.paths("/completed")[0].At
		if !completed.Equal(answered) {
			t.Errorf("the completion left at %v, the beat's answer came at %v", completed, answered)
		}
		for _, r := range s.paths("/heartbeat") {
			if r.At.After(completed) && strings.Contains(string(r.Body), id) {
				t.Errorf("a beat at %v names the attempt", r.At)
			}
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

type carrier func(*http.Request) (*http.Response, error)

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }
