package tasks_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// listed returns the IDs of a list, page by page.
func listed(h *trackertest.Harness, f model.TaskFilter) (ids []string) {
	h.Helper()
	f.Scope = trackertest.Scope
	for {
		page, err := h.Tasks.List(h.Ctx, f)
		if err != nil {
			h.Fatal(err)
		}
		for _, task := range page.Tasks {
			ids = append(ids, task.ID)
		}
		if f.After = page.Next; f.After == "" {
			return ids
		}
	}
}

// ends creates tasks that end one second apart, in the reverse order of their IDs, every third of them FAILED. It returns them in
// the order of their ends.
func ends(h *trackertest.Harness, n int) (ids []string) {
	h.Helper()
	for i := range n {
		id := fmt.Sprintf("t%02d", n-i)
		ids = append(ids, id)
		outcome := model.Completion{Outcome: model.Succeeded}
		if i%3 == 0 {
			outcome = model.Completion{Outcome: model.Failed, Error: []byte(`{"category":"USER_CODE"}`)}
		}
		if _, err := h.Beats.Complete(h.Ctx, h.Running(func(n *model.NewTask) { n.TaskID = id }), outcome); err != nil {
			h.Fatal(err)
		}
		h.Advance(time.Second)
	}
	return ids
}

// A list is in the order of IDs or of ends, in either direction and for any states, whatever the size of its pages and the
// distribution of its tasks over shards.
func TestListsHaveAnOrder(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		const n = 12
		began := h.Store.Clock.Now()
		byEnd := ends(h, n)
		h.Running(func(n *model.NewTask) { n.TaskID = "t99" })
		failed := slices.DeleteFunc(slices.Clone(byEnd), func(id string) bool { return slices.Index(byEnd, id)%3 != 0 })
		byID := append(slices.Sorted(slices.Values(byEnd)), "t99")
		at := func(i int) time.Time { return began.Add(time.Duration(i) * time.Second) }
		for name, c := range map[string]struct {
			filter model.TaskFilter
			want   []string
		}{
			"all":          {model.TaskFilter{}, byID},
			"three states": {model.TaskFilter{States: []model.State{model.Running, model.Failed, model.Succeeded}}, byID},
			"two states": {model.TaskFilter{States: []model.State{model.Running, model.Failed}},
				append(slices.Sorted(slices.Values(failed)), "t99")},
			"reason":                 {model.TaskFilter{Reason: model.WorkerReported}, slices.Sorted(slices.Values(failed))},
			"other reason":           {model.TaskFilter{Reason: model.WorkerLost}, nil},
			"since the beginning":    {model.TaskFilter{FinishedAfter: began}, byEnd},
			"since the third":        {model.TaskFilter{FinishedAfter: at(2)}, byEnd[2:]},
			"until the third":        {model.TaskFilter{FinishedBefore: at(2)}, byEnd[:2]},
			"from the third on":      {model.TaskFilter{FinishedAfter: at(2), FinishedBefore: at(5)}, byEnd[2:5]},
			"failed by end":          {model.TaskFilter{FinishedAfter: began, States: []model.State{model.Failed}}, failed},
			"of a run":               {model.TaskFilter{FinishedAfter: began, RunID: "run_t07"}, []string{"t07"}},
			"those that will finish": {model.TaskFilter{FinishedAfter: at(n)}, nil},
		} {
			for _, size := range []int{1, 5, 100} {
				c.filter.PageSize, c.filter.Descending = size, false
				if got := listed(h, c.filter); !slices.Equal(got, c.want) {
					h.Errorf("%s by %d: %v, want %v", name, size, got, c.want)
				}
				c.filter.Descending = true
				got := listed(h, c.filter)
				slices.Reverse(got)
				if !slices.Equal(got, c.want) {
					h.Errorf("%s by %d from behind: %v, want %v", name, size, got, c.want)
				}
			}
		}
	})
}

// A task that ends twice is listed at its last end; one that continues or is removed is in no list of ends.
func TestATaskHasOneEnd(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("a")
		f := model.TaskFilter{FinishedAfter: c.Store.Clock.Now()}
		c.MustQueue("q1", "x", func(n *model.NewTask) { n.Retry = &model.RetryPolicy{MaxAttempts: 1, Multiplier: 1} })
		fail := func() {
			e := c.MustClaim("a", 1)[0]
			_, err := c.Beats.Complete(c.Ctx, e.Attempt, model.Completion{Outcome: model.Failed, Error: []byte(`{"category":"USER_CODE"}`)})
			if err != nil {
				c.Fatal(err)
			}
		}
		fail()
		c.Advance(time.Second)
		ends(c.Harness, 1)
		want := func(ids ...string) {
			c.Helper()
			if got := listed(c.Harness, f); !slices.Equal(got, ids) {
				c.Fatalf("%v, want %v", got, ids)
			}
		}
		want("q1", "t01")
		if _, err := c.Tasks.NextAttempt(c.Ctx, trackertest.Scope, "q1", 1); err != nil {
			c.Fatal(err)
		}
		if _, err := c.Tasks.NextAttempt(c.Ctx, trackertest.Scope, "t01", 1); err != nil {
			c.Fatal(err)
		}
		want()
		fail()
		want("q1")
		c.WantRepairs()
		c.Store.Clock.Advance(25 * time.Hour)
		c.MustTick()
		c.MustSweep()
		want()
		for _, kind := range []string{"{", "|", "}"} {
			for shard := range c.Tracker.Store.Shards() {
				key := fmt.Sprintf("lubdub:{%d}:ix", shard)
				for _, entry := range c.Store.Client.ZRange(c.Ctx, key, 0, -1).Val() {
					if entry[:1] == kind {
						c.Errorf("%s is left in %s", entry, key)
					}
				}
			}
		}
	})
}

// The tasks of a machine are those of its workers.
func TestTasksOfAMachine(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		for _, name := range []string{"a", "b", "c"} {
			c.Hire(name, func(n *model.NewWorker) {
				n.Name = name
				if name != "c" {
					n.MachineID = "host"
				}
			})
			c.MustHolding(name, 2)
		}
		got := listed(c.Harness, model.TaskFilter{MachineID: "host", PageSize: 3})
		if want := []string{"a-000", "a-001", "b-000", "b-001"}; !slices.Equal(got, want) {
			c.Fatalf("%v, want %v", got, want)
		}
		if got := listed(c.Harness, model.TaskFilter{MachineID: "nowhere"}); got != nil {
			c.Fatalf("%v of a machine that is not there", got)
		}
	})
}
