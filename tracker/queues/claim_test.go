package queues_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

func TestClaim(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		c.WantIDs(c.MustClaim("w1", 10))
		c.MustQueue("t1", "x", func(n *model.NewTask) {
			n.Payload, n.Labels = []byte(`{"to":"a"}`), map[string]string{"team": "x"}
		})
		tasks := c.MustClaim("w1", 10)
		c.WantIDs(tasks, "t1")
		e := tasks[0]
		if e.Attempt.Number != 1 || e.Task.State != model.Dispatched || e.Task.WorkerID != c.IDs["w1"] ||
			string(e.Task.Payload) != `{"to":"a"}` ||
			e.Task.Labels["team"] != "x" || e.TokenTTL != model.DefaultTokenTTL || !e.Attempt.IssuedAt.Equal(c.Store.Clock.Now()) {
			c.Fatalf("%+v %+v", e, e.Task)
		}
		c.WantIDs(c.MustClaim("w1", 10)) // only once
		c.WantState("t1", model.Dispatched, "")
		if _, err := c.Beats.Start(c.Ctx, e.Attempt, model.Report{}); err != nil {
			c.Fatal(err)
		}
		if task := c.WantState("t1", model.Running, ""); task.WorkerID != c.IDs["w1"] {
			c.Fatalf("%+v", task)
		}
		if _, err := c.Beats.Complete(c.Ctx, e.Attempt, model.Completion{Outcome: model.Succeeded}); err != nil {
			c.Fatal(err)
		}
	})
}

// A claim that starts its tasks leaves what a claim and a start leave, also when it is repeated; only the start's own time differs.
func TestAClaimThatStarts(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		start := func(r *queues.ClaimRequest) { r.Start, r.ClaimID = true, "c1" }
		limits := func(n *model.NewTask) {
			n.StartTimeout, n.RunTimeout = time.Second, time.Minute
			n.HeartbeatInterval, n.HeartbeatTimeout = 10*time.Second, 30*time.Second
		}
		c.MustQueue("t1", "x", limits)
		for range 2 {
			tasks := c.MustClaim("w1", 10, start)
			c.WantIDs(tasks, "t1")
			if e := tasks[0]; e.Task.State != model.Running || e.Attempt.Number != 1 || !e.Task.StartedAt.Equal(e.Task.DispatchedAt) {
				c.Fatalf("%+v %+v", e, e.Task)
			}
		}
		c.MustQueue("t2", "x", limits)
		if _, err := c.Beats.Start(c.Ctx, c.MustClaim("w1", 10)[0].Attempt, model.Report{}); err != nil {
			c.Fatal(err)
		}
		for _, pattern := range []string{"*:beats:30000", "*:timers", "*:held", "*:due", "*:ix"} {
			names := map[string][]string{}
			for _, key := range c.Store.Client.Keys(c.Ctx, pattern).Val() {
				for _, entry := range c.Store.Client.ZRange(c.Ctx, key, 0, -1).Val() {
					for _, id := range []string{"t1", "t2"} {
						if before, _, ok := strings.Cut(entry, id); ok {
							names[id] = append(names[id], before)
						}
					}
				}
			}
			if slices.Sort(names["t1"]); !slices.Equal(names["t1"], slices.Sorted(slices.Values(names["t2"]))) {
				c.Errorf("%s has %q of the task whose claim started it, and %q of the other", pattern, names["t1"], names["t2"])
			}
		}
		c.Advance(2 * time.Second) // the start timeout is over
		c.MustSweep()
		c.WantState("t1", model.Running, "")
		c.Advance(29 * time.Second) // and the heartbeat timeout
		c.MustSweep()
		if task := c.MustGet("t1"); task.State != model.Queued || task.History[0].Reason != model.HeartbeatTimeout {
			c.Fatalf("%+v", task)
		}
	})
}

// A task that no worker here can run never blocks those behind it, no matter how many there are.
func TestNoTypePoisoning(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1", func(n *model.NewWorker) {
			n.Types, n.Runtimes, n.Labels = []string{"good"}, []string{"python"}, map[string]string{"region": "eu", "size": "l"}
		})
		c.Hire("w2") // claims nothing
		poison := []func(*model.NewTask){
			func(n *model.NewTask) { n.Type = "bad" },
			func(n *model.NewTask) { n.Runtime = "node" },
			func(n *model.NewTask) { n.WorkerLabels = map[string]string{"region": "us"} },
			func(n *model.NewTask) { n.WorkerID = c.IDs["w2"] },
			func(n *model.NewTask) { n.Runtime, n.WorkerLabels = "python", map[string]string{"gpu": "a100"} },
		}
		for i := range 60 {
			c.MustQueue(fmt.Sprintf("bad-%02d", i), "good", poison[i%len(poison)])
		}
		for i := range 250 { // more classes than one script lists
			c.MustQueue(fmt.Sprintf("odd-%03d", i), "good", func(n *model.NewTask) { n.Runtime = fmt.Sprintf("a%03d", i) })
		}
		c.MustQueue("good-1", "good")
		c.MustQueue("good-2", "good", func(n *model.NewTask) { n.Runtime = "python" })
		c.MustQueue("good-3", "good", func(n *model.NewTask) { n.WorkerLabels = map[string]string{"region": "eu"} })
		c.MustQueue("good-4", "good", func(n *model.NewTask) { n.WorkerID = c.IDs["w1"] })
		c.MustQueue("good-5", "")
		var got []*model.Envelope
		for range 6 { // a claim returns with the first tasks that it finds
			got = append(got, c.MustClaim("w1", 10)...)
		}
		c.WantIDs(got, "good-1", "good-2", "good-3", "good-4", "good-5")
	})
}

// A flood of one type does not starve another: the types take turns, oldest task first.
func TestClaimsAreFairAcrossTypes(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1", func(n *model.NewWorker) { n.Types = []string{"flood", "rare"} })
		for i := range 40 {
			c.MustQueue(fmt.Sprintf("flood-%02d", i), "flood", trackertest.OneShard(c, 0))
			c.Store.Clock.Advance(time.Millisecond)
		}
		for i := range 3 {
			c.MustQueue(fmt.Sprintf("rare-%d", i), "rare", trackertest.OneShard(c, 0))
			c.Store.Clock.Advance(time.Millisecond)
		}
		var order []string
		for range 10 {
			order = append(order, trackertest.IDs(c.MustClaim("w1", 1))...)
		}
		var flood, rare []string
		for _, id := range order {
			if id[0] == 'f' {
				flood = append(flood, id)
			} else {
				rare = append(rare, id)
			}
		}
		// An offer to a claim that had already left is a turn too, which is not visible here.
		if len(rare) != 3 || len(flood) != 7 || !slices.IsSorted(flood) || !slices.IsSorted(rare) || slices.Index(order, rare[2]) > 7 {
			c.Fatalf("in the order %v", order)
		}
	})
}

func TestClaimsOldestFirst(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		for _, id := range []string{"t3", "t1", "t2"} {
			c.MustQueue(id, "x", trackertest.OneShard(c, 1))
			c.Store.Clock.Advance(time.Millisecond)
		}
		var order []string
		for range 3 {
			order = append(order, trackertest.IDs(c.MustClaim("w1", 1))[0][:2])
		}
		if !slices.Equal(order, []string{"t3", "t1", "t2"}) {
			c.Fatalf("%v", order)
		}
	})
}

// No matter how many claim at once, each task goes to exactly one of them, and none is left.
func TestClaimsRace(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		const workers, tasks = 8, 60
		for i := range tasks {
			c.MustQueue(fmt.Sprintf("t%02d", i), "x")
		}
		var mu sync.Mutex
		by := map[string][]string{}
		var all sync.WaitGroup
		for i := range workers {
			id := fmt.Sprintf("w%d", i)
			c.Hire(id)
			worker := c.IDs[id]
			all.Go(func() {
				for {
					got, err := c.Queues.Claim(c.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: worker, Queue: "q", Max: 1 + i%4})
					if err != nil {
						c.Error(err)
						return
					}
					if len(got) == 0 {
						return
					}
					mu.Lock()
					for _, e := range got {
						by[e.Task.ID] = append(by[e.Task.ID], worker)
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if len(by) != tasks {
			c.Errorf("%d tasks were claimed, want %d", len(by), tasks)
		}
		for id, workers := range by {
			if len(workers) != 1 || c.MustGet(id).WorkerID != workers[0] {
				c.Errorf("%s was claimed by %v and is held by %s", id, workers, c.MustGet(id).WorkerID)
			}
		}
	})
}

func TestClaimRespectsCapacity(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1", func(n *model.NewWorker) { n.MaxConcurrent = 3 })
		for i := range 5 {
			c.MustQueue(fmt.Sprintf("t%d", i), "x")
		}
		var got []*model.Envelope
		for range 5 {
			got = append(got, c.MustClaim("w1", 10)...)
		}
		if len(got) != 3 {
			c.Fatalf("a worker of 3 places holds %v", trackertest.IDs(got))
		}
		if _, err := c.Beats.Start(c.Ctx, got[0].Attempt, model.Report{}); err != nil {
			c.Fatal(err)
		}
		if _, err := c.Beats.Complete(c.Ctx, got[0].Attempt, model.Completion{Outcome: model.Succeeded}); err != nil {
			c.Fatal(err)
		}
		if more := c.MustClaim("w1", 10); len(more) != 1 {
			c.Fatalf("after one completion: %v", trackertest.IDs(more))
		}
	})
}

// The same claim again gets the same tasks, whether or not the first response arrived.
func TestClaimID(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		c.Hire("w2")
		for i := range 6 {
			c.MustQueue(fmt.Sprintf("t%d", i), "x")
		}
		first := c.MustClaim("w1", 2, named("c1"))
		again := c.MustClaim("w1", 2, named("c1"))
		c.WantIDs(again, trackertest.IDs(first)...)
		for _, e := range first {
			for _, f := range again {
				if e.Task.ID == f.Task.ID && e.Attempt.Fence != f.Attempt.Fence {
					c.Fatalf("another attempt of %s", e.Task.ID)
				}
			}
		}
		other := c.MustClaim("w1", 2, named("c2"))
		foreign := c.MustClaim("w2", 2, named("c1")) // its own claim, although with the same ID
		seen := map[string]bool{}
		for _, e := range slices.Concat(first, other, foreign) {
			if seen[e.Task.ID] {
				c.Fatalf("%s twice", e.Task.ID)
			}
			seen[e.Task.ID] = true
		}
		c.MustQueue("t9", "x")
		none := c.MustClaim("w1", 2, named("c3"))
		if len(none) == 0 {
			c.Fatal("a new claim got nothing")
		}
	})
}

// A task whose claim response was lost ends by its start timeout.
func TestStartTimeoutAfterAClaim(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		c.MustQueue("t1", "x")
		c.MustQueue("t2", "x", func(n *model.NewTask) { n.StartTimeout = 2 * time.Second })
		c.MustClaim("w1", 1)
		c.MustClaim("w1", 1)
		c.Pass(2 * time.Second)
		c.MustSweep()
		task := c.WantState("t2", model.Queued, "")
		if task.Losses != 1 || task.History[0].Reason != model.StartTimeout || task.History[0].WorkerID != c.IDs["w1"] {
			c.Fatalf("%+v", task)
		}
		c.WantState("t1", model.Dispatched, "")
		c.Pass(58 * time.Second)
		c.MustSweep()
		c.WantState("t1", model.Queued, "")
		c.Advance(2 * time.Second) // backoff
		c.MustSweep()
		var got []*model.Envelope
		for range 2 {
			got = append(got, c.MustClaim("w1", 2)...)
		}
		c.WantIDs(got, "t1", "t2")
		if got[0].Attempt.Number != 2 {
			c.Fatalf("%+v", got[0].Attempt)
		}
	})
}

func TestClaimRefusals(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		for _, name := range []string{"draining", "offline"} {
			c.Hire(name)
			c.MustQueue(name, "x", func(n *model.NewTask) { n.WorkerID = c.IDs[name] })
			c.MustClaim(name, 1) // what it holds keeps a draining worker from going OFFLINE
		}
		if _, err := c.Workers.Drain(c.Ctx, trackertest.Scope, c.IDs["draining"], workers.Drain{}); err != nil {
			c.Fatal(err)
		}
		if _, err := c.Workers.Retire(c.Ctx, trackertest.Scope, c.IDs["offline"], model.WorkerForced, ""); err != nil {
			c.Fatal(err)
		}
		for name, test := range map[string]struct {
			r    queues.ClaimRequest
			code model.Code
		}{
			"no max":        {queues.ClaimRequest{WorkerID: "w1", Queue: "q"}, model.Invalid},
			"long":          {queues.ClaimRequest{WorkerID: "w1", Queue: "q", Max: 1, Wait: 61 * time.Second}, model.Invalid},
			"empty types":   {queues.ClaimRequest{WorkerID: "w1", Queue: "q", Max: 1, Types: []string{}}, model.Invalid},
			"foreign type":  {queues.ClaimRequest{WorkerID: "w1", Queue: "q", Max: 1, Types: []string{"y"}}, model.Invalid},
			"bad claim id":  {queues.ClaimRequest{WorkerID: "w1", Queue: "q", Max: 1, ClaimID: "a/b"}, model.InvalidID},
			"another queue": {queues.ClaimRequest{WorkerID: "w1", Queue: "p", Max: 1}, queues.Forbidden},
			"draining":      {queues.ClaimRequest{WorkerID: "draining", Queue: "q", Max: 1}, workers.WorkerDraining},
			"offline":       {queues.ClaimRequest{WorkerID: "offline", Queue: "q", Max: 1}, workers.WorkerOffline},
			"unknown":       {queues.ClaimRequest{WorkerID: "w9", Queue: "q", Max: 1}, workers.WorkerNotFound},
		} {
			test.r.Scope = trackertest.Scope
			if id := c.IDs[test.r.WorkerID]; id != "" {
				test.r.WorkerID = id
			}
			_, err := c.Queues.Claim(c.Ctx, test.r)
			if got := model.CodeOf(err); got != test.code {
				c.Errorf("%s: %q, want %q (%v)", name, got, test.code, err)
			}
		}
	})
}

// Tasks that are offered to other claims do not hide those behind them, no matter how many there are.
func TestAClaimBehindManyOffers(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		c := trackertest.NewFleet(h)
		for i := range 350 {
			c.MustQueue(fmt.Sprintf("t%03d", i), "x")
		}
		for _, w := range []string{"w1", "w2"} {
			c.Hire(w)
			n, leave, err := c.Queues.HoldOffer(queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: c.IDs[w], Queue: "q", Max: 100})
			if err != nil || n != 100 {
				c.Fatalf("%s was offered %d: %v", w, n, err)
			}
			defer leave()
		}
		c.Hire("w3")
		if got := c.MustClaim("w3", 100); len(got) != 100 {
			c.Fatalf("with 150 tasks left it got %d", len(got))
		}
	}, func(o *tracker.Options) { o.Shards = 1 })
}
