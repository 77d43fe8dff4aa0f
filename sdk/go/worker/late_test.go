//go:build go1.25

package worker_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/internal/beats"
	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
	"github.com/lubdub-io/lubdub/sdk/go/workertest"
)

// slowSite returns a site on which the answers to one call take a minute, even if the caller has gone.
func slowSite(t *testing.T, suffix string, opts ...worker.Option) *site {
	t.Helper()
	server := workertest.New(t, workertest.MachineTime(), workertest.WorkerBeats(time.Minute, 3*time.Minute))
	slow := carrier(func(r *http.Request) (*http.Response, error) {
		calm := r.WithContext(context.WithoutCancel(r.Context()))
		if strings.HasSuffix(r.URL.Path, "/deregister") {
			time.Sleep(time.Second) // so that what is begun has the time for it
		}
		res, err := server.RoundTrip(calm)
		if strings.HasSuffix(r.URL.Path, suffix) {
			time.Sleep(time.Minute)
		}
		return res, err
	})
	c, err := client.New(server.URL(), append(server.Options(), client.Transport(slow), client.Timeout(time.Hour))...)
	if err != nil {
		t.Fatal(err)
	}
	w, err := worker.New(c, "default", opts...)
	if err != nil {
		t.Fatal(err)
	}
	return &site{T: t, server: server, worker: w, ended: make(chan error, 1)}
}

// After the hard stop nothing is begun, whatever response was on its way then: to a claim, or to a report that a task has started.
func TestNothingIsBegunAfterTheHardStop(t *testing.T) {
	for _, late := range []string{"/claim", "/started"} {
		t.Run(late[1:], func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := slowSite(t, late)
				var begun atomic.Int32
				id := s.enqueue()
				s.run(func(context.Context, *worker.Task) (any, error) { begun.Add(1); return 1, nil })
				s.worker.Kill()
				err := <-s.ended
				time.Sleep(5 * time.Minute)
				if begun.Load() != 0 || s.server.Task(id).State != v1.Queued {
					t.Errorf("%d handlers were begun; %+v", begun.Load(), s.server.Task(id))
				}
				if late == "/started" && !errors.As(err, new(*worker.Unfinished)) {
					t.Errorf("Run has returned %v", err)
				}
			})
		})
	}
}

// A worker that is drained ends, though it is not known any more and may not come back.
func TestADrainedWorkerThatMayNotComeBackEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		s.run(forPayload)
		s.server.Enqueue(v1.CreateTaskRequest{Type: "job", Payload: []byte("30")})
		synctest.Wait()
		s.server.Drain(s.worker.WorkerID())
		time.Sleep(15 * time.Second)
		s.server.Intercept(func(r *http.Request, _ []byte) (int, any, bool) {
			return 401, v1.Error{Error: v1.CodeUnauthorized}, strings.Contains(r.URL.Path, "/workers")
		})
		began := time.Now()
		if err := <-s.ended; err != nil || time.Since(began) > time.Minute {
			t.Errorf("%v, after %v", err, time.Since(began))
		}
	})
}

// A completion that no server answers is not sent again once Run has returned.
func TestNothingIsSentAfterRun(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, worker.StopWithin(10*time.Second, 20*time.Second))
		s.run(forPayload)
		s.server.Enqueue(v1.CreateTaskRequest{Type: "job", Payload: []byte("10")})
		time.Sleep(5 * time.Second)
		s.server.Down()
		time.Sleep(time.Minute)
		if err := s.stop(); !errors.As(err, new(*worker.Unfinished)) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		before := len(s.server.Requests())
		time.Sleep(time.Hour)
		if n := len(s.server.Requests()) - before; n != 0 {
			t.Errorf("%d requests after Run has returned", n)
		}
	})
}

// A handler that checks its context after a sleep of the machine learns at once that its strict lease has ended.
func TestAHandlersContextLooksAtItsLease(t *testing.T) {
	machine := &sleeper{Clock: clock.Real}
	server := workertest.New(t, workertest.MachineTime())
	opts := append(server.Options(), beats.Client.WithClock(machine).(client.Option), client.DefaultLease(client.Strict))
	c, err := client.New(server.URL(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w, err := worker.New(c, "default")
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 1)
	w.Handle("job", func(ctx context.Context, _ *worker.Task) (any, error) {
		machine.slept.Store(int64(10 * time.Minute))
		errs <- ctx.Err()
		return nil, ctx.Err()
	})
	server.Enqueue(v1.CreateTaskRequest{Type: "job"})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(context.Background()) }()
	if err := <-errs; err == nil {
		t.Error("its context has not ended")
	}
	w.Kill()
	<-ended
}

// sleeper is a clock of a machine that can sleep: no timer notices.
type sleeper struct {
	clock.Clock
	slept atomic.Int64
}

func (s *sleeper) Now() time.Time { return s.Clock.Now().Add(time.Duration(s.slept.Load())) }
