package scenarios

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
	"github.com/lubdub-io/lubdub/bench/requests"
	"github.com/lubdub-io/lubdub/bench/testbed"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	sdkworker "github.com/lubdub-io/lubdub/sdk/go/worker"
)

// runWorkerBeat compares a worker that holds many tasks with one that holds one, and runs beats of many workers.
func runWorkerBeat(b *testbed.Bed) {
	f := b.Workers()
	n, count := b.HeldByOne(), b.WorkerCount()
	beat := func(variant string, held, connections int, workers ...*requests.Worker) testbed.Way {
		return testbed.Way{On: b.Wide(&f.Target, min(connections, b.Connections), false), Like: report.Run{Variant: variant, Tracked: held},
			Load: load.Load{Source: requests.WorkerBeats(workers...), For: b.Short()}}
	}
	holding := func(tasks int) *requests.Worker {
		jobs := b.Enqueue(f, tasks)
		w := b.Hire(f, jobs.Queue, 1)[0]
		b.Hold(f, w, jobs)
		return w
	}
	one, all := holding(1), holding(n)
	ways := []testbed.Way{
		beat("holds 1 task", 1, batchConnections, one),
		beat(fmt.Sprintf("holds %s tasks", testbed.N(n)), n, batchConnections, all),
		beat("many workers", 0, count, b.Hire(f, requests.NewJobs(0).Queue, count)...), // the capacity model reads this one
	}
	b.Warm(ways...)
	b.Turns(ways, func(runs []report.Run) { b.AddRound("worker-beat", testbed.Both(runs[1])/testbed.Both(runs[0])) })
	for i := range b.Scenario.Runs {
		b.Scenario.Runs[i].FlushBeats = nil // these are not sent in such flushes
	}
	b.Remark("The many workers are %s. Each beat carries how many tasks are active, completed and failed.", testbed.N(count))
	if n < 10_000 {
		b.Explain("worker-beat", "%s tasks", testbed.N(n))
	}
}

// A queue must last as long as the load: it has more tasks than one worker, and all of them, claim one by one in a second.
const (
	claimsOfOne = 3000
	claimsOfAll = 6000
)

// runClaims makes workers claim one task per request from a queue that was filled before.
func runClaims(b *testbed.Bed) {
	f := b.Workers()
	length := max(b.For/4, 100*time.Millisecond) // short, since the queue must be filled before
	for _, n := range []int{1, 10, 100} {
		latency := load.NewHistogram()
		var rates, server, redis []float64
		for range b.Rounds {
			jobs := b.Enqueue(f, max(n, int(float64(min(claimsOfAll, claimsOfOne*n))*length.Seconds())))
			workers := b.Hire(f, jobs.Queue, n)
			on := b.Wide(&f.Target, n, false)
			r, res := b.Drive(on, report.Run{Variant: fmt.Sprintf("claims of %d workers", n)}, load.Load{For: length,
				Source: func(i, _ int) load.Source { return requests.Claims(jobs.Queue, workers[i], 1, nil) }})
			on.Pool.Close()
			if len(res.NotOK) > 0 {
				testbed.Check(fmt.Errorf("claims were refused: %s", report.Refusals(res.NotOK)))
			}
			latency.Merge(res.Latency.Histogram)
			rates = append(rates, r.BeatsPerSecond)
			server, redis = append(server, testbed.Of(r.ServerMicros)), append(redis, testbed.Of(r.RedisMicros))
			switch n {
			case 10:
				b.AddRound("claim-latency-p99", testbed.P99(r))
			case 100:
				b.AddRound("claim-rate", r.BeatsPerSecond)
			}
		}
		who := plural(n, "worker")
		b.Figure(fmt.Sprint("claim-rate-", n), "claims of "+who, report.Median(rates), "tasks/s")
		b.Figure(fmt.Sprint("claim-server-cpu-", n), "CPU of the server for a claim of "+who, report.Median(server), "µs")
		b.Figure(fmt.Sprint("claim-redis-cpu-", n), "CPU of Redis for a claim of "+who, report.Median(redis), "µs")
		b.Distribution(fmt.Sprint("claim-latency-", n), "claim latency with "+who, latency)
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

const (
	noOpsPerSecond = 1000 // about as many as one place does
	leastNoOps     = 100
	noOpConns      = 4 // of the bare client, at most
)

// runNoOps claims, starts and completes tasks that do nothing: with a minimal client, and with a worker of the Go SDK, alternately. Both
// run in this process, whose CPU is counted.
func runNoOps(b *testbed.Bed) {
	f := b.Workers()
	for _, places := range []int{1, 10, 100} {
		cpu := func(empty func(*testbed.Bed, *testbed.Fixture, *requests.Tasks, int)) float64 {
			jobs := b.Enqueue(f, max(leastNoOps, int(noOpsPerSecond*b.Short().Seconds())))
			before := f.ReadCPU()
			empty(b, f, jobs, places)
			_, _, self := f.ReadCPU().Since(before, int64(jobs.Len()))
			return self
		}
		var bare, sdk, ratios []float64
		for range b.Rounds {
			one, other := cpu(bareNoOps), cpu(sdkNoOps)
			bare, sdk, ratios = append(bare, one), append(sdk, other), append(ratios, other/one)
			if places != 10 {
				b.AddRound(fmt.Sprintf("sdk-noop-%d", places), other/one)
			}
		}
		with := plural(places, "place")
		b.Figure(fmt.Sprint("noop-bare-cpu-", places), "CPU of the bare client for a no-op task, "+with, report.Median(bare), "µs")
		b.Figure(fmt.Sprint("noop-sdk-cpu-", places), "CPU of the Go SDK for a no-op task, "+with, report.Median(sdk), "µs")
		b.Figure(fmt.Sprint("noop-sdk-to-bare-", places), "the Go SDK to the bare client, "+with, report.Median(ratios), "×")
	}
}

// sdkNoOps makes a worker of the SDK do all jobs, so many at a time.
func sdkNoOps(b *testbed.Bed, f *testbed.Fixture, jobs *requests.Tasks, places int) {
	b.Step("a worker with %s", plural(places, "place"))
	w := testbed.Must(sdkworker.New(f.API, jobs.Queue, sdkworker.Concurrency(places), sdkworker.Logger(slog.New(slog.DiscardHandler))))
	var begun atomic.Int64
	w.Handle(requests.JobType, func(context.Context, *sdkworker.Task) (any, error) {
		if begun.Add(1) == int64(jobs.Len()) {
			w.Close() // which waits for all completions
		}
		return nil, nil
	})
	testbed.Check(w.Run(b.Ctx))
	testbed.Check(b.Ctx.Err())
	if n := begun.Load(); n != int64(jobs.Len()) {
		testbed.Check(fmt.Errorf("the worker did %d of %d tasks", n, jobs.Len()))
	}
}

// bareNoOps does them with minimal work, on as many connections as there are places, 4 at most.
func bareNoOps(b *testbed.Bed, f *testbed.Fixture, jobs *requests.Tasks, places int) {
	w := b.Hire(f, jobs.Queue, 1)[0]
	pool := b.Wide(&f.Target, min(places, noOpConns), false).Pool
	defer pool.Close()
	b.SendOn(pool, fmt.Sprintf("a bare client with %s", plural(places, "place")), jobs.Len(),
		load.Load{Source: requests.NoOps(jobs.Queue, w, places)})
}

// runPollers makes workers wait for tasks that do not come, and measures the cost compared with the deployment at rest just before:
// its background work, such as checking whether indexes are complete, varies.
func runPollers(b *testbed.Bed) {
	f := b.Workers()
	n := b.WorkerCount()
	queue := requests.NewJobs(0).Queue
	workers := b.Hire(f, queue, n)
	var restServer, restRedis, withServer, withRedis float64
	for range b.Rounds {
		on := b.Wide(&f.Target, n, false) // they stay connected while they do not poll
		b.Step("no polls for %v", b.For)
		restServer, restRedis = b.Busy(&f.Target, b.For)
		var refused atomic.Int64
		end := poll(b, &f.Target, on, queue, workers, &refused)
		var early int64
		err := testbed.Try(func() {
			b.Step("%s poll for %v, and then for %v", testbed.N(n), b.For, 2*b.For)
			b.Busy(&f.Target, b.For) // ignores the effects of the beginning
			early = refused.Load()
			withServer, withRedis = b.Busy(&f.Target, 2*b.For)
		})
		late := refused.Load() - early
		testbed.Check(errors.Join(err, end()))
		if late > 0 {
			testbed.Check(fmt.Errorf("%d polls were refused in the middle of the measurement", late))
		}
		if early > 0 {
			b.Remark("All began to poll at the same moment; %s of these first requests were refused with 503 and sent again.",
				testbed.N(int(early)))
		}
		rest, with := restServer+restRedis, withServer+withRedis
		b.AddRound("pollers", max(with-rest, 0))
		note := fmt.Sprintf("in the last round: at rest %.1f %%, with them %.1f %%", rest, with)
		if n < 1000 {
			note = fmt.Sprintf("%d pollers; %s", n, note)
		}
		b.Explain("pollers", "%s", note)
	}
	pollers := fmt.Sprintf(" with %s idle pollers, last round", testbed.N(n))
	b.Figure("rest-server", "server, all roles, at rest, last round", restServer, "% of a core")
	b.Figure("rest-redis", "Redis at rest, last round", restRedis, "% of a core")
	b.Figure("polled-server", "server"+pollers, withServer, "% of a core")
	b.Figure("polled-redis", "Redis"+pollers, withRedis, "% of a core")
}

// mortalInterval is the heartbeat interval of workers that are to die: their timeout is three times it.
const mortalInterval = time.Second

// runRecovery makes a worker that holds many tasks fall silent, round by round: all must be requeued, each once.
func runRecovery(b *testbed.Bed) {
	f := b.Deploy(0, "--worker-heartbeat-interval", mortalInterval.String())
	n := b.HeldByOne()
	took, noticed := load.NewHistogram(), []float64{}
	for range min(b.Rounds, 2) { // most of a round is waiting
		jobs := b.Enqueue(f, n)
		victim := b.Hire(f, jobs.Queue, 1)[0]
		silence := keepAlive(b, f, victim)
		err := testbed.Try(func() { b.Hold(f, victim, jobs) })
		testbed.Check(errors.Join(err, silence()))
		b.Step("waiting for the verdict on the worker")
		var w *v1.Worker
		b.Await(3*mortalInterval+30*time.Second, 50*time.Millisecond, func() (bool, error) {
			w = testbed.Must(f.API.GetWorker(b.Ctx, string(victim.ID)))
			return w.Status == v1.Offline && w.HeldCount == 0,
				fmt.Errorf("the silent worker is %s and holds %s", w.Status, plural(w.HeldCount, "task"))
		})
		died, last := w.DeregisteredAt.Time, w.DeregisteredAt.Time
		b.ReadAll(f, jobs, client.TaskQuery{Queue: jobs.Queue}, false, func(record *v1.Task) string {
			lost, times := ended(record, "WORKER_LOST")
			switch {
			case record.State != v1.Queued || lost == nil:
				return "state " + string(record.State)
			case times != 1:
				return "not taken exactly once"
			}
			took.Record(lost.EndedAt.Sub(died))
			if lost.EndedAt.After(last) {
				last = lost.EndedAt.Time
			}
			return ""
		})
		b.AddRound("recovery", last.Sub(died).Seconds())
		due := w.LastHeartbeatAt.Add(time.Duration(w.HeartbeatTimeoutMs) * time.Millisecond)
		noticed = append(noticed, testbed.Ms(died.Sub(due)))
	}
	b.Distribution("recovery", fmt.Sprintf("from the verdict on a worker until each of its %s tasks was requeued", testbed.N(n)), took)
	b.Figure("worker-detection-lag", "from the worker's last beat + its timeout to the verdict", report.Median(noticed), "ms")
	if n < 10_000 {
		b.Explain("recovery", "%s tasks", testbed.N(n))
	}
}

// keepAlive beats for a worker, several times per interval, until silence is called.
func keepAlive(b *testbed.Bed, f *testbed.Fixture, w *requests.Worker) (silence func() error) {
	pool := testbed.Must(load.Dial(b.Ctx, f.Address(), 1))
	until, done := make(chan struct{}), make(chan error, 1)
	go func() {
		r, err := pool.Run(b.Ctx, load.Load{Source: requests.WorkerBeats(w), PerSecond: 4 / mortalInterval.Seconds(), Until: until})
		if err == nil && len(r.NotOK) > 0 {
			err = fmt.Errorf("beats of a living worker were refused: %s", report.Refusals(r.NotOK))
		}
		pool.Close()
		done <- err
	}()
	return func() error { close(until); return <-done }
}
