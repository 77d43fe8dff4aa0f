package testbed

import (
	"context"
	"fmt"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
	"github.com/lubdub-io/lubdub/bench/requests"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// fillConnections is small: each has a whole batch under way, which must be stored in Redis within a second.
const fillConnections = 4

// Send sends the requests of sources on new connections, and checks that all n beats were accepted. what describes the action: "creating
// tasks".
func (b *Bed) Send(f *Fixture, what string, n int, l load.Load) load.Result {
	pool := Must(load.Dial(b.Ctx, f.Address(), fillConnections))
	defer pool.Close()
	return b.SendOn(pool, what, n, l)
}

// SendOn is Send on existing connections.
func (b *Bed) SendOn(pool load.Generator, what string, n int, l load.Load) load.Result {
	b.Step("%s (%s)", what, N(n))
	r := Must(pool.Run(b.Ctx, l))
	Check(all(r.Tally, n, what))
	return r
}

// all returns an error unless all n were accepted.
func all(r load.Tally, n int, what string) error {
	if r.Beats == int64(n) {
		return nil
	}
	return fmt.Errorf("%s: %d of %d succeeded: %s", what, r.Beats, n, report.Refusals(r.NotOK))
}

// nearly allows one in twenty to be missing, and notes it: filling a store at full speed may overload it for a moment, and slightly fewer
// than a million tasks are as good.
func (b *Bed) nearly(r load.Tally, n int, what string) {
	err := all(r, n, what)
	if err != nil && r.Beats >= int64(n-n/20) {
		b.Note("%v", err)
		return
	}
	Check(err)
}

// Populate creates tasks in batches and starts them by their first beats, in batches too.
func (b *Bed) Populate(f *Fixture, t *requests.Tasks) (create, start load.Result) {
	b.Step("creating tasks (%s)", N(t.Len()))
	pool := Must(load.Dial(b.Ctx, f.Address(), fillConnections))
	defer pool.Close()
	for left := int64(t.Len()); ; b.Sleep(time.Second) { // repeats those that were refused, after the pause in Retry-After
		r := Must(pool.Run(b.Ctx, load.Load{Source: t.Create(f.Control)}))
		create.Elapsed += r.Elapsed
		create.Beats += r.Beats
		create.NotOK = r.NotOK // those of the last attempt remain
		if left -= r.Beats; left == 0 || r.Beats == 0 {
			break
		}
	}
	b.nearly(create.Tally, t.Len(), "creating tasks")
	t.DropRefused()
	b.Step("first beats (%s)", N(t.Len()))
	var err error
	for try := range 3 { // until every task runs; a beat may be repeated
		r := Must(pool.Run(b.Ctx, load.Load{Source: t.Batches(requests.BatchSize, true, true)}))
		if try == 0 {
			start = r
		}
		if err = all(r.Tally, t.Len(), "first beats"); err == nil {
			break
		}
	}
	Check(err)
	f.Tracked += t.Len()
	return create, start
}

// Few is the number of tracked tasks if it does not matter.
const Few = 10_000

// patient is the heartbeat interval of workers of shared deployments: none of them may time out there.
var patient = []string{"--worker-heartbeat-interval", time.Hour.String()}

// FewTasks returns the deployment with few tasks.
func (b *Bed) FewTasks() *Fixture {
	return b.few.get(b, func() *Fixture {
		n := max(min(Few, b.Tracked), b.Connections)
		f := b.Deploy(n, patient...)
		f.Tasks = requests.NewQuiet(n)
		if b.URL != "" {
			b.Cleanup(func() { b.complete(f) })
		}
		b.Populate(f, f.Tasks)
		return f
	})
}

// complete ends the tasks on a deployment that continues without the benchmark. It also runs after an interrupt.
func (b *Bed) complete(f *Fixture) {
	ctx := b.Ctx
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	b.Ctx = limited
	defer func() { b.Ctx = ctx }()
	if err := Try(func() { b.Send(f, "completing the tasks", f.Tasks.Len(), load.Load{Source: f.Tasks.Complete}) }); err != nil {
		b.Note("the benchmark's tasks, or some of them, were left running: %v", err)
	}
}

// ManyTasks returns the deployment with many tasks.
func (b *Bed) ManyTasks() *Fixture {
	return b.many.get(b, func() *Fixture {
		f := b.Deploy(b.Tracked)
		before := Must(f.Redis.UsedMemory(b.Ctx))
		f.Tasks = requests.NewQuiet(b.Tracked)
		b.Filled.Create, b.Filled.Start = b.Populate(f, f.Tasks)
		b.Filled.BytesPerTask = float64(Must(f.Redis.UsedMemory(b.Ctx))-before) / float64(f.Tasks.Len())
		return f
	})
}

// Workers returns the deployment for workers and their queues.
func (b *Bed) Workers() *Fixture {
	return b.workers.get(b, func() *Fixture { return b.Deploy(0, patient...) })
}

// Hire registers n workers of a queue.
func (b *Bed) Hire(f *Fixture, queue string, n int) []*requests.Worker {
	b.Step("registering workers (%s)", N(n))
	workers := make([]*requests.Worker, n)
	Check(Each(n, 16, func(i int) error {
		r, err := f.API.RegisterWorker(b.Ctx, v1.RegisterWorkerRequest{Queue: queue, Types: []string{requests.JobType},
			MaxConcurrent: new(1_000_000)})
		if err == nil {
			workers[i] = &requests.Worker{ID: []byte(r.WorkerID), Token: []byte(r.WorkerToken)}
		}
		return err
	}))
	return workers
}

// Enqueue creates n tasks in a new queue.
func (b *Bed) Enqueue(f *Fixture, n int) *requests.Tasks {
	jobs := requests.NewJobs(n)
	b.Send(f, "creating tasks in a queue", n, load.Load{Source: jobs.Create(f.Control)})
	return jobs
}

// Hold makes one worker claim all jobs and start them.
func (b *Bed) Hold(f *Fixture, w *requests.Worker, jobs *requests.Tasks) {
	b.Send(f, "claiming them for one worker", jobs.Len(), load.Load{Source: func(int, int) load.Source {
		return requests.Claims(jobs.Queue, w, requests.MostAClaim, jobs)
	}})
	b.Send(f, "first beats", jobs.Len(), load.Load{Source: jobs.Batches(requests.BatchSize, false, true)})
}

// ReadAll reads the records of all tasks, which a query finds. check evaluates one record, and returns what is wrong with it; empty:
// nothing. None may be wrong or, if most is enough, one in twenty, which is noted.
func (b *Bed) ReadAll(f *Fixture, t *requests.Tasks, q client.TaskQuery, most bool, check func(record *v1.Task) (wrong string)) {
	const what = "reading the records"
	b.Step(what)
	var r load.Tally
	for record, err := range f.API.Tasks(b.Ctx, q) {
		Check(err)
		if !t.Has(record.TaskID) {
			continue
		}
		if wrong := check(&record); wrong != "" {
			r.Refused(wrong, 1)
		} else {
			r.Beats++
		}
	}
	if most {
		b.nearly(r, t.Len(), what)
	} else {
		Check(all(r, t.Len(), what))
	}
}
