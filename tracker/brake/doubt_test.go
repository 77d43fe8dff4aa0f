package brake_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A sweeper consults the brake before it takes. A member that is not silent for its timeout when the brake checks it is not held,
// and must not be taken even if it is overdue a moment later.
func TestWhatTheBrakeDoesNotHoldYetIsNotTaken(t *testing.T) {
	t.Parallel()
	t.Run("tasks", func(t *testing.T) {
		trackertest.Contract(t, func(h *trackertest.Harness) {
			first := herd(h, 1)
			h.Advance(justOver)
			herd(h, 59)
			h.Advance(brakeTimeout) // the first one is overdue, the others almost
			trackertest.After(h.Tracker, "brake_tasks", func() { h.Advance(justOver) })
			for held := 0; held < 60; {
				r := h.MustSweep()
				if held += r.MassExpiryHeld; r.MassExpiryHeld == 0 || r.Zombies > 0 {
					h.Fatalf("%d held and %d zombies, after %d that were held", r.MassExpiryHeld, r.Zombies, held)
				}
			}
			h.WantState(first[0].TaskID, model.Running, "")
		}, trackertest.Braked, func(o *tracker.Options) { o.Shards = 1 })
	})
	t.Run("workers", func(t *testing.T) {
		redistest.Each(t, func(t *testing.T, s *redistest.Store) {
			c := trackertest.NewFleet(trackertest.NewHarness(t, s, trackertest.Braked))
			for i := range 60 {
				c.Hire(fmt.Sprintf("w%03d", i))
			}
			c.Advance(29 * time.Second)
			trackertest.After(c.Tracker, "brake_workers", func() { c.Advance(time.Second) }) // the brake is consulted because they are late
			for _, held := range []int{0, 60} {
				if r := c.MustSweep(); r.MassExpiryHeld != held || r.StaleWorkers != 0 {
					c.Fatalf("%d held and %d ended, want %d and none", r.MassExpiryHeld, r.StaleWorkers, held)
				}
			}
		})
	})
}

// While it is unknown whether the brake holds, nothing expires for silence, and everything else still ends.
func TestNothingExpiresWhileTheBrakeIsUnknown(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"census", "census_silent", "brake_engage", "brake_tasks"} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", script, lost), func(t *testing.T) {
				trackertest.Contract(t, func(h *trackertest.Harness) {
					herd(h, 60)
					other := h.MustCreate(func(n *model.NewTask) {
						n.Scope, n.Deadline = model.Scope{Tenant: "acme", Workspace: "test"}, h.Store.Clock.Now().Add(brakeTimeout)
					})
					h.Advance(brakeTimeout + justOver)
					fails := true
					trackertest.FailCalls(h.Tracker, script, lost, func(int) bool { return fails })
					_, _ = h.Sweeper.RunOnce(h.Ctx)
					task, err := h.Tasks.Get(h.Ctx, other.Task.Scope, other.Task.ID)
					if err != nil || task.State != model.Failed {
						h.Fatalf("a task past its deadline is %+v, %v", task, err)
					}
					fails = false
					h.MustSweep()
					page, err := h.Tasks.List(h.Ctx, model.TaskFilter{Scope: trackertest.Scope, States: []model.State{model.Running}, PageSize: 1})
					if err != nil || page.Total != 60 {
						h.Fatalf("%+v live, %v", page, err)
					}
				}, trackertest.Braked)
			})
		}
	}
}

// Where the brake cannot decide about the tasks of one scope, they wait. A silent task of another scope, in which it is not engaged,
// ends meanwhile.
func TestAScopeInDoubtDelaysNoOther(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		herd(h, 60)
		elsewhere := model.Scope{Tenant: "acme", Workspace: "test"}
		alone := h.Running(func(n *model.NewTask) {
			n.Scope, n.TaskID, n.HeartbeatInterval, n.HeartbeatTimeout = elsewhere, "alone", brakeTimeout/2, brakeTimeout
		})
		h.Advance(brakeTimeout + justOver)
		trackertest.FailCalls(h.Tracker, "brake_tasks", false, func(int) bool { return true })
		_, _ = h.Sweeper.RunOnce(h.Ctx)
		if task, err := h.Tasks.Get(h.Ctx, elsewhere, alone.TaskID); err != nil || task.State != model.Failed {
			h.Fatalf("the silent task of the other scope is %+v, %v", task, err)
		}
		page, err := h.Tasks.List(h.Ctx, model.TaskFilter{Scope: trackertest.Scope, States: []model.State{model.Running}, PageSize: 1})
		if err != nil || page.Total != 60 {
			h.Fatalf("%+v live, %v", page, err)
		}
	}, trackertest.Braked)
}

// The sentinel of a set is not counted as silent, even if it moves up when another member is removed.
func TestBrakeCountsWhileOthersGo(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		tasks := herd(h, 61)
		h.Advance(brakeTimeout + justOver)
		completed := false
		trackertest.After(h.Tracker, "census", func() {
			if !completed {
				completed = true
				_, _ = h.Beats.Complete(h.Ctx, tasks[0], model.Completion{Outcome: model.Succeeded})
			}
		})
		wantSweep(h, 60, 0)
	}, trackertest.Braked, func(o *tracker.Options) { o.Shards = 1 })
}
