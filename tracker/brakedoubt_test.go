package tracker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
)

// A sweeper asks the brake, and takes after that. What is not silent for its timeout when the brake looks is not held,
// and a moment later the script that takes would find it overdue.
func TestWhatTheBrakeDoesNotHoldYetIsNotTaken(t *testing.T) {
	t.Parallel()
	t.Run("tasks", func(t *testing.T) {
		contract(t, func(h *harness) {
			first := h.herd(1)
			h.advance(justOver)
			h.herd(59)
			h.advance(brakeTimeout) // the first one is overdue, the others are on the edge of it
			h.After("brake_tasks", func() { h.advance(justOver) })
			for held := 0; held < 60; {
				r := h.sweep()
				if held += r.Held; r.Held == 0 || r.Zombies > 0 {
					h.Fatalf("%d held and %d zombies, after %d that were held", r.Held, r.Zombies, held)
				}
			}
			h.wantState(first[0].TaskID, tracker.Running, "")
		}, braked, func(o *tracker.Options) { o.Shards = 1 })
	})
	t.Run("workers", func(t *testing.T) {
		redistest.Each(t, func(t *testing.T, s *redistest.Store) {
			c := &crew{newHarness(t, s, braked), map[string]string{}}
			for i := range 60 {
				c.hire(fmt.Sprintf("w%03d", i))
			}
			c.advance(29 * time.Second)
			c.After("brake_workers", func() { c.advance(time.Second) }) // it is asked because they are late
			for _, held := range []int{0, 60} {
				if r := c.sweep(); r.Held != held || r.StaleWorkers != 0 {
					c.Fatalf("%d held and %d ended, want %d and none", r.Held, r.StaleWorkers, held)
				}
			}
		})
	})
}

// While it is not known whether the brake holds nobody dies, and whatever does not end for silence still ends.
func TestNobodyDiesWhileTheBrakeIsNotKnown(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"census", "census_silent", "brake_engage", "brake_tasks"} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", script, lost), func(t *testing.T) {
				contract(t, func(h *harness) {
					h.herd(60)
					other := h.create(func(n *tracker.NewTask) {
						n.Scope, n.Deadline = tracker.Scope{Tenant: "acme", Workspace: "test"}, h.store.Clock.Now().Add(brakeTimeout)
					})
					h.advance(brakeTimeout + justOver)
					fails := true
					h.FailCalls(script, lost, func(int) bool { return fails })
					_, _ = h.sweeper.RunOnce(h.ctx)
					task, err := h.Get(h.ctx, other.Task.Scope, other.Task.ID)
					if err != nil || task.State != tracker.Failed {
						h.Fatalf("a task past its deadline is %+v, %v", task, err)
					}
					fails = false
					h.sweep()
					page, err := h.List(h.ctx, tracker.TaskFilter{Scope: scope, State: tracker.Running, PageSize: 1})
					if err != nil || page.Total != 60 {
						h.Fatalf("%+v live, %v", page, err)
					}
				}, braked)
			})
		}
	}
}

// The sentinel of a set is not counted as silent, also when it moves up since somebody else goes.
func TestBrakeCountsWhileOthersGo(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		tasks := h.herd(61)
		h.advance(brakeTimeout + justOver)
		gone := false
		h.After("census", func() {
			if !gone {
				gone = true
				_, _ = h.Complete(h.ctx, tasks[0], tracker.Completion{Outcome: tracker.Succeeded})
			}
		})
		h.wantSweep(60, 0)
	}, braked, func(o *tracker.Options) { o.Shards = 1 })
}
