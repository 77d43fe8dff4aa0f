package conformance

import (
	"context"
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
)

// A Go worker that has stopped and a client that is closed leave no goroutine behind: none that waits for an answer, for a clock or for
// a task, and none of a connection.
func TestTheGoSDKLeavesNothingBehind(t *testing.T) {
	s, err := newServer(&Case{
		Mode: "worker", Worker: &Rhythm{IntervalMs: 20, TimeoutMs: 3000}, With: With{Concurrency: 4},
		Tasks: map[string]Task{"a": {}, "b": {}, "c": {}, "d": {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.http.Close()
	before := goleak.IgnoreCurrent()
	c, err := client.New(s.http.URL, client.Token(s.controlToken()))
	if err != nil {
		t.Fatal(err)
	}
	w, err := worker.New(c, "default", worker.Concurrency(4), worker.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	begun := make(chan struct{}, 4)
	w.Handle("job", func(ctx context.Context, task *worker.Task) (any, error) {
		if begun <- struct{}{}; task.ID() < "c" {
			return 1, nil
		}
		<-ctx.Done() // which the hard stop ends
		return nil, ctx.Err()
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(context.Background()) }()
	for range 4 {
		<-begun
	}
	w.Kill()
	if err := <-ended; err == nil {
		t.Error("Run has not reported what was given back")
	}
	c.Close()      // which ends its connections, and so the server's goroutines of them
	for range 20 { // each gives them a second or so
		if err = goleak.Find(before); err == nil {
			return
		}
	}
	t.Error(err)
}
