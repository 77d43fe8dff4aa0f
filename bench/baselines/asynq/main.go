// Command asynq takes tasks with nothing to do through their whole life with asynq, as bench/baselines/life does with Lubdub's Go SDK.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

const (
	callers     = 16
	concurrency = 32
)

func main() {
	tasks := flag.Int("tasks", 20_000, "number of tasks in each phase")
	_ = flag.Int("idle", 0, "ignored: an idle asynq polls about once a second")
	redis := flag.String("redis", "127.0.0.1:6379", "address of Redis")
	flag.Parse()
	if err := run(*tasks, *redis); err != nil {
		fmt.Fprintln(os.Stderr, "asynq:", err)
		os.Exit(1)
	}
}

func run(tasks int, redis string) error {
	on := asynq.RedisClientOpt{Addr: redis, PoolSize: callers + concurrency}
	c := asynq.NewClient(on)
	defer c.Close()
	fmt.Println(`{"phase":"ready"}`)
	began := time.Now()
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make(chan error, callers)
	for range callers {
		all.Go(func() {
			for next.Add(1) <= int64(tasks) {
				if _, err := c.Enqueue(asynq.NewTask("noop", nil)); err != nil {
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
	}
	report("create", tasks, began)
	began = time.Now()
	over := make(chan struct{})
	var done atomic.Int64
	s := asynq.NewServer(on, asynq.Config{Concurrency: concurrency, LogLevel: asynq.FatalLevel})
	if err := s.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		if done.Add(1) == int64(tasks) {
			close(over)
		}
		return nil
	})); err != nil {
		return err
	}
	<-over
	report("process after create", tasks, began)
	s.Shutdown()
	return nil
}

func report(phase string, n int, began time.Time) {
	fmt.Printf("{\"phase\":%q,\"n\":%d,\"seconds\":%f}\n", phase, n, time.Since(began).Seconds())
}
