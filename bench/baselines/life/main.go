// Command life takes tasks with nothing to do through their whole life with the Go SDK, as bench/baselines/asynq and
// bench/baselines/bullmq do with theirs. It prints a line of JSON at the end of each phase; bench/scenarios/life.go says which there are.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
)

func main() {
	tasks := flag.Int("tasks", 20_000, "number of tasks in each phase")
	idle := flag.Int("idle", 200, "number of tasks that an idle worker gets one by one")
	_ = flag.String("redis", "", "ignored: the server knows its Redis")
	flag.Parse()
	if err := run(*tasks, *idle); err != nil {
		fmt.Fprintln(os.Stderr, "life:", err)
		os.Exit(1)
	}
}

const (
	callers     = 16
	concurrency = 32
	batch       = 100
	queue, kind = "life", "noop"
)

func run(tasks, idle int) error {
	ctx := context.Background()
	c, err := client.New("") // reads LUBDUB_URL and LUBDUB_TOKEN
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Println(`{"phase":"ready"}`)
	for _, phase := range []struct {
		name string
		each int // tasks of one call
		call func() error
	}{
		{"create", 1, func() error {
			_, err := c.CreateTask(ctx, v1.CreateTaskRequest{Queue: queue, Type: kind})
			return err
		}},
		{"batch", batch, func() error {
			items := make([]v1.CreateTasksItem, batch)
			for i := range items {
				items[i].Queue, items[i].Type = queue, kind
			}
			_, err := c.CreateTasks(ctx, items)
			return err
		}},
	} {
		if err := timed(phase.name, tasks, func() error { return parallel(tasks/phase.each, phase.call) }); err != nil {
			return err
		}
		err := timed("process after "+phase.name, tasks, func() error {
			return process(ctx, c, tasks, func() error { return nil })
		})
		if err != nil {
			return err
		}
	}
	return idleStarts(ctx, c, idle)
}

func timed(phase string, n int, do func() error) error {
	began := time.Now()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", phase, err)
	}
	fmt.Printf("{\"phase\":%q,\"n\":%d,\"seconds\":%f}\n", phase, n, time.Since(began).Seconds())
	return nil
}

// parallel makes n calls, by all callers together.
func parallel(n int, call func() error) error {
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make(chan error, callers)
	for range callers {
		all.Go(func() {
			for next.Add(1) <= int64(n) {
				if err := call(); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// process lets a worker run n tasks, and meanwhile runs during.
func process(ctx context.Context, c *client.Client, n int, during func() error, handlers ...worker.Handler) error {
	w, err := worker.New(c, queue, worker.Concurrency(concurrency), worker.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	var done atomic.Int64
	over := make(chan struct{})
	w.Handle(kind, func(ctx context.Context, t *worker.Task) (any, error) {
		defer func() {
			if done.Add(1) == int64(n) {
				close(over)
			}
		}()
		for _, h := range handlers {
			return h(ctx, t)
		}
		return nil, nil
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	if err := during(); err != nil {
		return err
	}
	select {
	case <-over:
	case err := <-ended:
		return fmt.Errorf("the worker ended: %w", err)
	}
	w.Close()
	return <-ended
}

// idleStarts measures the time from a creation to the handler's start on a worker that waits for work.
func idleStarts(ctx context.Context, c *client.Client, n int) error {
	var mu sync.Mutex
	var waits []float64
	started := make(chan struct{}, n)
	began := time.Now()
	if err := process(ctx, c, n, func() error {
		for range n {
			time.Sleep(10 * time.Millisecond)
			now, _ := json.Marshal(time.Now())
			if _, err := c.CreateTask(ctx, v1.CreateTaskRequest{Queue: queue, Type: kind, Payload: now}); err != nil {
				return err
			}
			<-started
		}
		return nil
	}, func(_ context.Context, t *worker.Task) (any, error) {
		var created time.Time
		_ = t.Payload(&created)
		mu.Lock()
		waits = append(waits, time.Since(created).Seconds()*1000)
		mu.Unlock()
		started <- struct{}{}
		return nil, nil
	}); err != nil {
		return err
	}
	slices.Sort(waits)
	fmt.Printf("{\"phase\":\"idle\",\"n\":%d,\"seconds\":%f,\"p50Ms\":%f,\"p99Ms\":%f}\n", n, time.Since(began).Seconds(),
		waits[n/2], waits[n*99/100])
	return nil
}
