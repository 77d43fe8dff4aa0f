package scenarios

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
	"github.com/lubdub-io/lubdub/bench/requests"
	"github.com/lubdub-io/lubdub/bench/testbed"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

const (
	polls      = 1000 // that wait alongside the beats
	slowBodies = 100  // sent a byte per second
)

// open drives beats for few tasks at a rate, while something else is under way.
func open(b *testbed.Bed, f *testbed.Fixture, round int, rate float64, variant string) report.Run {
	r, _ := b.Drive(&f.Target, report.Run{Round: round, Variant: variant},
		load.Load{Source: f.Tasks.Beats, For: b.For, PerSecond: rate, Poisson: b.Poisson})
	return r
}

// pairs drives beats at half of the top rate alone and then while another load is under way, which begins it and returns how to end it,
// and gives a bar the ratio of their p99. A few pauses of the host can cause a p99 of some seconds, also alone: only the median of many
// pairs shows the effect of the other load.
func pairs(b *testbed.Bed, f *testbed.Fixture, others ...other) {
	rate, rounds := b.HalfOfTop(f), 3*b.Rounds
	if b.Quick {
		rounds = b.Rounds
	}
	for round := 1; round <= rounds; round++ {
		for _, o := range others {
			// Each has its own run alone just before, since other load on a host changes within seconds.
			alone := open(b, f, round, rate, "before "+o.what)
			var with report.Run
			end := o.begin(round)
			err := testbed.Try(func() { with = open(b, f, round, rate, o.while+" "+o.what) })
			testbed.Check(errors.Join(err, end()))
			b.AddRound(o.bar, testbed.P99(with)/testbed.P99(alone))
		}
	}
}

// other is the load alongside beats.
type other struct {
	bar, while, what string
	begin            func(round int) (end func() error)
}

// runAlongside measures beats alone, and alongside other work of a server.
func runAlongside(b *testbed.Bed) {
	f := b.FewTasks()
	queue := requests.NewJobs(0).Queue
	workers := b.Hire(f, queue, min(polls, b.WorkerCount()))
	pairs(b, f,
		other{"beside-polls", "beside", testbed.N(len(workers)) + " long polls", func(int) func() error {
			return poll(b, &f.Target, b.Wide(&f.Target, len(workers), false), queue, workers, new(atomic.Int64))
		}},
		other{"beside-bodies", "beside", fmt.Sprintf("%d slow bodies", slowBodies), func(int) func() error {
			there, end := dawdle(b, f, slowBodies, false)
			if there < slowBodies {
				testbed.Check(errors.Join(fmt.Errorf("%d connections were open after half a minute", there), end()))
			}
			return end
		}},
		other{"beside-list", "beside", fmt.Sprintf("a list of %s tasks", testbed.N(min(testbed.Few, f.Tasks.Len()))), func(int) func() error {
			return list(b, f)
		}})
}

// poll makes workers wait for tasks that do not come; it returns when all of them wait.
func poll(b *testbed.Bed, f, on *testbed.Target, queue string, workers []*requests.Worker, refused *atomic.Int64) (end func() error) {
	polling, hangUp := context.WithCancel(b.Ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := on.Pool.Run(polling, load.Load{Source: requests.Polls(queue, workers, refused)})
		ended <- err
	}()
	end = func() error {
		hangUp() // the longest would wait for a minute more
		err := <-ended
		on.Pool.Close()
		if errors.Is(err, context.Canceled) && b.Ctx.Err() == nil {
			return nil
		}
		return err
	}
	err := testbed.Try(func() {
		b.Await(30*time.Second, 100*time.Millisecond, func() (bool, error) {
			waiting := int(b.Metrics(f)["lubdub_claims_waiting"])
			// Some of the first waits end at once, and the next ones may not have begun.
			return waiting >= len(workers)-len(workers)/50, fmt.Errorf("%d of %d polls wait at the server", waiting, len(workers))
		})
	})
	if err != nil {
		testbed.Check(errors.Join(err, end()))
	}
	return end
}

// dawdle starts n clients that never send a whole request: all send one byte per second or, with idle, every second one sends nothing more
// after its first byte. A client that is cut off reconnects. It returns how many are open, once that is all of them or after half a minute.
func dawdle(b *testbed.Bed, f *testbed.Fixture, n int, idle bool) (there int64, end func() error) {
	ctx, stop := context.WithCancel(b.Ctx)
	var open atomic.Int64
	var clients sync.WaitGroup
	for i := range n {
		clients.Go(func() {
			if idle {
				requests.Pause()
			}
			for ctx.Err() == nil && dawdleOnce(ctx, f.Address(), idle && i%2 == 0, &open) == nil {
			}
		})
	}
	for limit := time.Now().Add(30 * time.Second); open.Load() < int64(n) && time.Now().Before(limit) && ctx.Err() == nil; {
		time.Sleep(10 * time.Millisecond) // between two counts
	}
	return open.Load(), func() error { stop(); clients.Wait(); return nil }
}

// dawdleOnce keeps a connection open for as long as the server allows. It fails if it cannot be opened.
func dawdleOnce(ctx context.Context, address string, idle bool, open *atomic.Int64) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	open.Add(1)
	defer open.Add(-1)
	text := "POST /v1/heartbeats HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\n"
	if idle {
		text = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
	}
	for ; ctx.Err() == nil; text = "1" {
		if _, err := c.Write([]byte(text)); err != nil {
			return nil
		}
		next := time.After(time.Second)
		if idle {
			next = nil
		}
		select {
		case <-ctx.Done():
		case <-next:
		}
	}
	return nil
}

// list makes one client list all tasks, page by page, repeatedly.
func list(b *testbed.Bed, f *testbed.Fixture) (end func() error) {
	pool := testbed.Must(load.Dial(b.Ctx, f.Address(), 1))
	over, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		r, err := pool.Run(b.Ctx, load.Load{Source: requests.List(f.Control), Until: over})
		if err == nil && (len(r.NotOK) > 0 || r.Beats == 0) {
			err = fmt.Errorf("%d pages were listed: %s", r.Beats, report.Refusals(r.NotOK))
		}
		pool.Close()
		ended <- err
	}()
	return func() error { close(over); return <-ended }
}

const (
	schedules     = 1200 // that catch up at once
	firesOfEach   = 10   // missed by each
	scheduleQueue = "bench-schedules"
)

// runSchedules measures beats alone, and while many schedules catch up on missed fires.
func runSchedules(b *testbed.Bed) {
	f := b.FewTasks()
	testbed.Check(testbed.Each(schedules, 16, func(i int) error {
		_, err := f.API.CreateSchedule(b.Ctx, v1.CreateScheduleRequest{ScheduleID: fmt.Sprint("bench-", i), Cron: "0 0 0 * * *",
			MaxCatchup: new(firesOfEach), Task: &v1.CreateTaskRequest{Queue: scheduleQueue}})
		return err
	}))
	b.Cleanup(func() {
		_ = testbed.Each(schedules, 16, func(i int) error {
			_, err := f.API.DeleteSchedule(context.WithoutCancel(b.Ctx), fmt.Sprint("bench-", i))
			return err
		})
	})
	fired := 0
	pairs(b, f, other{"beside-schedules", "while", testbed.N(schedules) + " schedules catch up", func(round int) func() error {
		return catchUp(b, f, round, &fired)
	}})
	b.Figure("fires", "tasks that schedules created beside the beats", float64(fired), "")
}

// catchUp makes all schedules fire for past days, different ones in each round; it returns when the first have fired, while others are
// still being requested. At its end some must have fired meanwhile; it waits until none is left to fire.
func catchUp(b *testbed.Bed, f *testbed.Fixture, round int, fired *int) (end func() error) {
	till := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -firesOfEach*round)
	missed := v1.BackfillRequest{From: v1.Time{Time: till.AddDate(0, 0, -firesOfEach)}, To: v1.Time{Time: till}}
	created := func() int {
		for _, q := range testbed.Must(f.API.ListQueues(b.Ctx, "")).Queues {
			if q.Queue == scheduleQueue {
				return q.Depth
			}
		}
		return 0
	}
	await := func(n int) {
		b.Await(10*time.Minute, 10*time.Millisecond, func() (bool, error) {
			now := created()
			return now >= n, fmt.Errorf("schedules created %d of %d tasks", now, n)
		})
	}
	before := created()
	backfilled := make(chan error, 1)
	go func() {
		backfilled <- testbed.Each(schedules, 2, func(i int) error { // few at once: what is measured is the fires, not the requests for them
			_, err := f.API.BackfillSchedule(b.Ctx, fmt.Sprint("bench-", i), missed)
			return err
		})
	}()
	if err := testbed.Try(func() { await(before + 1) }); err != nil {
		testbed.Check(errors.Join(err, <-backfilled))
	}
	begun := created()
	return func() error {
		return testbed.Try(func() {
			now := created()
			*fired += now - begun
			testbed.Check(<-backfilled)
			if now == begun {
				testbed.Check(errors.New("no schedule fired beside the beats: they had caught up before"))
			}
			await(before + schedules*firesOfEach)
		})
	}
}

// slowConnections is how many connections dawdle alongside the beats.
const slowConnections = 5000

// runFlood measures beats alone, then alongside silent connections and connections that send their request a byte per second.
func runFlood(b *testbed.Bed) {
	f := b.FewTasks()
	rate := b.HalfOfTop(f)
	base := testbed.P99(open(b, f, 1, rate, "base"))
	there, end := dawdle(b, f, slowConnections, true)
	b.Cleanup(func() { _ = end() })
	flooded := testbed.P99(open(b, f, 1, rate, "beside slow connections"))
	b.Figure("slow-connections", "slow and idle connections that were open", float64(there), "")
	b.Figure("flood-p99-ratio", "p99 of beats beside them, to that without", flooded/base, "×")
}
