//go:build go1.25

package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
	"github.com/lubdub-io/lubdub/sdk/go/workertest"
)

// ends collects the ends of attempts, as texts.
type ends struct {
	mu    sync.Mutex
	beats bool // whether a heartbeat was accepted is part of them
	all   []string
}

func (e *ends) add(end client.AttemptEnd) {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := func(d *time.Duration) string {
		if d == nil {
			return "unknown"
		}
		return d.String()
	}
	text := fmt.Sprintf("%s/%s %d: %s after %v, waited %s", end.Queue, end.Type, end.Attempt, end.Outcome, end.Duration, known(end.QueueWait))
	if f := end.FirstHeartbeat; e.beats && f != nil && *f > 0 && *f < 11*time.Second { // as often as the worker sends one
		text += ", first heartbeat sent"
	}
	if end.WillRetry {
		text += ", again"
	}
	e.all = append(e.all, text)
}

// take returns what was collected since the last call.
func (e *ends) take() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer func() { e.all = nil }()
	return strings.Join(e.all, "\n")
}

// measuredSite is a site whose worker's attempts and log are collected.
func measuredSite(t *testing.T, opts ...worker.Option) (*site, *ends, *lines) {
	t.Helper()
	e, log := &ends{}, &lines{}
	server := workertest.New(t, workertest.MachineTime())
	c, err := client.New(server.URL(), append(server.Options(), client.Measure(client.Metrics{Ended: e.add}))...)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, server: server, ended: make(chan error, 1)}
	if s.worker, err = worker.New(c, "default", append(opts, worker.Logger(slog.New(slog.NewTextHandler(log, nil))))...); err != nil {
		t.Fatal(err)
	}
	return s, e, log
}

// Each end of an attempt is reported once, with how it ended and how long it took.
func TestTheEndOfEachAttemptIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, e, log := measuredSite(t)
		e.beats = true
		slow := func(ctx context.Context, _ *worker.Task) (any, error) {
			time.Sleep(20 * time.Second)
			return nil, context.Cause(ctx)
		}
		var next worker.Handler
		s.run(func(ctx context.Context, task *worker.Task) (any, error) { return next(ctx, task) })
		for name, c := range map[string]struct {
			handler worker.Handler
			during  func(id string) // 15 s after its begin
			want    string
			logged  []string
		}{
			"succeeded": {handler: func(context.Context, *worker.Task) (any, error) { return 7, nil },
				want: "default/job 1: SUCCEEDED after 20s, waited 0s, first heartbeat sent"},
			"failed": {handler: func(context.Context, *worker.Task) (any, error) { return nil, client.Permanent(errors.New("broken")) },
				want:   "default/job 1: FAILED after 20s, waited 0s, first heartbeat sent",
				logged: []string{`level=ERROR msg="A task has failed and will not be retried" taskId=`, "type=job", "error=broken"}},
			"cancelled": {handler: slow, during: func(id string) { s.server.Cancel(id, "why") },
				want: "default/job 1: CANCELLED after 40s, waited 0s, first heartbeat sent"},
			"lost": {handler: slow, during: func(id string) { s.server.Supersede(id) },
				want:   "default/job 1: LOST after 40s, waited 0s, first heartbeat sent",
				logged: []string{"level=WARN", " is lost", "type=job"}},
		} {
			next = func(ctx context.Context, task *worker.Task) (any, error) {
				time.Sleep(20 * time.Second)
				return c.handler(ctx, task)
			}
			before := len(log.String())
			id := s.enqueue()
			time.Sleep(15 * time.Second)
			if c.during != nil {
				c.during(id)
			}
			time.Sleep(30 * time.Second)
			if got := e.take(); got != c.want {
				t.Errorf("%s: %s\nwant %s", name, got, c.want)
			}
			if lost := strings.Count(log.String()[before:], " is lost"); lost != map[string]int{"lost": 1}[name] {
				t.Errorf("%s: the log says %d times that it is lost: %s", name, lost, log.String()[before:])
			}
			for _, text := range c.logged {
				if !strings.Contains(log.String()[before:], text) {
					t.Errorf("%s: no %q in %s", name, text, log.String()[before:])
				}
			}
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// What the server answers is reported: whether the attempt failed for good, and since when the next one could be claimed. The answer to a
// repeated claim does not tell that.
func TestTheEndOfAnAttemptThatIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, e, log := measuredSite(t, worker.Concurrency(1))
		s.server.Intercept(func(r *http.Request, body []byte) (int, any, bool) {
			again := strings.HasSuffix(r.URL.Path, "/completed") && strings.Contains(string(body), "FAILED")
			if again {
				go s.server.End("fails", "") // its next attempt is another worker's
			}
			return http.StatusOK, v1.CompletedResponse{Acknowledged: true, FinalState: v1.Failed, WillRetry: true, NextAttempt: 2}, again
		})
		s.run(func(_ context.Context, task *worker.Task) (any, error) {
			time.Sleep(3 * time.Second)
			if task.ID() == "fails" {
				return nil, errors.New("broken")
			}
			if task.Attempt() == 1 {
				return nil, worker.Snooze(time.Minute)
			}
			return nil, nil
		})
		for _, id := range []string{"snoozes", "fails"} {
			s.server.Enqueue(v1.CreateTaskRequest{TaskID: id, Type: "job"})
		}
		time.Sleep(5 * time.Minute)
		if got, want := e.take(), "default/job 1: SNOOZED after 3s, waited 0s, again\n"+
			"default/job 1: FAILED after 3s, waited 3s, again\n"+
			"default/job 2: SUCCEEDED after 3s, waited 0s"; got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		for _, line := range []string{`level=INFO msg="A task is tried again" taskId=snoozes attempt=2 type=job`,
			`level=WARN msg="A task has failed and will be retried" taskId=fails attempt=1 type=job error=broken`} {
			if strings.Count(log.String(), line) != 1 {
				t.Errorf("no %q, or not once, in %s", line, log)
			}
		}
		if strings.Count(log.String(), "A task is tried again") != 1 {
			t.Errorf("the log has first attempts as tried again: %s", log)
		}
		lost := false
		s.server.LoseAnswers(func(r *http.Request) error {
			if lost || !strings.HasSuffix(r.URL.Path, "/claim") {
				return nil
			}
			lost = true
			return errors.New("cut")
		})
		s.server.Enqueue(v1.CreateTaskRequest{TaskID: "repeated", Type: "job"})
		s.server.Enqueue(v1.CreateTaskRequest{TaskID: "repeated2", Type: "job"})
		time.Sleep(time.Minute)
		if got := e.take(); !strings.Contains(got, "waited unknown") {
			t.Error(got)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// A task that is given back at a stop is reported, also while its handler continues.
func TestTheEndOfAnAttemptThatIsGivenBack(t *testing.T) {
	for name, handler := range map[string]worker.Handler{
		"its handler has stopped": untilDone,
		"its handler continues":   func(context.Context, *worker.Task) (any, error) { time.Sleep(time.Hour); return nil, nil },
	} {
		inBubble(t, func(t *testing.T) {
			s, e, _ := measuredSite(t, worker.StopWithin(5*time.Second, 8*time.Second))
			s.run(handler)
			s.enqueue()
			time.Sleep(time.Second)
			if err := s.stop(); !errors.As(err, new(*worker.Unfinished)) {
				t.Error(err)
			}
			took := map[bool]string{true: "6s", false: "9s"}[name == "its handler has stopped"]
			if got, want := e.take(), "default/job 1: RETURNED after "+took+", waited 0s"; got != want {
				t.Errorf("%s: %s\nwant %s", name, got, want)
			}
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			if got := e.take(); got != "" {
				t.Errorf("%s: reported again: %s", name, got)
			}
		})
	}
	for name, end := range map[string]func(s *site, id string) error{
		"lost": func(s *site, id string) error {
			s.server.Supersede(id)
			time.Sleep(15 * time.Second)
			return s.stop()
		},
		"taken offline": func(s *site, _ string) error {
			s.server.ForceOffline(s.worker.WorkerID())
			return <-s.ended
		},
	} {
		inBubble(t, func(t *testing.T) { // while its handler continues
			s, e, _ := measuredSite(t, worker.StopWithin(5*time.Second, 8*time.Second))
			s.run(func(context.Context, *worker.Task) (any, error) { time.Sleep(time.Hour); return nil, nil })
			id := s.enqueue()
			time.Sleep(time.Second)
			if err := end(s, id); err != nil && name == "lost" {
				t.Error(err)
			}
			if got := e.take(); !strings.HasPrefix(got, "default/job 1: LOST after ") || strings.Contains(got, "\n") {
				t.Errorf("%s: %s", name, got)
			}
			time.Sleep(2 * time.Hour)
		})
	}
	inBubble(t, func(t *testing.T) { // no server takes its completion before the hard stop
		s, e, _ := measuredSite(t, worker.StopWithin(5*time.Second, 8*time.Second))
		s.run(func(context.Context, *worker.Task) (any, error) { s.server.Down(); return nil, nil })
		s.enqueue()
		time.Sleep(time.Second)
		if err := s.stop(); !errors.As(err, new(*worker.Unfinished)) {
			t.Error(err)
		}
		if got := e.take(); got != "default/job 1: RETURNED after 0s, waited 0s" {
			t.Error(got)
		}
	})
}
