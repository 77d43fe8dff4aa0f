// Command sdkdemo demonstrates all SDKs together, in half a minute: workers of each run tasks, one of each is killed, and the others
// finish its tasks. It exits with 1 if that did not happen.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/lubdub-io/lubdub/internal/sdkrunner"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

const (
	tasksEach  = 8
	places     = 6 // of a worker, so that both workers get some tasks
	taskTime   = 6 * time.Second
	beatsEvery = time.Second // a worker is declared dead after three times that
	most       = 50 * time.Second
)

// demo is one run.
type demo struct {
	began   time.Time
	server  *server
	client  *client.Client
	workers map[string][]*worker // by SDK; the first is the one that is killed
	queues  []string
	ids     map[string][]string // by queue
}

func main() {
	binary := flag.String("lubdub", "bin/lubdub", "the server's program")
	names := flag.String("sdks", "all", "SDKs, with commas; all: those that have a runner")
	flag.Parse()
	if err := show(*binary, *names); err != nil {
		fmt.Fprintln(os.Stderr, "demo-sdk:", err)
		os.Exit(1)
	}
}

func show(binary, names string) error {
	folder, err := os.MkdirTemp("", "lubdub-demo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	runners, err := sdkrunner.Find(names, folder)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	d := &demo{began: time.Now(), workers: map[string][]*worker{}, ids: map[string][]string{}}
	defer d.end()
	if d.server, err = startServer(binary); err != nil {
		return err
	}
	admin, err := d.server.token("admin")
	if err != nil {
		return err
	}
	enrol, err := d.server.token("enroll")
	if err != nil {
		return err
	}
	if d.client, err = client.New(d.server.url, client.Token(admin)); err != nil {
		return err
	}
	d.logf("lubdub listens on %s, with an embedded Redis; workers beat every %v", d.server.url, beatsEvery)
	go d.printEvents(ctx)
	for _, of := range runners {
		for i := range 2 {
			w, err := hire(of, fmt.Sprintf("%s-%d", of.SDK, i+1), d.server.url, enrol)
			if err != nil {
				return err
			}
			d.workers[of.SDK] = append(d.workers[of.SDK], w)
		}
		d.queues = append(d.queues, of.SDK)
	}
	return d.play(ctx)
}

// play runs the demonstration.
func (d *demo) play(ctx context.Context) error {
	if err := d.await(ctx, "all workers are there", func() (bool, error) {
		list, err := d.client.ListWorkers(ctx, client.WorkerQuery{Status: v1.Online})
		return err == nil && len(list.Workers) == 2*len(d.queues), err
	}); err != nil {
		return err
	}
	losses := 10
	for _, queue := range d.queues {
		for range tasksEach {
			task, err := d.client.Enqueue(ctx, queue, "mail", nil, client.Set(func(r *v1.CreateTaskRequest) {
				r.Retry = &v1.RetryPolicy{MaxLosses: &losses}
			}))
			if err != nil {
				return err
			}
			d.ids[queue] = append(d.ids[queue], task.TaskID)
		}
	}
	d.logf("%d tasks for each of %v; each takes %v", tasksEach, d.queues, taskTime)
	if err := d.await(ctx, "all tasks run", func() (bool, error) { return d.all(ctx, v1.Running) }); err != nil {
		return err
	}
	for _, queue := range d.queues {
		d.logf("kill -9 of %s", d.workers[queue][0].name)
		d.workers[queue][0].kill()
	}
	if err := d.await(ctx, "all tasks are done", func() (bool, error) { return d.all(ctx, v1.Succeeded) }); err != nil {
		return err
	}
	return d.summary(ctx)
}

// all reports whether all tasks are in a state.
func (d *demo) all(ctx context.Context, state v1.State) (bool, error) {
	for _, ids := range d.ids {
		for _, id := range ids {
			task, err := d.client.GetTask(ctx, id)
			if err != nil || task.State != state {
				return false, err
			}
		}
	}
	return true, nil
}

func (d *demo) await(ctx context.Context, what string, holds func() (bool, error)) error {
	for {
		ok, err := holds()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("within %v it did not come to this: %s (%w)", most, what, err)
		case <-time.After(100 * time.Millisecond): // between two polls
		}
	}
}

// summary prints what was lost, and which workers finished it.
func (d *demo) summary(ctx context.Context) error {
	fmt.Printf("\n%-12s %6s %6s %19s %22s\n", "SDK", "tasks", "done", "lost and done again", "found dead after")
	for _, queue := range d.queues {
		done, lost, after := 0, 0, time.Duration(0)
		for _, id := range d.ids[queue] {
			task, err := d.client.GetTask(ctx, id)
			if err != nil {
				return err
			}
			if task.State == v1.Succeeded {
				done++
			}
			for _, h := range task.History {
				if h.Evidence != nil {
					lost++
					after = max(after, time.Duration(h.Evidence.SilentMs)*time.Millisecond)
				}
			}
		}
		fmt.Printf("%-12s %6d %6d %19d %22v\n", queue, len(d.ids[queue]), done, lost, after)
		if done != tasksEach || lost == 0 {
			return fmt.Errorf("of %d tasks of %s %d are done, and %d were lost", tasksEach, queue, done, lost)
		}
	}
	return nil
}

func (d *demo) logf(format string, args ...any) {
	fmt.Printf("%5.1f s  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

// end stops the remaining processes.
func (d *demo) end() {
	for _, workers := range d.workers {
		for _, w := range workers {
			w.leave()
		}
	}
	if d.client != nil {
		d.client.Close()
	}
	if d.server != nil {
		d.server.stop()
	}
}
