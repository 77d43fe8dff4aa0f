//go:build go1.25

package worker_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
)

// While work finishes, beats continue; then handlers are cancelled; what they give up then, and what still runs at the end, is given back.
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
				<-ctx.Done() // honours the cancel
				if context.Cause(ctx) != worker.ErrStopping {
					t.Errorf("its context ended with %v", context.Cause(ctx))
				}
				return nil, ctx.Err()
			}
			time.Sleep(time.Hour) // ignores its context
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
		if !errors.As(err, &unfinished) || !slices.Equal(unfinished.TaskIDs, ids[1:]) ||
			time.Since(began) != 60*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		for i, want := range []v1.State{v1.Succeeded, v1.Queued, v1.Queued} {
			if got := s.server.Task(ids[i]); got.State != want || got.Lost != 0 {
				t.Errorf("task %d: %+v, want %s", i, got, want)
			}
		}
		if n := len(s.paths("/completed")); n != 1 {
			t.Errorf("%d completions, want that of the task which was finished", n)
		}
		if s.server.Task(late).State != v1.Queued || len(s.paths("/drain")) != 1 || len(s.paths("/deregister")) != 1 {
			t.Error("it claims while it stops, or does not announce the stop")
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
		if got := s.server.Task(id); got.State != v1.Queued || got.Lost != 0 {
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
			t.Errorf("%d claims, though the response to a beat requested a drain", n)
		}
		if s.server.Task(first).State != v1.Succeeded || s.server.Task(second).State != v1.Queued {
			t.Errorf("%+v, %+v", s.server.Task(first), s.server.Task(second))
		}
	})
}

// A handler finds the deadline of the drain in its context.
func TestTheDrainsDeadlineIsInTheContext(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		until := time.Now().Add(time.Hour).UTC()
		s.server.Intercept(func(r *http.Request, _ []byte) (int, any, bool) {
			return 200, v1.WorkerHeartbeatResponse{
				Accepted: true, ShouldDrain: true, DrainDeadline: v1.At(until), HeartbeatIntervalMs: 10000, HeartbeatTimeoutMs: 30000,
			}, strings.HasSuffix(r.URL.Path, "/heartbeat") && strings.Contains(r.URL.Path, "/workers/")
		})
		s.run(func(ctx context.Context, _ *worker.Task) (any, error) {
			if _, known := worker.DrainDeadline(ctx); known {
				t.Error("it is there before the server has requested the drain")
			}
			time.Sleep(15 * time.Second)
			if got, known := worker.DrainDeadline(ctx); !known || !got.Equal(until) {
				t.Errorf("it is %v, want %v", got, until)
			}
			return 1, nil
		})
		s.enqueue()
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
		if _, known := worker.DrainDeadline(t.Context()); known {
			t.Error("there is one without a task")
		}
	})
}

// However a stop falls between the steps of a claim, an idle worker has stopped when its claims are over.
func TestAStopAtAnyMoment(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4)) // on one processor hardly anything falls between two steps
		for i := range 300 {
			s := newSite(t)
			s.worker.Handle("job", untilDone)
			began := time.Now()
			go func() { s.ended <- s.worker.Run(t.Context()) }()
			for n := 0; !s.worker.Registered(); n++ {
				if n > 100_000_000 {
					t.Fatalf("stop %d: it does not register", i)
				}
				runtime.Gosched()
			}
			for range i % 50 {
				runtime.Gosched()
			}
			if err := s.stop(); err != nil || time.Since(began) > 5*time.Second {
				t.Fatalf("stop %d: %v, after %v", i, err, time.Since(began))
			}
		}
	})
}

// A completion that is not answered when the hard stop comes is given back; one that is answered meanwhile is not, and neither is what was
// lost before. Where the worker cannot deregister nothing was given back, and the error reports it.
func TestOnlyWhatIsReallyGivenBackIsNamed(t *testing.T) {
	for _, reachable := range []bool{true, false} {
		inBubble(t, func(t *testing.T) {
			s := newSite(t, worker.StopWithin(20*time.Second, 30*time.Second))
			release := make(chan struct{})
			s.server.Intercept(func(r *http.Request, _ []byte) (int, any, bool) {
				cut := strings.HasSuffix(r.URL.Path, "/unanswered/completed") || !reachable && strings.HasSuffix(r.URL.Path, "/deregister")
				return 503, v1.Error{Error: v1.CodeStoreUnavailable, Message: "m"}, cut
			})
			s.run(func(_ context.Context, task *worker.Task) (any, error) {
				switch task.ID() {
				case "unanswered":
					<-release
				case "lost", "runs":
					time.Sleep(2 * time.Hour)
				}
				return 1, nil
			})
			for _, id := range []string{"unanswered", "done", "lost", "runs"} {
				s.server.Enqueue(v1.CreateTaskRequest{TaskID: id, Queue: "default", Type: "job"})
			}
			synctest.Wait()
			s.server.End("lost", "DEADLINE_EXCEEDED")
			time.Sleep(time.Minute)
			close(release)
			time.Sleep(time.Second)
			err := s.stop()
			var unfinished *worker.Unfinished
			if !errors.As(err, &unfinished) || !slices.Equal(unfinished.TaskIDs, []string{"runs", "unanswered"}) ||
				(unfinished.Err == nil) != reachable {
				t.Error(err)
			}
			time.Sleep(3 * time.Hour)
		})
	}
}

// Handlers are all there before Run: one that is added later ends the worker with an error.
func TestAHandlerAfterRunIsAnError(t *testing.T) {
	for want, add := range map[string]func(*worker.Worker){
		`Handle("late") was called after Run`: func(w *worker.Worker) { w.Handle("late", untilDone) },
		"HandleDefault was called after Run":  func(w *worker.Worker) { w.HandleDefault(untilDone) },
	} {
		inBubble(t, func(t *testing.T) {
			s := newSite(t)
			s.run(untilDone)
			add(s.worker)
			if err := <-s.ended; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}

// Without limits of the user's the stops follow what the orchestrator allows.
func TestTheStopsFollowTheGracePeriod(t *testing.T) {
	for seconds, want := range map[string][2]time.Duration{
		"": {20 * time.Second, 25 * time.Second}, "30": {20 * time.Second, 25 * time.Second}, "120": {110 * time.Second, 115 * time.Second},
		"6": {4 * time.Second, 5 * time.Second}, "0": {20 * time.Second, 25 * time.Second}, "soon": {20 * time.Second, 25 * time.Second},
	} {
		t.Setenv("TERMINATION_GRACE_PERIOD_SECONDS", seconds)
		inBubble(t, func(t *testing.T) {
			s := newSite(t)
			cancelled := make(chan time.Time, 1)
			s.run(func(ctx context.Context, _ *worker.Task) (any, error) {
				<-ctx.Done()
				cancelled <- time.Now()
				time.Sleep(2 * time.Hour) // ignores the end of its context
				return 1, nil
			})
			s.enqueue()
			synctest.Wait()
			began := time.Now()
			err := s.stop()
			if got := [2]time.Duration{(<-cancelled).Sub(began), time.Since(began)}; got != want || !errors.As(err, new(*worker.Unfinished)) {
				t.Errorf("with %q s: handlers were cancelled and given back after %v, want %v: %v", seconds, got, want, err)
			}
			time.Sleep(3 * time.Hour)
		})
	}
}

// A drain of the machine that the worker found when it registered is waited for; one that comes later ends it.
func TestAWorkerOfADrainedMachineWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		s.server.DrainMachine(true)
		s.run(func(context.Context, *worker.Task) (any, error) { return 1, nil })
		id := s.enqueue()
		time.Sleep(time.Hour)
		if n := len(s.paths("/claim")); n != 0 || len(s.ended) != 0 || len(s.server.Workers()) != 1 {
			t.Errorf("%d claims by %d workers", n, len(s.server.Workers()))
		}
		s.server.DrainMachine(false)
		time.Sleep(time.Minute)
		if s.server.Task(id).State != v1.Succeeded {
			t.Errorf("%+v", s.server.Task(id))
		}
		s.server.DrainMachine(true)
		if err := <-s.ended; err != nil || len(s.paths("/deregister")) != 1 {
			t.Error(err)
		}
	})
}

// A worker that an operator has taken offline sends nothing more, not about what it does and not to leave, and may not come back.
func TestForcedOfflineEndsTheWorker(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, worker.StopWithin(time.Minute, 2*time.Minute), worker.Concurrency(2)) // no claim waits
		causes := make(chan error, 2)
		s.run(func(ctx context.Context, task *worker.Task) (any, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return 1, nil
		})
		s.enqueue()
		s.enqueue()
		synctest.Wait()
		id := s.worker.WorkerID()
		s.server.ForceOffline(id)
		err := <-s.ended
		ended := time.Now()
		var held *worker.ForcedOffline
		if !errors.As(err, &held) || held.Remedy != "lubdub worker resume "+id || errors.As(err, new(*worker.Unfinished)) {
			t.Error(err)
		}
		for range 2 {
			if cause := <-causes; !errors.As(cause, new(client.Lost)) {
				t.Errorf("a handler ended with %v", cause)
			}
		}
		time.Sleep(time.Hour)
		if n := len(s.paths("/v1/workers")); n != 1 {
			t.Errorf("%d registrations", n)
		}
		for _, suffix := range []string{"/completed", "/drain", "/deregister"} {
			if n := len(s.paths(suffix)); n != 0 {
				t.Errorf("%d calls of %s", n, suffix)
			}
		}
		if all := s.server.Requests(); all[len(all)-1].At.After(ended) {
			t.Error("it still sends")
		}
		again := newSiteOf(t, s.server)
		again.run(untilDone)
		if err := <-again.ended; !errors.As(err, &held) || held.Remedy != "lubdub worker resume "+id {
			t.Errorf("it is started again: %v", err)
		}
		s.server.Resume(id)
		third := newSiteOf(t, s.server)
		third.run(untilDone)
		if !third.worker.Registered() {
			t.Error("it may not register though it was resumed")
		}
		_ = third.stop()
	})
}

// The default limit of 5 minutes does not apply to a task with its own limit; one that the user set does.
func TestATasksOwnLimitTakesTheDefaultsPlace(t *testing.T) {
	for _, test := range []struct {
		own  int64
		opts []worker.Option
		want time.Duration
	}{
		{0, nil, 5 * time.Minute}, {3_600_000, nil, time.Hour}, {3_600_000, []worker.Option{worker.TaskTimeout(time.Minute)}, time.Minute},
	} {
		inBubble(t, func(t *testing.T) {
			s := newSite(t, test.opts...)
			took := make(chan time.Duration, 1)
			s.run(func(ctx context.Context, _ *worker.Task) (any, error) {
				began := time.Now()
				select {
				case <-ctx.Done():
				case <-time.After(time.Hour):
				}
				took <- time.Since(began)
				return 1, nil
			})
			r := v1.CreateTaskRequest{Queue: "default", Type: "job"}
			if test.own > 0 {
				r.RunTimeoutMs = &test.own
			}
			s.server.Enqueue(r)
			if got := <-took; got != test.want {
				t.Errorf("%+v: it could run for %v", test, got)
			}
			_ = s.stop()
		})
	}
}

// A worker whose registration is refused, since an operator has taken it offline, does not register again for another call that was
// refused meanwhile.
func TestAHeldWorkerRegistersNoMore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, worker.StopWithin(time.Minute, 2*time.Minute))
		s.run(untilDone)
		time.Sleep(22 * time.Second) // the claim is answered after 30 s
		var registrations atomic.Int32
		s.server.Intercept(func(r *http.Request, _ []byte) (int, any, bool) {
			if r.URL.Path == "/v1/workers" {
				registrations.Add(1)
				time.Sleep(9 * time.Second) // the claim, and the next heartbeat, are refused meanwhile
				return http.StatusConflict, v1.Error{Error: v1.CodeWorkerHeld, Reason: "FORCED_OFFLINE"}, true
			}
			return http.StatusNotFound, v1.Error{Error: v1.CodeWorkerNotFound}, true
		})
		var held *worker.ForcedOffline
		if err := <-s.ended; !errors.As(err, &held) {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		if n := registrations.Load(); n != 1 {
			t.Errorf("%d registrations after the one that was accepted", n)
		}
	})
}
