package workertest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
	"github.com/lubdub-io/lubdub/sdk/go/workertest"
)

// With the clock in hand an outage of minutes takes a moment.
func TestTheClockIsInHand(t *testing.T) {
	s := workertest.New(t)
	c, err := client.New(s.URL(), s.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w, err := worker.New(c, "default", worker.TaskTimeout(0))
	if err != nil {
		t.Fatal(err)
	}
	finish := make(chan struct{})
	w.Handle("job", func(ctx context.Context, t *worker.Task) (any, error) {
		select {
		case <-finish:
			return 1, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(t.Context()) }()
	began := s.Now()
	id := s.Enqueue(v1.CreateTaskRequest{Type: "job"})
	s.Until("it runs and sends beats", func() bool { return s.Task(id).State == v1.Running && s.Workers()[0].Beats >= 3 })
	s.Down()
	down := s.Now()
	s.Until("three minutes have passed", func() bool { return s.Now().Sub(down) > 3*time.Minute })
	s.Up()
	beats := s.Workers()[0].Beats
	s.Until("it beats again", func() bool { return s.Workers()[0].Beats > beats })
	close(finish)
	s.Until("it is done", func() bool { return s.Task(id).State == v1.Succeeded })
	w.Close()
	s.Until("the worker has left", func() bool { return len(ended) == 1 })
	if err := <-ended; err != nil || s.Task(id).Lost != 0 || len(s.Workers()) != 1 || s.Now().Sub(began) < 3*time.Minute {
		t.Errorf("%v after %v: %+v, %+v", err, s.Now().Sub(began), s.Task(id), s.Workers())
	}
}

// Silence is found as the real server finds it.
func TestSilenceIsFound(t *testing.T) {
	s := workertest.New(t)
	c, err := client.New(s.URL(), s.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	e := s.Push(v1.CreateTaskRequest{})
	ctx, a, err := c.Track(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	s.Until("it sends a beat", func() bool { return s.Task(e.TaskID).Beats == 1 })
	s.Jump(91 * time.Second) // the machine sleeps
	s.Until("the attempt is over", func() bool { return ctx.Err() != nil })
	if expired := new(client.Expired); !errors.As(context.Cause(ctx), expired) || expired.Reason != "HEARTBEAT_TIMEOUT" {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
	a.Abandon()
	if got := s.Task(e.TaskID); got.State != v1.Failed || got.Lost != 1 {
		t.Errorf("%+v", got)
	}
}

// A failed task is retried by its policy, or after the delay that its handler asks for.
func TestFailuresAreRetried(t *testing.T) {
	twice, once := 2, 1
	for name, test := range map[string]struct {
		policy *v1.RetryPolicy
		err    error
		delays []time.Duration // before each further attempt
	}{
		"by default":      {nil, errors.New("no"), []time.Duration{time.Second, 2 * time.Second}},
		"its policy":      {&v1.RetryPolicy{MaxAttempts: &twice}, errors.New("no"), []time.Duration{time.Second}},
		"one attempt":     {&v1.RetryPolicy{MaxAttempts: &once}, errors.New("no"), nil},
		"after a delay":   {&v1.RetryPolicy{MaxAttempts: &twice}, worker.RetryAfter(time.Minute, errors.New("no")), []time.Duration{time.Minute}},
		"a permanent one": {nil, worker.Permanent(errors.New("no")), nil},
		"a snooze is not an attempt": {&v1.RetryPolicy{MaxAttempts: &once}, worker.Snooze(time.Minute),
			[]time.Duration{time.Minute, time.Minute, time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			s := workertest.New(t)
			c, err := client.New(s.URL(), s.Options()...)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			w, err := worker.New(c, "default")
			if err != nil {
				t.Fatal(err)
			}
			attempts := make(chan time.Time, 10)
			w.Handle("job", func(context.Context, *worker.Task) (any, error) { attempts <- s.Now(); return nil, test.err })
			ended := make(chan error, 1)
			go func() { ended <- w.Run(t.Context()) }()
			id := s.Enqueue(v1.CreateTaskRequest{Type: "job", Retry: test.policy})
			s.Until("all attempts have run", func() bool { return len(attempts) > len(test.delays) })
			last := <-attempts
			for _, want := range test.delays {
				next := <-attempts
				if got := next.Sub(last); got < want || got > want+2*time.Second { // the clock moves in steps of a second
					t.Errorf("an attempt came after %v, not %v", got, want)
				}
				last = next
			}
			if name != "a snooze is not an attempt" {
				s.Until("it has failed", func() bool { return s.Task(id).State == v1.Failed })
			}
			w.Close()
			s.Until("the worker has left", func() bool { return len(ended) == 1 })
		})
	}
}
