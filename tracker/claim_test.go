package tracker_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// crew is a harness with workers that claim.
type crew struct {
	*harness
	ids map[string]string // worker ids by the names that a test gives
}

func claims(t *testing.T, test func(c *crew)) {
	t.Helper()
	contract(t, func(h *harness) { test(&crew{h, map[string]string{}}) })
}

// hire registers a worker of the queue q on a machine of its own.
func (c *crew) hire(name string, change ...func(*tracker.NewWorker)) {
	c.Helper()
	r := c.register(append([]func(*tracker.NewWorker){func(n *tracker.NewWorker) {
		n.Queue, n.Types, n.MachineID, n.MaxConcurrent = "q", []string{"x"}, "host-"+name, 100
	}}, change...)...)
	c.ids[name] = r.WorkerID
}

// pass lets time pass while all workers beat.
func (c *crew) pass(d time.Duration) {
	c.Helper()
	for ; d > 0; d -= 5 * time.Second {
		for _, id := range c.ids {
			c.beatWorker(id)
		}
		c.advance(min(d, 5*time.Second))
	}
}

// queue creates a task of the queue q.
func (c *crew) queue(id, kind string, change ...func(*tracker.NewTask)) {
	c.Helper()
	c.create(append([]func(*tracker.NewTask){func(n *tracker.NewTask) {
		n.TaskID, n.Queue, n.Type, n.HeartbeatTimeout = id, "q", kind, 0
	}}, change...)...)
}

func (c *crew) claim(worker string, max int, change ...func(*tracker.ClaimRequest)) []*tracker.Envelope {
	c.Helper()
	r := tracker.ClaimRequest{Scope: scope, WorkerID: c.ids[worker], Queue: "q", Max: max}
	for _, f := range change {
		f(&r)
	}
	tasks, err := c.Claim(c.ctx, r)
	if err != nil {
		c.Fatalf("claim of %s: %v", worker, err)
	}
	return tasks
}

func ids(tasks []*tracker.Envelope) []string {
	list := []string{}
	for _, e := range tasks {
		list = append(list, e.Task.ID)
	}
	return list
}

func (c *crew) wantIDs(tasks []*tracker.Envelope, want ...string) {
	c.Helper()
	got := ids(tasks)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		c.Fatalf("claimed %v, want %v", got, want)
	}
}

func TestClaim(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		c.wantIDs(c.claim("w1", 10))
		c.queue("t1", "x", func(n *tracker.NewTask) {
			n.Payload, n.Labels = []byte(`{"to":"a"}`), map[string]string{"team": "x"}
		})
		tasks := c.claim("w1", 10)
		c.wantIDs(tasks, "t1")
		e := tasks[0]
		if e.Attempt.Number != 1 || e.Task.State != tracker.Dispatched || e.Task.WorkerID != c.ids["w1"] || string(e.Task.Payload) != `{"to":"a"}` ||
			e.Task.Labels["team"] != "x" || e.TokenTTL != tracker.DefaultTokenTTL || !e.Attempt.IssuedAt.Equal(c.store.Clock.Now()) {
			c.Fatalf("%+v %+v", e, e.Task)
		}
		c.wantIDs(c.claim("w1", 10)) // only once
		c.wantState("t1", tracker.Dispatched, "")
		if _, err := c.Start(c.ctx, e.Attempt, tracker.Report{}); err != nil {
			c.Fatal(err)
		}
		if task := c.wantState("t1", tracker.Running, ""); task.WorkerID != c.ids["w1"] {
			c.Fatalf("%+v", task)
		}
		if _, err := c.Complete(c.ctx, e.Attempt, tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
			c.Fatal(err)
		}
	})
}

// A task that nobody here can run never blocks those behind it, however many there are.
func TestNoTypePoisoning(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1", func(n *tracker.NewWorker) {
			n.Types, n.Runtimes, n.Labels = []string{"good"}, []string{"python"}, map[string]string{"region": "eu", "size": "l"}
		})
		c.hire("w2") // claims nothing
		poison := []func(*tracker.NewTask){
			func(n *tracker.NewTask) { n.Type = "bad" },
			func(n *tracker.NewTask) { n.Runtime = "node" },
			func(n *tracker.NewTask) { n.WorkerLabels = map[string]string{"region": "us"} },
			func(n *tracker.NewTask) { n.WorkerID = c.ids["w2"] },
			func(n *tracker.NewTask) { n.Runtime, n.WorkerLabels = "python", map[string]string{"gpu": "a100"} },
		}
		for i := range 60 {
			c.queue(fmt.Sprintf("bad-%02d", i), "good", poison[i%len(poison)])
		}
		for i := range 250 { // more classes than one look lists
			c.queue(fmt.Sprintf("odd-%03d", i), "good", func(n *tracker.NewTask) { n.Runtime = fmt.Sprintf("a%03d", i) })
		}
		c.queue("good-1", "good")
		c.queue("good-2", "good", func(n *tracker.NewTask) { n.Runtime = "python" })
		c.queue("good-3", "good", func(n *tracker.NewTask) { n.WorkerLabels = map[string]string{"region": "eu"} })
		c.queue("good-4", "good", func(n *tracker.NewTask) { n.WorkerID = c.ids["w1"] })
		c.queue("good-5", "")
		var got []*tracker.Envelope
		for range 6 { // a claim answers with what it finds first
			got = append(got, c.claim("w1", 10)...)
		}
		c.wantIDs(got, "good-1", "good-2", "good-3", "good-4", "good-5")
	})
}

// A flood of one type does not starve another: the types take turns, and each goes by age.
func TestClaimsAreFairAcrossTypes(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1", func(n *tracker.NewWorker) { n.Types = []string{"flood", "rare"} })
		for i := range 40 {
			c.queue(fmt.Sprintf("flood-%02d", i), "flood", oneShard(c, 0))
			c.store.Clock.Advance(time.Millisecond)
		}
		for i := range 3 {
			c.queue(fmt.Sprintf("rare-%d", i), "rare", oneShard(c, 0))
			c.store.Clock.Advance(time.Millisecond)
		}
		var order []string
		for range 8 {
			order = append(order, ids(c.claim("w1", 1))...)
		}
		var flood, rare []string
		for _, id := range order {
			if id[0] == 'f' {
				flood = append(flood, id)
			} else {
				rare = append(rare, id)
			}
		}
		if len(rare) != 3 || len(flood) != 5 || !slices.IsSorted(flood) || !slices.IsSorted(rare) || slices.Index(order, rare[2]) > 5 {
			c.Fatalf("in the order %v", order)
		}
	})
}

// oneShard changes a task's id until it lies in a shard, keeping its beginning.
func oneShard(c *crew, shard int) func(*tracker.NewTask) {
	return func(n *tracker.NewTask) {
		id := n.TaskID
		for i := 0; c.ShardOf(scope, n.TaskID) != shard; i++ {
			n.TaskID = fmt.Sprintf("%s.%d", id, i)
		}
	}
}

func TestClaimsOldestFirst(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		for _, id := range []string{"t3", "t1", "t2"} {
			c.queue(id, "x", oneShard(c, 1))
			c.store.Clock.Advance(time.Millisecond)
		}
		var order []string
		for range 3 {
			order = append(order, ids(c.claim("w1", 1))[0][:2])
		}
		if !slices.Equal(order, []string{"t3", "t1", "t2"}) {
			c.Fatalf("%v", order)
		}
	})
}

// However many claim at once, each task goes to exactly one of them, and none is left.
func TestClaimsRace(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		const workers, tasks = 8, 60
		for i := range tasks {
			c.queue(fmt.Sprintf("t%02d", i), "x")
		}
		var mu sync.Mutex
		by := map[string][]string{}
		var all sync.WaitGroup
		for i := range workers {
			id := fmt.Sprintf("w%d", i)
			c.hire(id)
			worker := c.ids[id]
			all.Go(func() {
				for {
					got, err := c.Claim(c.ctx, tracker.ClaimRequest{Scope: scope, WorkerID: worker, Queue: "q", Max: 1 + i%4})
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
			if len(workers) != 1 || c.get(id).WorkerID != workers[0] {
				c.Errorf("%s was claimed by %v and is held by %s", id, workers, c.get(id).WorkerID)
			}
		}
	})
}

func TestClaimRespectsCapacity(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1", func(n *tracker.NewWorker) { n.MaxConcurrent = 3 })
		for i := range 5 {
			c.queue(fmt.Sprintf("t%d", i), "x")
		}
		var got []*tracker.Envelope
		for range 5 {
			got = append(got, c.claim("w1", 10)...)
		}
		if len(got) != 3 {
			c.Fatalf("a worker of 3 places holds %v", ids(got))
		}
		if _, err := c.Start(c.ctx, got[0].Attempt, tracker.Report{}); err != nil {
			c.Fatal(err)
		}
		if _, err := c.Complete(c.ctx, got[0].Attempt, tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
			c.Fatal(err)
		}
		if more := c.claim("w1", 10); len(more) != 1 {
			c.Fatalf("after one completion: %v", ids(more))
		}
	})
}

// The same claim again gets the same tasks, whatever became of the first answer.
func TestClaimID(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		c.hire("w2")
		for i := range 6 {
			c.queue(fmt.Sprintf("t%d", i), "x")
		}
		first := c.claim("w1", 2, named("c1"))
		again := c.claim("w1", 2, named("c1"))
		c.wantIDs(again, ids(first)...)
		for _, e := range first {
			for _, f := range again {
				if e.Task.ID == f.Task.ID && e.Attempt.Fence != f.Attempt.Fence {
					c.Fatalf("another attempt of %s", e.Task.ID)
				}
			}
		}
		other := c.claim("w1", 2, named("c2"))
		foreign := c.claim("w2", 2, named("c1")) // its own claim, though of that name
		seen := map[string]bool{}
		for _, e := range slices.Concat(first, other, foreign) {
			if seen[e.Task.ID] {
				c.Fatalf("%s twice", e.Task.ID)
			}
			seen[e.Task.ID] = true
		}
		c.queue("t9", "x")
		none := c.claim("w1", 2, named("c3"))
		if len(none) == 0 {
			c.Fatal("a new claim got nothing")
		}
	})
}

// A claim's reply that got lost is found by the start timeout.
func TestStartTimeoutAfterAClaim(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		c.queue("t1", "x")
		c.queue("t2", "x", func(n *tracker.NewTask) { n.StartTimeout = 2 * time.Second })
		c.claim("w1", 1)
		c.claim("w1", 1)
		c.pass(2 * time.Second)
		c.sweep()
		task := c.wantState("t2", tracker.Queued, "")
		if task.Losses != 1 || task.History[0].Reason != tracker.StartTimeout || task.History[0].WorkerID != c.ids["w1"] {
			c.Fatalf("%+v", task)
		}
		c.wantState("t1", tracker.Dispatched, "")
		c.pass(58 * time.Second)
		c.sweep()
		c.wantState("t1", tracker.Queued, "")
		c.advance(2 * time.Second) // backoff
		c.sweep()
		var got []*tracker.Envelope
		for range 2 {
			got = append(got, c.claim("w1", 2)...)
		}
		c.wantIDs(got, "t1", "t2")
		if got[0].Attempt.Number != 2 {
			c.Fatalf("%+v", got[0].Attempt)
		}
	})
}

func TestClaimRefusals(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		for _, name := range []string{"draining", "offline"} {
			c.hire(name)
			c.queue(name, "x", func(n *tracker.NewTask) { n.WorkerID = c.ids[name] })
			c.claim(name, 1) // what it holds keeps a draining worker from going OFFLINE
		}
		if _, err := c.DrainWorker(c.ctx, scope, c.ids["draining"], tracker.Drain{}); err != nil {
			c.Fatal(err)
		}
		if _, err := c.RetireWorker(c.ctx, scope, c.ids["offline"], tracker.WorkerForced, ""); err != nil {
			c.Fatal(err)
		}
		for name, test := range map[string]struct {
			r    tracker.ClaimRequest
			code tracker.Code
		}{
			"no max":        {tracker.ClaimRequest{WorkerID: "w1", Queue: "q"}, tracker.Invalid},
			"long":          {tracker.ClaimRequest{WorkerID: "w1", Queue: "q", Max: 1, Wait: 61 * time.Second}, tracker.Invalid},
			"empty types":   {tracker.ClaimRequest{WorkerID: "w1", Queue: "q", Max: 1, Types: []string{}}, tracker.Invalid},
			"foreign type":  {tracker.ClaimRequest{WorkerID: "w1", Queue: "q", Max: 1, Types: []string{"y"}}, tracker.Invalid},
			"bad claim id":  {tracker.ClaimRequest{WorkerID: "w1", Queue: "q", Max: 1, ClaimID: "a/b"}, tracker.InvalidID},
			"another queue": {tracker.ClaimRequest{WorkerID: "w1", Queue: "p", Max: 1}, tracker.Forbidden},
			"draining":      {tracker.ClaimRequest{WorkerID: "draining", Queue: "q", Max: 1}, tracker.WorkerDraining},
			"offline":       {tracker.ClaimRequest{WorkerID: "offline", Queue: "q", Max: 1}, tracker.WorkerOffline},
			"unknown":       {tracker.ClaimRequest{WorkerID: "w9", Queue: "q", Max: 1}, tracker.WorkerNotFound},
		} {
			test.r.Scope = scope
			if id := c.ids[test.r.WorkerID]; id != "" {
				test.r.WorkerID = id
			}
			_, err := c.Claim(c.ctx, test.r)
			if got := tracker.CodeOf(err); got != test.code {
				c.Errorf("%s: %q, want %q (%v)", name, got, test.code, err)
			}
		}
	})
}

// What is on its way to other claims does not hide what stands behind it, however much it is.
func TestAClaimBehindManyOffers(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		c := &crew{h, map[string]string{}}
		for i := range 350 {
			c.queue(fmt.Sprintf("t%03d", i), "x")
		}
		for _, w := range []string{"w1", "w2"} {
			c.hire(w)
			n, leave, err := c.HoldOffer(tracker.ClaimRequest{Scope: scope, WorkerID: c.ids[w], Queue: "q", Max: 100})
			if err != nil || n != 100 {
				c.Fatalf("%s was offered %d: %v", w, n, err)
			}
			defer leave()
		}
		c.hire("w3")
		if got := c.claim("w3", 100); len(got) != 100 {
			c.Fatalf("with 150 tasks left it got %d", len(got))
		}
	}, func(o *tracker.Options) { o.Shards = 1 })
}
