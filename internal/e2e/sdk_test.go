package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
)

// sdk is a server as users run it, and clients of it.
type sdk struct {
	*testing.T
	ctx    context.Context
	url    string
	root   string
	client *client.Client
	run    string
}

func newSDK(t *testing.T) *sdk {
	t.Helper()
	root := build(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	s := &sdk{T: t, ctx: ctx, root: root, run: "run_sdk"}
	s.url = serve(t, root, "--redis", "embedded", "--listen", "127.0.0.1:0", "--worker-heartbeat-interval", "8s")
	s.client = s.connect("admin")
	return s
}

// token makes a control token as users do.
func (s *sdk) token(role string) string {
	s.Helper()
	cmd := exec.Command(filepath.Join(s.root, "bin", "lubdub"), "token", "--role", role, "--ttl", "1h")
	cmd.Env = append(os.Environ(), signingKeys)
	token, err := cmd.Output()
	if err != nil {
		s.Fatal(err)
	}
	return strings.TrimSpace(string(token))
}

func (s *sdk) connect(role string) *client.Client {
	s.Helper()
	c, err := client.New(s.url, client.Token(s.token(role)))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(c.Close)
	return c
}

func (s *sdk) create(r v1.CreateTaskRequest) *client.Created {
	s.Helper()
	r.RunID = s.run
	made, err := s.client.CreateTask(s.ctx, r)
	if err != nil {
		s.Fatal(err)
	}
	return made
}

// await reads a task until it is as wanted.
func (s *sdk) await(id string, as func(*v1.Task) bool) *v1.Task {
	s.Helper()
	for {
		task, err := s.client.GetTask(s.ctx, id)
		if err != nil {
			s.Fatalf("task %s: %v", id, err)
		}
		if as(task) {
			return task
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-s.ctx.Done():
			s.Fatalf("task %s is still %s, attempt %d, history %+v", id, task.State, task.Attempt, task.History)
		}
	}
}

func over(t *v1.Task) bool {
	return t.State == v1.Succeeded || t.State == v1.Failed || t.State == v1.Cancelled
}

// shortLife is for how long an attempt with its own beats may be silent: less than the interval of a worker's beats, and more than a busy
// machine delays any beat.
const shortLife = 6 * time.Second

func milliseconds(n int64) *int64 { return &n }

// The worker against the server itself: what is claimed is done, lives, is cancelled, fails and is tried again as it should, and
// the worker leaves in good order.
func TestTheGoWorkerAgainstTheServer(t *testing.T) {
	t.Parallel()
	s := newSDK(t)
	w, err := worker.New(s.connect("enroll"), "default", worker.Concurrency(20), worker.Name("sdk"))
	if err != nil {
		t.Fatal(err)
	}
	lives := make(chan struct{})
	causes := make(chan error, 1)
	w.Handle("quick", func(_ context.Context, t *worker.Task) (any, error) { return t.Attempt(), t.Progress(100, "done") })
	w.Handle("lives", func(ctx context.Context, t *worker.Task) (any, error) {
		select {
		case <-lives:
			return "alive", nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
	w.Handle("cancelled", func(ctx context.Context, t *worker.Task) (any, error) {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil, &client.StoppedError{Phase: "waiting", Partial: map[string]int{"rows": 5}}
	})
	w.Handle("flaky", func(_ context.Context, t *worker.Task) (any, error) {
		if t.Attempt() == 1 {
			_ = t.Progress(40, "then it falls")
			panic("at the disco")
		}
		pct, message, _ := t.LastProgress()
		return fmt.Sprintf("%v %s", pct, message), nil
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(context.Background()) }()

	quick := slices.Repeat([]client.NewTask{{Queue: "default", Type: "quick", Options: []client.CreateOption{
		client.Set(func(r *v1.CreateTaskRequest) { r.RunID = "run_quick" })}}}, 200)
	var results sync.WaitGroup
	for task, err := range s.client.EnqueueMany(s.ctx, slices.Values(quick)) {
		if err != nil {
			t.Fatal(err)
		}
		results.Go(func() {
			var attempt int
			if err := s.client.Result(s.ctx, task.TaskID, &attempt); err != nil || attempt != 1 {
				t.Errorf("the result of %s is %d, %v", task.TaskID, attempt, err)
			}
		})
	}
	short := s.create(v1.CreateTaskRequest{Queue: "default", Type: "lives", HeartbeatIntervalMs: milliseconds(shortLife.Milliseconds() / 3),
		HeartbeatTimeoutMs: milliseconds(shortLife.Milliseconds())}).TaskID()
	long := s.create(v1.CreateTaskRequest{Queue: "default", Type: "lives"}).TaskID() // lives by it
	cancel := s.create(v1.CreateTaskRequest{Queue: "default", Type: "cancelled"}).TaskID()
	flaky := s.create(v1.CreateTaskRequest{Queue: "default", Type: "flaky",
		Retry: &v1.RetryPolicy{InitialBackoffMs: milliseconds(10)}}).TaskID()

	s.await(cancel, func(t *v1.Task) bool { return t.State == v1.Running })
	if _, err := s.client.CancelTask(s.ctx, cancel, v1.CancelRequest{Reason: "user_requested"}); err != nil {
		t.Fatal(err)
	}
	var failed *client.TaskFailed
	if err := s.client.Result(s.ctx, cancel, nil); !errors.As(err, &failed) || failed.Task.State != v1.Cancelled {
		t.Errorf("the result of a cancelled task: %v", err)
	}
	if got := s.await(cancel, over); got.State != v1.Cancelled || got.CancelledDuringPhase != "waiting" {
		t.Errorf("%+v", got)
	}
	if cause := <-causes; !errors.As(cause, new(client.Cancelled)) || !strings.Contains(cause.Error(), "user_requested") {
		t.Errorf("its context ended with %v", cause)
	}
	got := s.await(flaky, over)
	if got.State != v1.Succeeded || got.Attempt != 2 || string(got.Output) != `"40 then it falls"` ||
		!strings.Contains(string(got.History[0].Error), "at the disco") {
		t.Errorf("%+v", got)
	}
	results.Wait()
	// After twice the task's timeout.
	lastBeat := s.await(short, func(t *v1.Task) bool { return t.State == v1.Running }).LastHeartbeatAt
	s.await(short, func(t *v1.Task) bool { return over(t) || t.LastHeartbeatAt.Sub(lastBeat.Time) > 2*shortLife })
	close(lives)
	for _, id := range []string{short, long} {
		if got := s.await(id, over); got.State != v1.Succeeded || got.Attempt != 1 {
			t.Errorf("%+v", got)
		}
	}
	id := w.WorkerID()
	w.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	left, err := s.client.GetWorker(s.ctx, id)
	if err != nil || left.Status != v1.Offline || left.TotalCompleted < int64(len(quick)) || left.Name == nil || *left.Name != "sdk" {
		t.Errorf("%+v, %v", left, err)
	}
}

// The client against the server itself: pushed tasks are kept alive together, the context's cause is the reason for its end, and events
// report it.
func TestTheGoClientAgainstTheServer(t *testing.T) {
	t.Parallel()
	s := newSDK(t)
	stream := s.client.Events(client.EventQuery{RunID: s.run, Types: []string{"task.*"},
		After: v1.At(time.Now().Add(-time.Minute)).Format(v1.TimeLayout)})
	r := v1.CreateTaskRequest{HeartbeatIntervalMs: milliseconds(shortLife.Milliseconds() / 3),
		HeartbeatTimeoutMs: milliseconds(shortLife.Milliseconds())}
	var attempts []*client.Attempt
	for range 50 {
		_, a, err := s.client.Track(s.ctx, s.create(r).Envelope)
		if err != nil {
			t.Fatal(err)
		}
		attempts = append(attempts, a)
		if err := a.Progress(12.5, "é \"quoted\""); err != nil {
			t.Fatal(err)
		}
	}
	first := attempts[0]
	seen := s.await(first.TaskID(), func(t *v1.Task) bool { return len(t.Message) > 4 })
	if string(seen.ProgressPct) != "12.5" || !json.Valid(seen.Message) {
		t.Errorf("%s %s", seen.ProgressPct, seen.Message)
	}
	lastBeat := seen.LastHeartbeatAt
	s.await(first.TaskID(), func(t *v1.Task) bool { return over(t) || t.LastHeartbeatAt.Sub(lastBeat.Time) > 2*shortLife })
	if _, err := s.client.NextAttempt(s.ctx, first.TaskID(), v1.NextAttemptRequest{FromAttempt: 1}); err != nil {
		t.Fatal(err)
	}
	<-first.Context().Done()
	if by := (client.Superseded{}); !errors.As(context.Cause(first.Context()), &by) || by.By != 2 {
		t.Errorf("its context ended with %v", context.Cause(first.Context()))
	}
	first.Abandon()
	for _, a := range attempts[1:] {
		if answer, err := a.Done(1); err != nil || answer.FinalState != v1.Succeeded {
			t.Errorf("%v, %v", answer, err)
		}
	}
	ends := 0
	for e, err := range stream.All(s.ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == "task.succeeded" {
			ends++
		}
		if ends == len(attempts)-1 {
			break
		}
	}
	if _, err := s.client.GetTask(s.ctx, "missing"); !errors.Is(err, client.ErrTaskNotFound) {
		t.Errorf("%v", err)
	}
	if s.ctx.Err() != nil {
		t.Error("it took too long")
	}
}
