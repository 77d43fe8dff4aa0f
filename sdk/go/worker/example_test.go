package worker_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"testing"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
	"github.com/lubdub-io/lubdub/sdk/go/workertest"
)

// A whole worker: LUBDUB_URL is Lubdub's address, and LUBDUB_TOKEN or LUBDUB_TOKEN_FILE has the token.
func Example() {
	w, err := worker.New(nil, "default", worker.Concurrency(10))
	if err != nil {
		log.Fatal(err)
	}
	w.Handle("send_email", func(ctx context.Context, t *worker.Task) (any, error) {
		var mail struct{ To, Subject string }
		if err := t.Payload(&mail); err != nil {
			return nil, err
		}
		return nil, ctx.Err() // send it, and stop when ctx ends
	})
	if err := w.RunUntilSignal(); err != nil {
		log.Fatal(err)
	}
}

// example is a testing.TB for examples, which have none.
type example struct{ testing.TB }

func (example) Helper()                      {}
func (example) Fatal(args ...any)            { log.Fatal(args...) }
func (example) Fatalf(f string, args ...any) { log.Fatalf(f, args...) }

type resize struct{ Width int }

// A program's handlers can be tested without a server: workertest has one, whose clock the test holds. In a test, pass t where this example
// has example{}.
func ExampleHandleJSON() {
	s := workertest.New(example{})
	c, err := client.New(s.URL(), s.Options()...)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	w, err := worker.New(c, "images", worker.Logger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	if err != nil {
		log.Fatal(err)
	}
	worker.HandleJSON(w, "resize", func(ctx context.Context, in resize) (string, error) {
		return fmt.Sprintf("%d pixels", in.Width), worker.TaskOf(ctx).Progress(100, "done")
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(context.Background()) }()

	id := s.Enqueue(v1.CreateTaskRequest{Queue: "images", Type: "resize", Payload: []byte(`{"width":640}`)})
	s.Until("the image is done", func() bool { return s.Task(id).State == v1.Succeeded })
	fmt.Println(string(s.Task(id).Output))
	w.Close()
	s.Until("the worker has left", func() bool { return len(ended) == 1 })
	fmt.Println(<-ended)
	// Output:
	// "640 pixels"
	// <nil>
}
