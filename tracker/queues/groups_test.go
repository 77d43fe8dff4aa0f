package queues_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// requestCost is the cost of a request: scripts, their keys and bytes, and the commands that they ran.
type requestCost struct {
	scripts, keys int
	commands      string
}

var commandCalls = regexp.MustCompile(`cmdstat_(hmget|hgetall|zlexcount|zrange\w*|zrevrange\w*|zscan|zscore|zmscore):calls=\d+`)

// costOf makes a request and returns its cost.
func costOf(h *trackertest.Harness, do func()) requestCost {
	h.Helper()
	h.Store.Client.ConfigResetStat(h.Ctx)
	recorded := trackertest.RecordCalls(h.Tracker)
	do()
	stats := h.Store.Client.Info(h.Ctx, "commandstats").Val()
	calls := commandCalls.FindAllString(stats, -1)
	slices.Sort(calls)
	got := requestCost{commands: fmt.Sprint(calls)}
	for _, c := range recorded() {
		got.scripts++
		got.keys += c.Keys
	}
	return got
}

// The cost of requests about queues does not depend on the number of their workers, on their status or on what they run.
func TestQueuesDoNotGrowWithTheirWorkers(t *testing.T) {
	t.Parallel()
	c := trackertest.NewFleet(trackertest.Timed(t, func(o *tracker.Options) { o.Shards = 1 }).Harness)
	hire := func(from, to int) {
		for i := from; i < to; i++ {
			name := fmt.Sprintf("w%04d", i)
			c.Hire(name, func(n *model.NewWorker) {
				n.Labels = map[string]string{"kind": fmt.Sprint(i % 2)}
				if n.Queue = "q"; i%3 == 0 {
					n.Queue = "p"
				}
			})
			id, err := c.IDs[name], error(nil)
			switch i % 8 {
			case 4, 5:
				_, err = c.Workers.Cordon(c.Ctx, trackertest.Scope, id, "")
			case 6:
				_, err = c.Workers.Drain(c.Ctx, trackertest.Scope, id, workers.Drain{})
			case 7:
				_, err = c.Workers.Retire(c.Ctx, trackertest.Scope, id, model.WorkerForced, "")
			}
			if err != nil {
				c.Fatal(err)
			}
		}
	}
	hire(0, 48)
	c.MustHolding("w0001", 2)
	c.MustQueue("waits", "x", func(n *model.NewTask) { n.WorkerLabels = map[string]string{"kind": "1"} })
	c.MustQueue("unrunnable", "x", func(n *model.NewTask) { n.TaskID, n.WorkerLabels = "unrunnable", map[string]string{"kind": "2"} })
	one := func() {
		q, err := c.Queues.Get(c.Ctx, trackertest.Scope, "q")
		if err != nil || q.Running != 2 || q.Depth() != 2 || q.Kinds[0].Unrunnable != 1 {
			c.Fatalf("%+v, %v", q, err)
		}
	}
	all := func() {
		if queues, err := c.Queues.List(c.Ctx, trackertest.Scope); err != nil || len(queues) != 2 {
			c.Fatalf("%+v, %v", queues, err)
		}
	}
	one() // from now on it is known what the workers can run
	few := []requestCost{costOf(c.Harness, one), costOf(c.Harness, all)}
	hire(48, 480)
	many := []requestCost{costOf(c.Harness, one), costOf(c.Harness, all)}
	if !slices.Equal(few, many) {
		c.Errorf("48 workers:\n%+v\n480 workers:\n%+v", few, many)
	}
	q, err := c.Queues.Get(c.Ctx, trackertest.Scope, "q")
	if err != nil {
		c.Fatal(err)
	}
	if w := q.Workers; w[model.Online] != 240 || w[model.Draining] != 40 || w[model.Offline] != 40 {
		c.Errorf("%v", w)
	}
}

// A queue's workers are counted by their current status, and only those that take tasks count as able to run them.
func TestAQueueFollowsItsWorkers(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		c.Hire("w2", func(n *model.NewWorker) { n.Types = []string{"y"} })
		c.MustQueue("t1", "x")
		c.MustQueue("t2", "x", func(n *model.NewTask) { n.WorkerID = c.IDs["w1"] })
		c.MustQueue("t3", "y")
		want := func(when string, online, draining, offline, unrunnable int) {
			c.Helper()
			q, err := c.Queues.Get(c.Ctx, trackertest.Scope, "q")
			if err != nil {
				c.Fatal(err)
			}
			if w := q.Workers; w[model.Online] != online || w[model.Draining] != draining || w[model.Offline] != offline {
				c.Errorf("%s: %v", when, w)
			}
			if len(q.Kinds) != 2 || q.Kinds[0].Unrunnable != unrunnable || q.Kinds[1].Unrunnable != 0 {
				c.Errorf("%s: %+v", when, q.Kinds)
			}
			if left := c.Reconcile(); len(left) > 0 {
				c.Errorf("%s: the reconciler repairs %v", when, left)
			}
		}
		w1 := c.IDs["w1"]
		do := func(what string, act func() error) {
			c.Helper()
			if err := act(); err != nil {
				c.Fatalf("%s: %v", what, err)
			}
		}
		want("ONLINE", 2, 0, 0, 0)
		do("cordon", func() error { _, err := c.Workers.Cordon(c.Ctx, trackertest.Scope, w1, ""); return err })
		want("cordoned", 2, 0, 0, 2)
		do("uncordon", func() error { _, err := c.Workers.Uncordon(c.Ctx, trackertest.Scope, w1, ""); return err })
		want("uncordoned", 2, 0, 0, 0)
		do("drain", func() error { _, err := c.Workers.Drain(c.Ctx, trackertest.Scope, w1, workers.Drain{}); return err })
		want("DRAINING", 1, 1, 0, 2)
		do("cordon", func() error { _, err := c.Workers.Cordon(c.Ctx, trackertest.Scope, w1, ""); return err })
		do("resume", func() error { _, err := c.Workers.Resume(c.Ctx, trackertest.Scope, w1, ""); return err })
		want("cordoned while it was DRAINING, and resumed", 2, 0, 0, 2)
		c.AdvanceAlive(31*time.Second, c.IDs["w2"])
		c.MustSweep()
		want("OFFLINE", 1, 0, 1, 2)
		c.Store.Clock.Advance(model.DefaultFinishedRetention)
		c.MustTick()
		c.MustBeatWorker(c.IDs["w2"])
		c.MustSweep()
		want("forgotten", 1, 0, 0, 2)
	})
}

// Tasks that wait for more workers than are looked up, and tasks that none of more abilities than are compared can run, count as
// runnable.
func TestUnrunnableTasksAreCountedWithinBounds(t *testing.T) {
	t.Parallel()
	h := trackertest.Timed(t)
	const more = 1100
	for i := range more {
		h.MustRegister(func(n *model.NewWorker) { n.Labels = map[string]string{"host": fmt.Sprint(i)} })
	}
	h.FillQueue(1, func(_ int, n *model.NewTask) { n.WorkerLabels = map[string]string{"host": "none"} })
	for i := range more {
		h.Plant(h.Key("t", "ready"), fmt.Sprintf("acme/prod/pins/wkr_01HGW5N7XHJM4GX29KZRX%05d000/x///0001768471200000/t%d/0/", i, i))
	}
	unrunnable := func(queue string) (depth, n int) {
		q, err := h.Queues.Get(h.Ctx, trackertest.Scope, queue)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range q.Kinds {
			depth, n = depth+k.Depth, n+k.Unrunnable
		}
		return depth, n
	}
	if depth, n := unrunnable("default"); depth != 1 || n != 0 {
		t.Errorf("%d of %d are counted as unrunnable, want 0 of 1", n, depth)
	}
	if depth, n := unrunnable("pins"); depth != more || n != 1000 {
		t.Errorf("%d of %d are counted as unrunnable", n, depth)
	}
}
