//go:build go1.25

package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
	"github.com/lubdub-io/lubdub/sdk/go/workertest"
)

// A claim and a registration whose answers are lost are repeated, and are the same.
func TestLostAnswersLoseNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		lost := map[string]int{}
		s.server.LoseAnswers(func(r *http.Request) error {
			for _, suffix := range []string{"/workers", "/claim", "/started"} {
				if strings.HasSuffix(r.URL.Path, suffix) {
					if lost[suffix]++; lost[suffix] <= 6 { // more often than the client retries automatically
						return io.ErrUnexpectedEOF
					}
				}
			}
			return nil
		})
		id := s.enqueue()
		s.run(func(context.Context, *worker.Task) (any, error) { return 1, nil })
		time.Sleep(10 * time.Minute)
		if got := s.server.Task(id); got.State != v1.Succeeded || got.Attempt != 1 || len(lost) != 3 {
			t.Errorf("%+v; lost %v", got, lost)
		}
		ids := map[string]bool{}
		for _, r := range s.paths("/claim")[:6] {
			var claim v1.ClaimRequest
			if err := json.Unmarshal(r.Body, &claim); err != nil {
				t.Fatal(err)
			}
			ids[claim.ClaimID] = true
		}
		if len(ids) != 1 {
			t.Errorf("the claim was repeated under %d ids", len(ids))
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		if n := len(s.server.Workers()); n != 1 {
			t.Errorf("%d workers", n)
		}
	})
}

// Registrations also honour the server's Retry-After between two tries, however many it takes.
func TestARegistrationKeepsRetryAfter(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		s.server.Unavailable(40 * time.Second)
		s.run(untilDone)
		time.Sleep(10 * time.Minute)
		s.server.Up()
		time.Sleep(2 * time.Minute)
		all := s.paths("/workers")
		for i := range all[1:] {
			if pause := all[i+1].At.Sub(all[i].At); pause < 40*time.Second {
				t.Errorf("after try %d came the next one after %v", i+1, pause)
			}
		}
		if len(all) < 6 || !s.worker.Registered() {
			t.Errorf("%d tries", len(all))
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// With a strict lease handlers end when no beat was accepted for the worker's timeout; patient ones continue, and so do the beats.
func TestLeasesOfWhatIsHeld(t *testing.T) {
	for _, lease := range []client.Lease{client.Patient, client.Strict} {
		inBubble(t, func(t *testing.T) {
			server := workertest.New(t, workertest.MachineTime())
			c, err := client.New(server.URL(), append(server.Options(), client.DefaultLease(lease))...)
			if err != nil {
				t.Fatal(err)
			}
			s := &site{T: t, server: server, ended: make(chan error, 1)}
			if s.worker, err = worker.New(c, "default"); err != nil {
				t.Fatal(err)
			}
			var ended atomic.Int64 // when, in ns since the epoch
			finish := make(chan struct{})
			s.run(func(ctx context.Context, _ *worker.Task) (any, error) {
				select {
				case <-finish:
					return 1, nil
				case <-ctx.Done():
					if !errors.As(context.Cause(ctx), new(client.LeaseEnded)) {
						t.Errorf("its context ended with %v", context.Cause(ctx))
					}
					ended.Store(time.Now().UnixNano())
					return nil, ctx.Err()
				}
			})
			id := s.enqueue()
			time.Sleep(15 * time.Second)
			beats := s.paths("/heartbeat")
			last := beats[len(beats)-1].At
			s.server.Down()
			time.Sleep(3 * time.Minute)
			if at := ended.Load(); (at != 0) != (lease == client.Strict) || (at != 0 && time.Unix(0, at).Sub(last) != 30*time.Second) {
				t.Errorf("lease %d: ended %v after the last accepted beat", lease, time.Unix(0, at).Sub(last))
			}
			s.server.Up()
			time.Sleep(20 * time.Second)
			close(finish)
			time.Sleep(20 * time.Second)
			if got := s.server.Task(id); lease == client.Patient && (got.State != v1.Succeeded || got.Attempt != 1) {
				t.Errorf("%+v", got)
			}
			if err := s.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A worker that is thrown out repeatedly comes back more and more slowly.
func TestACrashLoopBacksOff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		s.server.Intercept(func(r *http.Request, _ []byte) (int, any, bool) {
			return 410, v1.Error{Error: v1.CodeWorkerOffline}, strings.HasSuffix(r.URL.Path, "/claim")
		})
		s.run(untilDone)
		time.Sleep(10 * time.Minute)
		n := len(s.server.Workers())
		if n < 5 || n > 100 {
			t.Errorf("%d registrations within 10 minutes", n)
		}
		s.server.Intercept(nil)
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// Claims that are finally refused end the worker, with the reason.
func TestARefusalForGoodEndsTheWorker(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		s.server.Intercept(func(r *http.Request, _ []byte) (int, any, bool) {
			return 403, v1.Error{Error: v1.CodeForbidden, Message: "another queue"}, strings.HasSuffix(r.URL.Path, "/claim")
		})
		s.run(untilDone)
		if err := <-s.ended; !errors.Is(err, client.ErrForbidden) || s.server.Workers()[0].Status != v1.Offline {
			t.Errorf("%v, %+v", err, s.server.Workers()[0])
		}
	})
}

// A queue that answers at once with nothing, as a paused one does, is not polled without a pause.
func TestAPausedQueueIsLeftInPeace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		s.server.Intercept(func(r *http.Request, _ []byte) (int, any, bool) {
			return 200, v1.ClaimResponse{Tasks: []v1.TaskEnvelope{}}, strings.HasSuffix(r.URL.Path, "/claim")
		})
		s.run(untilDone)
		time.Sleep(10 * time.Minute)
		if n := len(s.paths("/claim")); n < 100 || n > 600 {
			t.Errorf("%d claims within 10 minutes", n)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// One task's trace is in its handler's context.
func TestTheTraceIsInTheContext(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		s.run(func(ctx context.Context, _ *worker.Task) (any, error) { return worker.Traceparent(ctx), nil })
		id := s.server.Enqueue(v1.CreateTaskRequest{Type: "job", Traceparent: trace})
		synctest.Wait()
		if got := s.server.Task(id); string(got.Output) != fmt.Sprintf("%q", trace) || worker.Traceparent(t.Context()) != "" {
			t.Errorf("%+v", got)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// SIGTERM stops in good order, and the probe answers until then. In the machine's time, since signals and sockets know no other.
func TestSignalsAndProbe(t *testing.T) {
	server := workertest.New(t, workertest.MachineTime())
	c, err := client.New(server.URL(), server.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w, err := worker.New(c, "default", worker.Probe("127.0.0.1:0", ""))
	if err != nil {
		t.Fatal(err)
	}
	begun, finish := make(chan struct{}), make(chan struct{})
	w.Handle("job", func(ctx context.Context, _ *worker.Task) (any, error) {
		close(begun)
		<-finish
		return 1, ctx.Err()
	})
	id := server.Enqueue(v1.CreateTaskRequest{Type: "job"})
	ended := make(chan error, 1)
	go func() { ended <- w.RunUntilSignal() }()
	<-begun
	url := server.Workers()[0].Request.ProbeURL
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("the probe answers %d", res.StatusCode)
	}
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); server.Workers()[0].Status != v1.Draining; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("a minute after SIGTERM the worker does not drain")
		}
	}
	close(finish)
	if err := <-ended; err != nil || server.Task(id).State != v1.Succeeded || server.Workers()[0].Status != v1.Offline {
		t.Errorf("%v, %+v", err, server.Task(id))
	}
	if _, err := http.Get(url); err == nil {
		t.Error("the probe answers after the end")
	}
}

// While all tokens are rejected, as in a failed rotation of keys, running tasks continue, and the worker recovers afterwards.
func TestRefusedTokensEndNoWorker(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		finish := make(chan struct{})
		s.run(func(ctx context.Context, _ *worker.Task) (any, error) {
			select {
			case <-finish:
				return 1, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		})
		s.enqueue()
		time.Sleep(15 * time.Second)
		var refused atomic.Int32
		s.server.Intercept(func(*http.Request, []byte) (int, any, bool) {
			refused.Add(1)
			return 401, v1.Error{Error: v1.CodeUnauthorized}, true
		})
		time.Sleep(20 * time.Second)
		if n := s.worker.ActiveCount(); n != 1 || refused.Load() > 100 {
			t.Errorf("%d are at work after %d refusals", n, refused.Load())
		}
		s.server.Intercept(nil)
		time.Sleep(2 * time.Minute)
		close(finish)
		synctest.Wait()
		before := len(s.server.Workers())
		id := s.enqueue()
		synctest.Wait()
		if got := s.server.Task(id); got.State != v1.Succeeded || before > 2 {
			t.Errorf("%+v; %d workers", got, before)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// A worker that is thrown out while it stops does not come back, nor does it retry for ever.
func TestThrownOutWhileItStops(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, worker.StopWithin(time.Minute, 2*time.Minute))
		s.run(func(context.Context, *worker.Task) (any, error) { time.Sleep(50 * time.Second); return 1, nil })
		s.enqueue()
		synctest.Wait()
		s.worker.Close()
		synctest.Wait()
		s.server.Forget(s.worker.WorkerID())
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
		if n := len(s.paths("/heartbeat")); n > 100 || len(s.server.Workers()) != 0 {
			t.Errorf("%d beats, %d workers", n, len(s.server.Workers()))
		}
	})
}
