//go:build go1.25

package worker_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
)

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

// A handler finds until when the server lets it go on.
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
				t.Error("it is there before the server has asked")
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
