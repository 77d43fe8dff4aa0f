package tasks_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// everyState creates small and large tasks in every state, with all fields set.
func everyState(c *trackertest.Fleet) {
	c.Helper()
	must := func(err error) {
		c.Helper()
		if err != nil {
			c.Fatal(err)
		}
	}
	ended := func(a *model.Attempt, how model.Completion) {
		c.Helper()
		_, err := c.Beats.Complete(c.Ctx, a, how)
		must(err)
	}
	failure := model.Completion{Outcome: model.Failed, Error: json.RawMessage(`{"category":"TIMEOUT"}`), Retryable: true,
		Metrics: json.RawMessage(`{"rows":5}`)}
	cancelled := func(id string) {
		c.Helper()
		_, err := c.Tasks.Cancel(c.Ctx, trackertest.Scope, id, model.CancelRequest{Reason: "enough"})
		must(err)
	}
	sendProgress := func(a *model.Attempt, pct string) {
		c.Helper()
		report := schema.AppendReport(nil, c.Store.Clock.Now().UnixMilli(), []byte("w7"), []byte(pct), []byte(`"half"`))
		if b := c.MustBeat(a, string(report)); b.Err != nil {
			c.Fatal(b.Err)
		}
	}
	retried := func(n *model.NewTask) {
		n.Retry = &model.RetryPolicy{MaxAttempts: 5, MaxLosses: 3, InitialBackoff: time.Hour, Multiplier: 1, MaxBackoff: time.Hour}
	}
	named := func(id string) func(*model.NewTask) { return func(n *model.NewTask) { n.TaskID = id } }
	c.Hire("ann")

	for i, act := range []func(id string){
		func(id string) { c.MustCreate(named(id)) },
		func(id string) { c.Running(named(id)) },
		func(id string) { sendProgress(c.Running(named(id)), "45") },
		func(id string) { // with everything that lists omit, and large
			sendProgress(c.Running(named(id), func(n *model.NewTask) {
				n.Payload, n.Resources = trackertest.Text(300_000), json.RawMessage(`{"gpu":1}`)
				n.Labels = map[string]string{"team": "a", "zone": "b"}
			}), "1")
		},
		func(id string) { ended(c.Running(named(id)), failure) },
		func(id string) {
			a := c.Running(named(id))
			cancelled(id)
			sendProgress(a, "50")
		},
		func(id string) {
			c.MustCreate(named(id))
			cancelled(id)
		},
		func(id string) { // its second attempt
			a := c.Running(named(id))
			sendProgress(a, "9")
			_, err := c.Tasks.NextAttempt(c.Ctx, trackertest.Scope, id, 1)
			must(err)
		},
	} {
		act(fmt.Sprint("pushed-", i))
	}
	for i, size := range []int{10, 1000, 20_000, 200_000, 20_000, 20_000, 10} {
		id := fmt.Sprint("output-", i)
		ended(c.Running(named(id)), model.Completion{Outcome: model.Succeeded, Output: trackertest.Text(size), Metrics: failure.Metrics})
		if i%2 == 0 { // as stored by a version that did not count
			c.Store.Client.HDel(c.Ctx, trackertest.TaskRecord(c.Tracker, trackertest.Scope, id), "z")
		}
	}
	for i, act := range []func(a *model.Attempt){
		func(*model.Attempt) {},
		func(a *model.Attempt) { sendProgress(a, "45") },
		func(a *model.Attempt) { ended(a, failure) },
		func(a *model.Attempt) { ended(a, model.Completion{Outcome: model.Succeeded}) },
		func(a *model.Attempt) { cancelled(a.TaskID) },
	} {
		id := fmt.Sprint("claimed-", i)
		c.MustQueue(id, "x", retried)
		act(c.MustClaim("ann", 1)[0].Attempt)
	}
	c.MustQueue("waits", "x", func(n *model.NewTask) { n.RunAt = c.Store.Clock.Now().Add(time.Hour) })
	c.MustQueue("ready", "y")
	c.MustQueue("gone", "y")
	cancelled("gone")
	c.Running(named("lost"))
	c.Advance(3 * time.Second) // all other attempts with their own heartbeats are silent by now too
	c.MustBeatWorker(c.IDs["ann"])
	c.MustSweep()
	sendProgress(c.Running(named("fresh")), "99")
}

// A page shows the same fields of each task as a read of that task, except for payload and resources, whatever the size of the
// page and the other tasks in its shard, and also if a filter has read a part of it before.
func TestAPageShowsWhatEachTaskShows(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		everyState(c)
		states := map[model.State]bool{}
		for _, f := range []model.TaskFilter{{}, {Descending: true}, {Queue: "q"}, {Labels: map[string]string{"team": "a"}},
			{Liveness: model.Fresh}, {WorkerID: "w7"}, {States: []model.State{model.Failed, model.Cancelled}},
			{FinishedAfter: c.Store.Clock.Now().Add(-time.Hour)}} {
			for _, size := range []int{1, 3, 100} {
				f.Scope, f.PageSize, f.After = trackertest.Scope, size, ""
				shown := 0
				for {
					page, err := c.Tasks.List(c.Ctx, f)
					if err != nil {
						c.Fatal(err)
					}
					for _, task := range page.Tasks {
						want := c.MustGet(task.ID)
						if want.Payload, want.Resources = nil, nil; !reflect.DeepEqual(task, want) {
							c.Errorf("in pages of %d, of %+v, it is\n%+v\nand alone\n%+v", size, f, task, want)
						}
						states[task.State] = true
						shown++
					}
					if f.After = page.Next; f.After == "" {
						break
					}
				}
				if shown == 0 {
					c.Errorf("%+v shows nothing", f)
				}
			}
		}
		if len(states) != len(model.States) {
			c.Errorf("only %v were shown", states)
		}
	})
}

// Small tasks of a shard are read together; a large payload, which lists do not show, does not make a task large.
func TestListsReadTasksTogether(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		const n = 64
		for i := range n {
			made := h.MustCreate(func(n *model.NewTask) {
				n.TaskID = fmt.Sprintf("t%02d", i)
				if i%16 == 0 {
					n.Payload = trackertest.Text(400_000)
				}
			})
			how := model.Completion{Outcome: model.Succeeded}
			if i%8 == 5 {
				how.Output = trackertest.Text(100_000)
			}
			if _, err := h.Beats.Complete(h.Ctx, made.Envelope.Attempt, how); err != nil {
				h.Fatal(err)
			}
		}
		for what, f := range map[string]model.TaskFilter{"all": {}, "those that have ended": {FinishedAfter: h.Store.Clock.Now().Add(-1)}} {
			calls := trackertest.RecordCalls(h.Tracker, "get")
			f.Scope, f.PageSize = trackertest.Scope, 100
			page, err := h.Tasks.List(h.Ctx, f)
			if err != nil || len(page.Tasks) != n {
				h.Fatalf("%s: %d tasks: %v", what, len(page.Tasks), err)
			}
			together, alone, keys := 0, 0, 0
			for _, c := range calls() {
				if keys = (c.Keys - 3) / 4; keys == 1 && c.Got > 100_000 {
					alone++
				} else if together++; c.Got > 8*17<<10 || keys > 8 {
					h.Errorf("%s: a call has read %d bytes of %d tasks", what, c.Got, keys)
				}
			}
			if most := n/8 + h.Tracker.Store.Shards(); together > most {
				h.Errorf("%s: %d calls have read tasks together, want at most %d", what, together, most)
			}
			if alone < n/8-2*together || alone > n/8 {
				h.Errorf("%s: %d large tasks were read alone", what, alone)
			}
		}
	})
}
