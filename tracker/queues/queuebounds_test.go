package queues_test

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// evals counts the scripts that the store has run.
func evals(h *trackertest.Harness) int {
	h.Helper()
	stats, err := h.Store.Client.Info(h.Ctx, "commandstats").Result()
	if err != nil {
		h.Fatal(err)
	}
	calls := regexp.MustCompile(`cmdstat_evalsha:calls=(\d+)`).FindStringSubmatch(stats)
	if calls == nil {
		return 0
	}
	n, _ := strconv.Atoi(calls[1])
	return n
}

// labelSets are more sets of worker labels than are cached, each required by one task.
const labelSets = 12_000

func requireEach(i int, n *model.NewTask) { n.WorkerLabels = map[string]string{"set": fmt.Sprint(i)} }

// Sets of worker labels beyond those that are cached are looked up many at a time.
func TestMoreLabelSetsThanAreRemembered(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	h := trackertest.Timed(t)
	h.FillQueue(labelSets, requireEach)
	mine := h.MustRegister(func(n *model.NewWorker) { n.Labels = map[string]string{"set": "11999"} }).WorkerID
	none := h.MustRegister(func(n *model.NewWorker) { n.MachineID = "host-2" }).WorkerID
	claim := func(worker string) int {
		tasks, err := h.Queues.Claim(h.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: worker, Queue: "default", Max: 1})
		if err != nil {
			t.Fatal(err)
		}
		return len(tasks)
	}
	claim(none)
	before := evals(h.Harness)
	if claim(none) != 0 || claim(mine) != 1 {
		t.Fatal("the worker that has the labels gets its task, the other one none")
	}
	if n := evals(h.Harness) - before; n > 3000 {
		t.Errorf("two claims from a queue with %d sets of labels took %d scripts", labelSets, n)
	}
	before = evals(h.Harness)
	queues, err := h.Queues.List(h.Ctx, trackertest.Scope)
	if err != nil || len(queues) != 1 || queues[0].Depth() != labelSets-1 {
		t.Fatalf("%+v, %v", queues, err)
	}
	if n := evals(h.Harness) - before; n > 2000 {
		t.Errorf("a list of queues with %d sets of labels took %d scripts", labelSets, n)
	}
}

// The scripts that look up sets of worker labels beyond those that are cached are short.
func TestScriptsAboutManyLabelSetsAreShort(t *testing.T) {
	testenv.OnlyAll(t)
	testenv.MeasuresScripts(t)
	t.Parallel()
	h := trackertest.Timed(t)
	h.FillQueue(labelSets, requireEach)
	worker := h.MustRegister(func(n *model.NewWorker) { n.MachineID = "host-2" }).WorkerID
	h.Short("claim", func() {
		_, err := h.Queues.Claim(h.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: worker, Queue: "default", Max: 1})
		if err != nil {
			t.Fatal(err)
		}
	})
	h.Short("queues", func() {
		if _, err := h.Queues.List(h.Ctx, trackertest.Scope); err != nil {
			t.Fatal(err)
		}
	})
}

// The scripts about the largest sets of labels, and about a worker that can run a thousand types, are short.
func TestScriptsAboutTheLargestClassesAreShort(t *testing.T) {
	testenv.OnlyAll(t)
	testenv.MeasuresScripts(t)
	t.Parallel()
	h := trackertest.Timed(t)
	h.FillQueue(2000, func(i int, n *model.NewTask) {
		n.WorkerLabels = map[string]string{"set": fmt.Sprint(i)}
		for len(n.WorkerLabels) < model.MaxLabels && i < 500 {
			n.WorkerLabels[fmt.Sprintf("%0128d", len(n.WorkerLabels))] = fmt.Sprintf("%0256d", 0)
		}
	})
	types := make([]string, model.MaxTypes)
	for i := range types {
		types[i] = fmt.Sprintf("t%d", i)
	}
	h.FillQueue(20*len(types), func(i int, n *model.NewTask) {
		n.Type, n.WorkerLabels = types[i%len(types)], map[string]string{"other": fmt.Sprint(i)}
	})
	worker := h.MustRegister(func(n *model.NewWorker) { n.Types = types }).WorkerID
	h.Short("claim", func() {
		if _, err := h.Queues.Claim(h.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: worker, Queue: "default",
			Max: 100}); err != nil {
			t.Fatal(err)
		}
	})
	h.Short("queues", func() {
		if _, err := h.Queues.List(h.Ctx, trackertest.Scope); err != nil {
			t.Fatal(err)
		}
	})
}

// The number of paused queues of a workspace is limited, and no request reads those of other workspaces.
func TestPausedQueuesAreBounded(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		pause := func(s model.Scope, i int) error {
			_, err := h.Queues.Pause(h.Ctx, s, fmt.Sprintf("invented-%d", i), "")
			return err
		}
		for i := range queues.MaxPausedQueues {
			if err := pause(trackertest.Scope, i); err != nil {
				h.Fatal(err)
			}
		}
		var e *model.Error
		if err := pause(trackertest.Scope, queues.MaxPausedQueues); !errors.As(err, &e) || e.Code != model.Overloaded || !e.TooMany {
			h.Fatalf("one more: %v", err)
		}
		if err := pause(trackertest.Scope, 0); err != nil {
			h.Fatalf("one that is paused already: %v", err)
		}
		other := model.Scope{Tenant: "acme", Workspace: "prod2"}
		if err := pause(other, 1); err != nil {
			h.Fatalf("another workspace: %v", err)
		}
		if queues, err := h.Queues.List(h.Ctx, other); err != nil || len(queues) != 1 {
			h.Fatalf("the queues of another workspace: %d, %v", len(queues), err)
		}
		if err := h.Queues.Resume(h.Ctx, trackertest.Scope, "invented-7"); err != nil {
			h.Fatal(err)
		}
		if _, err := h.Queues.Get(h.Ctx, trackertest.Scope, "invented-7"); model.CodeOf(err) != queues.QueueNotFound {
			h.Fatalf("resuming an unknown queue: %v", err)
		}
		if err := pause(trackertest.Scope, queues.MaxPausedQueues); err != nil {
			h.Fatalf("after one was resumed: %v", err)
		}
		if list, err := h.Queues.List(h.Ctx, trackertest.Scope); err != nil || len(list) != queues.MaxPausedQueues {
			h.Fatalf("%d queues, %v", len(list), err)
		}
	})
}

// The response to pausing an unknown queue reports that it is unknown, since its name may be mistyped.
func TestOneQueue(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		known := func(name string) *queues.Queue {
			c.Helper()
			q, err := c.Queues.Get(c.Ctx, trackertest.Scope, name)
			if err != nil {
				c.Fatal(err)
			}
			return q
		}
		if _, err := c.Queues.Get(c.Ctx, trackertest.Scope, "q"); model.CodeOf(err) != queues.QueueNotFound {
			c.Fatalf("a queue of which nothing is known: %v", err)
		}
		for name, want := range map[string]bool{"typo": true, "q": false} {
			if name == "q" {
				c.Hire("w1")
			}
			for range 2 {
				if created, err := c.Queues.Pause(c.Ctx, trackertest.Scope, name, ""); err != nil || created != want {
					c.Fatalf("%s: created %v, want %v; %v", name, created, want, err)
				}
				want = false
			}
			if !known(name).Paused {
				c.Fatalf("%s is not shown as paused", name)
			}
			if err := c.Queues.Resume(c.Ctx, trackertest.Scope, name); err != nil {
				c.Fatal(err)
			}
		}
		c.MustHolding("w1", 2)
		c.MustQueue("more", "x")
		if q := known("q"); q.Running != 2 || q.Depth() != 1 || q.Outstanding() != 3 || q.Workers[model.Online] != 1 {
			c.Fatalf("%+v", q)
		}
	})
}
