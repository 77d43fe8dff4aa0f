package tracker_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// await is a claim in the background that waits for less than it takes until a room looks by itself: what it gets it was
// woken for.
func (c *crew) await(ctx context.Context, tr *tracker.Tracker, worker string, max int, change ...func(*tracker.ClaimRequest)) <-chan []*tracker.Envelope {
	return c.awaitFor(ctx, tr, worker, max, 4*time.Second, change...)
}

func (c *crew) awaitFor(ctx context.Context, tr *tracker.Tracker, worker string, max int, wait time.Duration, change ...func(*tracker.ClaimRequest)) <-chan []*tracker.Envelope {
	got := make(chan []*tracker.Envelope, 1)
	r := tracker.ClaimRequest{Scope: scope, WorkerID: c.ids[worker], Queue: "q", Max: max, Wait: wait}
	for _, f := range change {
		f(&r)
	}
	go func() {
		tasks, err := tr.Claim(ctx, r)
		if err != nil {
			c.Errorf("claim of %s: %v", worker, err)
		}
		got <- tasks
	}()
	return got
}

// waiting returns when n claims wait, having been told that there is nothing.
func (c *crew) waiting(n int) {
	for c.WaitingClaims() != n {
		runtime.Gosched() // until the claims' goroutines have run
	}
}

// A claim that waits gets a task as soon as there is one, on whichever replica it waits.
func TestLongPollWakesAcrossReplicas(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		other := newHarness(c.TB, c.store)
		c.hire("w1")
		c.hire("w2")
		here := c.await(c.ctx, c.Tracker, "w1", 1)
		there := c.await(c.ctx, other.Tracker, "w2", 1)
		c.waiting(1)
		(&crew{other, nil}).waiting(1)
		c.queue("t1", "x")
		c.queue("t2", "x")
		got := ids(slices.Concat(<-here, <-there))
		slices.Sort(got)
		if !slices.Equal(got, []string{"t1", "t2"}) {
			c.Fatalf("%v", got)
		}
	})
}

// Of those who wait the one who can run it gets it, though others wait longer.
func TestLongPollWakesTheOneWhoCan(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		c.hire("w2", func(n *tracker.NewWorker) { n.Labels = map[string]string{"gpu": "a100"} })
		ctx, cancel := context.WithCancel(c.ctx)
		defer cancel()
		other := c.awaitFor(ctx, c.Tracker, "w1", 1, time.Minute)
		c.waiting(1)
		for id, change := range map[string]func(*tracker.NewTask){
			"pinned":   func(n *tracker.NewTask) { n.WorkerID = c.ids["w2"] },
			"labelled": func(n *tracker.NewTask) { n.WorkerLabels = map[string]string{"gpu": "a100"} },
		} {
			one := c.await(ctx, c.Tracker, "w2", 1)
			c.waiting(2)
			c.queue(id, "x", change)
			c.wantIDs(<-one, id)
		}
		cancel()
		c.wantIDs(<-other)
	})
}

// What becomes ready wakes as well: a backoff that is over, a queue that goes on, a dead worker's task.
func TestLongPollWakesForEverythingThatBecomesReady(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		c.hire("w2")
		for name, ready := range map[string]func(){
			"notBefore": func() {
				c.queue("later", "x", func(n *tracker.NewTask) { n.NotBefore = c.store.Clock.Now().Add(time.Second) })
				c.advance(time.Second)
				c.sweep()
			},
			"resumed": func() {
				if _, err := c.PauseQueue(c.ctx, scope, "q"); err != nil {
					c.Fatal(err)
				}
				c.queue("paused", "x")
				if err := c.ResumeQueue(c.ctx, scope, "q"); err != nil {
					c.Fatal(err)
				}
			},
			"pinned":     func() { c.queue("pinned", "x", func(n *tracker.NewTask) { n.WorkerID = c.ids["w1"] }) },
			"no type":    func() { c.queue("any", "") },
			"retirement": func() { c.retireHolder() },
		} {
			got := c.await(c.ctx, c.Tracker, "w1", 1)
			c.waiting(1)
			ready()
			if tasks := <-got; len(tasks) != 1 {
				c.Fatalf("%s: %v", name, ids(tasks))
			}
		}
	})
}

// retireHolder has a worker claim a task and leave.
func (c *crew) retireHolder() {
	c.Helper()
	c.hire("leaver", func(n *tracker.NewWorker) { n.Labels = map[string]string{"only": "me"} })
	c.queue("left", "x", func(n *tracker.NewTask) { n.Runtime = "" })
	if len(c.claim("leaver", 1)) == 0 { // the one who waits was faster
		return
	}
	if _, err := c.RetireWorker(c.ctx, scope, c.ids["leaver"], tracker.WorkerDeregistered, ""); err != nil {
		c.Fatal(err)
	}
}

// A claim that waits leaves with nothing when its wait is over, its server stops or it is asked to, and what it was
// offered meanwhile is free for others.
func TestLongPollEnds(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		ctx, cancel := context.WithCancel(c.ctx)
		got := c.await(ctx, c.Tracker, "w1", 1)
		c.waiting(1)
		cancel()
		if tasks := <-got; len(tasks) != 0 {
			c.Fatalf("%v", ids(tasks))
		}
		c.queue("t1", "x")
		c.wantIDs(c.claim("w1", 1), "t1")
	})
}

// Idle claims cost nothing while nothing becomes ready for them, and what they cannot run wakes none of them.
func TestIdleLongPollsDoNotAskRedis(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		ctx, cancel := context.WithCancel(c.ctx)
		defer cancel()
		c.hire("first")
		first := c.await(ctx, c.Tracker, "first", 1)
		c.waiting(1)
		c.queue("t0", "x")
		<-first // so the subscription stands
		const n = 50
		var all []<-chan []*tracker.Envelope
		for i := range n {
			name := fmt.Sprintf("w%02d", i)
			c.hire(name)
			all = append(all, c.awaitFor(ctx, c.Tracker, name, 1, time.Minute))
		}
		c.waiting(n)
		before := c.Looks()
		c.hire("late")
		late, leave := context.WithCancel(ctx)
		again := c.awaitFor(late, c.Tracker, "late", 1, time.Minute)
		c.waiting(n + 1)
		leave()
		if tasks := <-again; len(tasks) != 0 {
			c.Errorf("an empty queue gave %d tasks", len(tasks))
		}
		if looks := c.Looks() - before; looks != 0 {
			c.Errorf("%d looks for one claim more in a queue that is known to be empty", looks)
		}
		for i := range 20 {
			c.queue(fmt.Sprintf("other-%d", i), "x", func(n *tracker.NewTask) { n.Queue = "another" })
		}
		if looks := c.Looks() - before; looks != 0 {
			c.Errorf("%d looks for a queue that nobody waits in", looks)
		}
		c.queue("t1", "x")
		var got []*tracker.Envelope
		for len(got) == 0 {
			for _, one := range all {
				select {
				case tasks := <-one:
					got = append(got, tasks...)
				default:
				}
			}
		}
		c.wantIDs(got, "t1")
		if looks := c.Looks() - before; looks > 4 {
			c.Errorf("%d looks to wake one of %d claims", looks, n)
		}
		cancel()
	})
}

// A paused queue takes tasks and hands none out; what it shows says so.
func TestPausedQueuesHandNothingOut(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		c.queue("t1", "x")
		for range 2 {
			if _, err := c.PauseQueue(c.ctx, scope, "q"); err != nil {
				c.Fatal(err)
			}
		}
		c.wantIDs(c.claim("w1", 1))
		c.queue("t2", "x")
		queues, err := c.Queues(c.ctx, scope)
		if err != nil || len(queues) != 1 || !queues[0].Paused || queues[0].Depth() != 2 {
			c.Fatalf("%+v %v", queues, err)
		}
		if err := c.ResumeQueue(c.ctx, scope, "q"); err != nil {
			c.Fatal(err)
		}
		got := c.claim("w1", 2)
		c.wantIDs(append(got, c.claim("w1", 2)...), "t1", "t2")
	})
}

// A type with work and no worker that can run it is shown.
func TestQueues(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		c.hire("w2")
		if _, err := c.RetireWorker(c.ctx, scope, c.ids["w2"], tracker.WorkerDeregistered, ""); err != nil {
			c.Fatal(err)
		}
		c.queue("old", "x")
		c.store.Clock.Advance(3 * time.Second)
		c.queue("new", "x")
		c.queue("picky", "x", func(n *tracker.NewTask) { n.WorkerLabels = map[string]string{"gpu": "a100"} })
		c.queue("odd", "y")
		c.queue("elsewhere", "x", func(n *tracker.NewTask) { n.Queue = "p" })
		c.queue("later", "x", func(n *tracker.NewTask) { n.NotBefore = c.store.Clock.Now().Add(time.Hour) })
		queues, err := c.Queues(c.ctx, scope)
		if err != nil || len(queues) != 2 || queues[0].Name != "p" || queues[1].Name != "q" {
			c.Fatalf("%+v %v", queues, err)
		}
		q := queues[1]
		if q.Depth() != 4 || q.OldestWait() != 3*time.Second || q.Workers[tracker.Online] != 1 || q.Workers[tracker.Offline] != 1 || q.Paused {
			c.Fatalf("%+v", q)
		}
		want := []tracker.QueueKind{{Type: "x", Depth: 3, Unrunnable: 1, OldestWait: 3 * time.Second}, {Type: "y", Depth: 1, Unrunnable: 1}}
		if !slices.Equal(q.Kinds, want) {
			c.Fatalf("%+v", q.Kinds)
		}
		if k := queues[0].Kinds; len(k) != 1 || k[0].Unrunnable != 1 {
			c.Fatalf("%+v", k)
		}
		elsewhere, err := c.Queues(c.ctx, tracker.Scope{Tenant: "acme", Workspace: "test"})
		if err != nil || len(elsewhere) != 0 {
			c.Fatalf("%+v %v", elsewhere, err)
		}
	})
}
