package queues_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// await is a claim in the background with the longest wait. After OnlyWhenNotified only a notification can wake it.
func await(c *trackertest.Fleet, ctx context.Context, tr *tracker.Tracker, worker string, max int,
	change ...func(*queues.ClaimRequest)) <-chan []*model.Envelope {
	return awaitFor(c, ctx, tr, worker, max, queues.MaxClaimWait, change...)
}

func awaitFor(c *trackertest.Fleet, ctx context.Context, tr *tracker.Tracker, worker string, max int, wait time.Duration,
	change ...func(*queues.ClaimRequest)) <-chan []*model.Envelope {
	got := make(chan []*model.Envelope, 1)
	r := queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: c.IDs[worker], Queue: "q", Max: max, Wait: wait}
	for _, f := range change {
		f(&r)
	}
	go func() {
		tasks, err := tr.Queues.Claim(ctx, r)
		if err != nil {
			c.Errorf("claim of %s: %v", worker, err)
		}
		got <- tasks
	}()
	return got
}

// waiting returns when n claims wait after they learned that nothing is ready.
func waiting(c *trackertest.Fleet, n int) {
	c.Helper()
	trackertest.Until(c, func() bool { return c.Queues.WaitingClaims() == n })
}

// A waiting claim gets a task as soon as one is ready, on any replica.
func TestLongPollWakesAcrossReplicas(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		other := trackertest.NewHarness(c.TB, c.Store)
		c.Queues.OnlyWhenNotified()
		other.Queues.OnlyWhenNotified()
		c.Hire("w1")
		c.Hire("w2")
		here := await(c, c.Ctx, c.Tracker, "w1", 1)
		there := await(c, c.Ctx, other.Tracker, "w2", 1)
		waiting(c, 1)
		waiting((trackertest.NewFleet(other)), 1)
		c.MustQueue("t1", "x")
		c.MustQueue("t2", "x")
		got := trackertest.IDs(slices.Concat(<-here, <-there))
		slices.Sort(got)
		if !slices.Equal(got, []string{"t1", "t2"}) {
			c.Fatalf("%v", got)
		}
	})
}

// Of the waiting claims, the one that can run the task gets it, although others have waited longer.
func TestLongPollWakesTheOneWhoCan(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Queues.OnlyWhenNotified()
		c.Hire("w1")
		c.Hire("w2", func(n *model.NewWorker) { n.Labels = map[string]string{"gpu": "a100"} })
		ctx, cancel := context.WithCancel(c.Ctx)
		defer cancel()
		other := awaitFor(c, ctx, c.Tracker, "w1", 1, time.Minute)
		waiting(c, 1)
		for id, change := range map[string]func(*model.NewTask){
			"pinned":   func(n *model.NewTask) { n.WorkerID = c.IDs["w2"] },
			"labelled": func(n *model.NewTask) { n.WorkerLabels = map[string]string{"gpu": "a100"} },
		} {
			one := await(c, ctx, c.Tracker, "w2", 1)
			waiting(c, 2)
			c.MustQueue(id, "x", change)
			c.WantIDs(<-one, id)
		}
		cancel()
		c.WantIDs(<-other)
	})
}

// Everything that makes a task ready wakes claims: the end of a backoff, a resumed queue, a dead worker's task.
func TestLongPollWakesForEverythingThatBecomesReady(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Queues.OnlyWhenNotified()
		c.Hire("w1")
		c.Hire("w2")
		for name, ready := range map[string]func(){
			"notBefore": func() {
				c.MustQueue("later", "x", func(n *model.NewTask) { n.RunAt = c.Store.Clock.Now().Add(time.Second) })
				c.Advance(time.Second)
				c.MustSweep()
			},
			"resumed": func() {
				if _, err := c.Queues.Pause(c.Ctx, trackertest.Scope, "q", ""); err != nil {
					c.Fatal(err)
				}
				c.MustQueue("paused", "x")
				if err := c.Queues.Resume(c.Ctx, trackertest.Scope, "q"); err != nil {
					c.Fatal(err)
				}
			},
			"pinned":     func() { c.MustQueue("pinned", "x", func(n *model.NewTask) { n.WorkerID = c.IDs["w1"] }) },
			"no type":    func() { c.MustQueue("any", "") },
			"retirement": func() { retireHolder(c) },
		} {
			got := await(c, c.Ctx, c.Tracker, "w1", 1)
			waiting(c, 1)
			ready()
			if tasks := <-got; len(tasks) != 1 {
				c.Fatalf("%s: %v", name, trackertest.IDs(tasks))
			}
		}
	})
}

// retireHolder has a worker claim a task and then retires it.
func retireHolder(c *trackertest.Fleet) {
	c.Helper()
	c.Hire("leaver", func(n *model.NewWorker) { n.Labels = map[string]string{"only": "me"} })
	c.MustQueue("left", "x", func(n *model.NewTask) { n.Runtime = "" })
	if len(c.MustClaim("leaver", 1)) == 0 { // the waiting claim was faster
		return
	}
	if _, err := c.Workers.Retire(c.Ctx, trackertest.Scope, c.IDs["leaver"], model.WorkerDeregistered, ""); err != nil {
		c.Fatal(err)
	}
}

// A waiting claim ends with nothing when its wait is over, its server stops or it is cancelled, and what it was offered is free
// for others.
func TestLongPollEnds(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		ctx, cancel := context.WithCancel(c.Ctx)
		got := await(c, ctx, c.Tracker, "w1", 1)
		waiting(c, 1)
		cancel()
		if tasks := <-got; len(tasks) != 0 {
			c.Fatalf("%v", trackertest.IDs(tasks))
		}
		c.MustQueue("t1", "x")
		c.WantIDs(c.MustClaim("w1", 1), "t1")
	})
}

// Waiting claims cost nothing while nothing becomes ready for them, and tasks that they cannot run wake none of them.
func TestIdleLongPollsDoNotQueryRedis(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		ctx, cancel := context.WithCancel(c.Ctx)
		defer cancel()
		c.Queues.OnlyWhenNotified()
		c.Hire("first")
		first := await(c, ctx, c.Tracker, "first", 1)
		waiting(c, 1)
		c.MustQueue("t0", "x")
		<-first // so the subscription is active
		const n = 50
		var all []<-chan []*model.Envelope
		for i := range n {
			name := fmt.Sprintf("w%02d", i)
			c.Hire(name)
			all = append(all, awaitFor(c, ctx, c.Tracker, name, 1, time.Minute))
		}
		waiting(c, n)
		before := c.Queues.Reads()
		c.Hire("late")
		late, leave := context.WithCancel(ctx)
		again := awaitFor(c, late, c.Tracker, "late", 1, time.Minute)
		waiting(c, n+1)
		leave()
		if tasks := <-again; len(tasks) != 0 {
			c.Errorf("an empty queue gave %d tasks", len(tasks))
		}
		if reads := c.Queues.Reads() - before; reads != 0 {
			c.Errorf("%d looks for one claim more in a queue that is known to be empty", reads)
		}
		for i := range 20 {
			c.MustQueue(fmt.Sprintf("other-%d", i), "x", func(n *model.NewTask) { n.Queue = "another" })
		}
		if reads := c.Queues.Reads() - before; reads != 0 {
			c.Errorf("%d looks at a queue without waiting claims", reads)
		}
		c.MustQueue("t1", "x")
		var got []*model.Envelope
		trackertest.Until(c, func() bool {
			for _, one := range all {
				select {
				case tasks := <-one:
					got = append(got, tasks...)
				default:
				}
			}
			return len(got) > 0
		})
		c.WantIDs(got, "t1")
		if reads := c.Queues.Reads() - before; reads > 4 {
			c.Errorf("%d looks to wake one of %d claims", reads, n)
		}
		cancel()
	})
}

// A paused queue accepts tasks and hands none out, and its view shows that it is paused.
func TestPausedQueuesAssignNoTasks(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		c.MustQueue("t1", "x")
		for range 2 {
			if _, err := c.Queues.Pause(c.Ctx, trackertest.Scope, "q", ""); err != nil {
				c.Fatal(err)
			}
		}
		c.WantIDs(c.MustClaim("w1", 1))
		c.MustQueue("t2", "x")
		queues, err := c.Queues.List(c.Ctx, trackertest.Scope)
		if err != nil || len(queues) != 1 || !queues[0].Paused || queues[0].Depth() != 2 {
			c.Fatalf("%+v %v", queues, err)
		}
		if err := c.Queues.Resume(c.Ctx, trackertest.Scope, "q"); err != nil {
			c.Fatal(err)
		}
		got := c.MustClaim("w1", 2)
		c.WantIDs(append(got, c.MustClaim("w1", 2)...), "t1", "t2")
	})
}

// The list of queues shows a type with waiting tasks that no worker can run.
func TestQueues(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		c.Hire("w2")
		if _, err := c.Workers.Retire(c.Ctx, trackertest.Scope, c.IDs["w2"], model.WorkerDeregistered, ""); err != nil {
			c.Fatal(err)
		}
		c.MustQueue("old", "x")
		c.Store.Clock.Advance(3 * time.Second)
		c.MustQueue("new", "x")
		c.MustQueue("picky", "x", func(n *model.NewTask) { n.WorkerLabels = map[string]string{"gpu": "a100"} })
		c.MustQueue("odd", "y")
		c.MustQueue("elsewhere", "x", func(n *model.NewTask) { n.Queue = "p" })
		c.MustQueue("later", "x", func(n *model.NewTask) { n.RunAt = c.Store.Clock.Now().Add(time.Hour) })
		list, err := c.Queues.List(c.Ctx, trackertest.Scope)
		if err != nil || len(list) != 2 || list[0].Name != "p" || list[1].Name != "q" {
			c.Fatalf("%+v %v", list, err)
		}
		q := list[1]
		if q.Depth() != 4 || q.OldestWait() != 3*time.Second || q.Workers[model.Online] != 1 || q.Workers[model.Offline] != 1 || q.Paused {
			c.Fatalf("%+v", q)
		}
		want := []queues.QueueKind{{Type: "x", Depth: 3, Unrunnable: 1, OldestWait: 3 * time.Second}, {Type: "y", Depth: 1, Unrunnable: 1}}
		if !slices.Equal(q.Kinds, want) {
			c.Fatalf("%+v", q.Kinds)
		}
		if k := list[0].Kinds; len(k) != 1 || k[0].Unrunnable != 1 {
			c.Fatalf("%+v", k)
		}
		elsewhere, err := c.Queues.List(c.Ctx, model.Scope{Tenant: "acme", Workspace: "test"})
		if err != nil || len(elsewhere) != 0 {
			c.Fatalf("%+v %v", elsewhere, err)
		}
	})
}
