package reconcile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// find returns the one member of a sorted set that contains a text.
func find(h *trackertest.Harness, key, text string) string {
	h.Helper()
	found := ""
	for _, m := range h.Store.Client.ZRange(h.Ctx, key, 0, -1).Val() {
		if strings.Contains(m, text) {
			if found != "" {
				h.Fatalf("%s has %s and %s", key, found, m)
			}
			found = m
		}
	}
	if found == "" {
		h.Fatalf("%s has nothing with %s", key, text)
	}
	return found
}

func TestReconcilerRepairsTasks(t *testing.T) {
	t.Parallel()
	const ghost = "acme/prod/ghost"
	running := func(c *trackertest.Fleet) *model.Attempt {
		return c.Running(func(n *model.NewTask) { n.TaskID = "t1" })
	}
	for name, test := range map[string]func(c *trackertest.Fleet){
		"entries without a record": func(c *trackertest.Fleet) {
			running(c)
			c.Plant(c.Key("ghost", "ix"), "acme/prod/R/ghost")
			c.Plant(c.Key("ghost", "held"), "wkr_01HGW5N7XHJM4GX29KZRXQP6N9000/"+ghost+"#1.abcd/0//")
			c.Plant(c.Key("ghost", "timers"), "r:"+ghost+"#1.abcd")
			c.Plant(c.Key("ghost", "due"), "d:"+ghost)
			c.Plant(c.Key("ghost", "ready"), "acme/prod/q//x///0001768471200000/ghost/0/")
			for _, key := range []string{"progress", "cancels"} {
				c.Store.Client.HSet(c.Ctx, c.Key("ghost", key), ghost+"#1.abcd", "\t\t\t")
			}
			c.Store.Client.SAdd(c.Ctx, c.Key("ghost", "timeouts"), "2000")
			c.Plant(c.Key("ghost", "beats:2000"), ghost+"#1.abcd")
			c.WantRepairs("stray_ix", "stray_held", "stray_timers", "stray_due", "stray_ready", "stray_progress", "stray_cancels", "stray_beats")
		},
		"entries of a time that is over": func(c *trackertest.Fleet) {
			a := running(c)
			if _, err := c.Beats.Complete(c.Ctx, a, model.Completion{Outcome: model.Succeeded}); err != nil {
				c.Fatal(err)
			}
			member := fmt.Sprintf("acme/prod/t1#1.%s", a.Fence)
			c.Plant(c.Key("t1", "ix"), "acme/prod/R/t1")
			c.Plant(c.Key("t1", "beats:2000"), member)
			c.Plant(c.Key("t1", "timers"), "s:"+member)
			c.Plant(c.Key("t1", "due"), "b:acme/prod/t1")
			c.Store.Client.HSet(c.Ctx, c.Key("t1", "cancels"), member, "1000\t\t")
			c.WantRepairs("stray_ix", "stray_beats", "stray_timers", "stray_due", "stray_cancels")
			c.WantState("t1", model.Succeeded, "")
		},
		"a running task without its beat": func(c *trackertest.Fleet) {
			a := running(c)
			c.Remove(c.Key("t1", "beats:2000"), "acme/prod/t1#1."+a.Fence)
			c.Advance(3 * time.Second)
			if r := c.MustSweep(); r.Zombies != 0 {
				c.Fatal("something else found it")
			}
			c.WantRepairs("missing_beat")
			c.Advance(2 * time.Second) // it gets a whole timeout
			c.MustSweep()
			c.WantState("t1", model.Running, "")
			c.Advance(time.Second)
			c.MustSweep()
			c.WantState("t1", model.Failed, model.HeartbeatTimeout)
		},
		"a timeout that is not swept": func(c *trackertest.Fleet) {
			running(c)
			c.Store.Client.SRem(c.Ctx, c.Key("t1", "timeouts"), "2000")
			c.Advance(3 * time.Second)
			if r := c.MustSweep(); r.Zombies != 0 {
				c.Fatal("something else found it")
			}
			c.WantRepairs("missing_timeout")
			c.MustSweep()
			c.WantState("t1", model.Failed, model.HeartbeatTimeout)
		},
		"a task that no list has": func(c *trackertest.Fleet) {
			c.Running(func(n *model.NewTask) { n.TaskID, n.RunID = "t1", "r1" })
			c.Remove(c.Key("t1", "ix"), "acme/prod/R/t1")
			c.Remove(c.Key("t1", "run:acme/prod/r1"), "R/t1")
			c.WantRepairs("missing_ix", "missing_run")
			f := model.TaskFilter{Scope: trackertest.Scope, States: []model.State{model.Running}, PageSize: 10}
			if page, err := c.Tasks.List(c.Ctx, f); err != nil ||
				page.Total != 1 {
				c.Fatalf("%+v %v", page, err)
			}
		},
		"a task that no list of ends has, and lists that name it wrongly": func(c *trackertest.Fleet) {
			a := running(c)
			if _, err := c.Beats.Complete(c.Ctx, a, model.Completion{Outcome: model.Succeeded}); err != nil {
				c.Fatal(err)
			}
			end := find(c.Harness, c.Key("t1", "ix"), "|acme/prod/S/")
			c.Remove(c.Key("t1", "ix"), end)
			c.Plant(c.Key("t1", "ix"), "|acme/prod/F/1700000000000/t1")
			c.Plant(c.Key("t1", "ix"), "{acme/prod/q/t1")
			c.Plant(c.Key("t1", "ix"), "}acme/prod/1700000000000/t1/1/WORKER_LOST/q/x/w1")
			c.WantRepairs("missing_list", "stray_list", "stray_list", "stray_list")
			if find(c.Harness, c.Key("t1", "ix"), "|acme") != end {
				c.Fatal("its end is not listed again")
			}
		},
		"a claimed task that no list of its queue has": func(c *trackertest.Fleet) {
			c.Hire("a")
			a := c.MustHolding("a", 1)[0]
			entry := find(c.Harness, c.Key(a.TaskID, "ix"), "{acme/prod/q/")
			c.Remove(c.Key(a.TaskID, "ix"), entry)
			c.WantRepairs("missing_list")
			if find(c.Harness, c.Key(a.TaskID, "ix"), "{acme/prod/q/") != entry {
				c.Fatal("it is not listed again")
			}
		},
		"a size that is not listed, and sizes that nothing has": func(c *trackertest.Fleet) {
			c.MustCreate(func(n *model.NewTask) { n.TaskID, n.Payload = "t1", []byte(`"`+strings.Repeat("x", 5000)+`"`) })
			c.Remove(c.Key("t1", "ix"), "~acme/J/prod/t1")
			c.Plant(c.Key("t1", "ix"), "~acme/Z/prod/t1")
			c.Plant(c.Key("ghost", "ix"), "~acme/Z/prod/ghost")
			c.WantRepairs("missing_ix", "stray_ix", "stray_ix")
			if left := c.Sizes(); len(left) != 1 || left[0] != "~acme/J/prod/t1" {
				c.Fatalf("%v", left)
			}
		},
		"a dispatched task without its start timeout": func(c *trackertest.Fleet) {
			c.MustCreate(func(n *model.NewTask) { n.TaskID, n.StartTimeout = "t1", 5*time.Second })
			c.Remove(c.Key("t1", "timers"), find(c.Harness, c.Key("t1", "timers"), "s:acme/prod/t1#"))
			c.WantRepairs("missing_timer")
			c.Advance(5 * time.Second)
			c.MustSweep()
			c.WantState("t1", model.Failed, model.StartTimeout)
		},
		"a running task without its run timeout and deadline": func(c *trackertest.Fleet) {
			a := c.Running(func(n *model.NewTask) {
				n.TaskID, n.RunTimeout, n.Deadline = "t1", 5*time.Second, c.Store.Clock.Now().Add(time.Hour)
			})
			c.Remove(c.Key("t1", "timers"), "r:acme/prod/t1#1."+a.Fence)
			c.Remove(c.Key("t1", "due"), "d:acme/prod/t1")
			c.WantRepairs("missing_timer", "missing_due")
			c.AdvanceBeating(5*time.Second, a)
			c.MustSweep()
			c.WantState("t1", model.Failed, model.RunTimeout)
		},
		"a cancel that is not delivered": func(c *trackertest.Fleet) {
			a := running(c)
			if _, err := c.Tasks.Cancel(c.Ctx, trackertest.Scope, "t1", model.CancelRequest{Reason: "why"}); err != nil {
				c.Fatal(err)
			}
			c.Store.Client.HDel(c.Ctx, c.Key("t1", "cancels"), "acme/prod/t1#1."+a.Fence)
			c.WantRepairs("missing_cancel")
			if b := c.MustBeat(a, ""); b.Cancel == nil || b.Cancel.Reason != "why" {
				c.Fatalf("%+v", b.Cancel)
			}
		},
		"a delivered cancel without its grace": func(c *trackertest.Fleet) {
			a := running(c)
			if _, err := c.Tasks.Cancel(c.Ctx, trackertest.Scope, "t1", model.CancelRequest{}); err != nil {
				c.Fatal(err)
			}
			c.Beats.CancelDelivered(a)
			for b := c.MustBeat(a, ""); !b.Cancel.Delivered; b = c.MustBeat(a, "") {
				continue // recorded concurrently with the caller
			}
			c.Remove(c.Key("t1", "timers"), "c:acme/prod/t1#1."+a.Fence)
			c.WantRepairs("missing_timer")
		},
		"a queued task that cannot be claimed": func(c *trackertest.Fleet) {
			c.Hire("w1")
			c.MustQueue("t1", "x")
			c.Remove(c.Key("t1", "ready"), find(c.Harness, c.Key("t1", "ready"), "/t1/"))
			c.WantRepairs("missing_ready")
			c.WantIDs(c.MustClaim("w1", 1), "t1")
		},
		"a task that waits for its time for ever": func(c *trackertest.Fleet) {
			c.Hire("w1")
			c.MustQueue("t1", "x", func(n *model.NewTask) { n.RunAt = c.Store.Clock.Now().Add(time.Second) })
			c.Remove(c.Key("t1", "due"), "b:acme/prod/t1")
			c.Advance(2 * time.Second)
			c.MustSweep()
			c.WantRepairs("missing_due")
			c.MustSweep()
			c.WantIDs(c.MustClaim("w1", 1), "t1")
		},
		"a finished task that would stay for ever": func(c *trackertest.Fleet) {
			if _, err := c.Beats.Complete(c.Ctx, running(c), model.Completion{Outcome: model.Succeeded}); err != nil {
				c.Fatal(err)
			}
			c.Remove(c.Key("t1", "due"), "x:acme/prod/t1")
			c.WantRepairs("missing_due")
			c.Store.Clock.Advance(model.DefaultFinishedRetention)
			c.MustTick()
			if r := c.MustSweep(); r.Removed != 1 {
				c.Fatalf("%+v", r)
			}
		},
		"a claimed task that no worker holds": func(c *trackertest.Fleet) {
			c.Hire("w1")
			c.MustHolding("w1", 1)
			id := "w1-000"
			c.Remove(c.Key(id, "held"), find(c.Harness, c.Key(id, "held"), "/"+id+"#"))
			c.WantRepairs("missing_held")
			c.Advance(31 * time.Second)
			if r := c.MustSweep(); r.Recovered != 1 {
				c.Fatalf("%+v", r)
			}
		},
		"a record that was lost": func(c *trackertest.Fleet) {
			a := running(c)
			c.Store.Client.Del(c.Ctx, c.Key("t1", "task:acme/prod/t1"))
			c.WantRepairs("stray_ix", "stray_beats", "stray_progress")
			if b := c.MustBeat(a, ""); b.Err != nil { // its token proves it
				c.Fatal(b.Err)
			}
			c.WantState("t1", model.Running, "")
		},
	} {
		t.Run(name, func(t *testing.T) { trackertest.Claims(t, test) })
	}
}

func TestReconcilerRecoversTasksOfEndedWorkers(t *testing.T) {
	t.Parallel()
	// Without its recovery an ended worker would hold its tasks forever. Its fences may have been dropped long ago.
	forget := func(c *trackertest.Fleet, id string) {
		c.Remove(trackertest.WorkerKey(id, "recoveries"), "acme/prod/"+id)
		c.Store.Client.Del(c.Ctx, trackertest.WorkerKey(id, "recovery:acme/prod/"+id))
	}
	t.Run("a worker that is OFFLINE", func(t *testing.T) {
		trackertest.Claims(t, func(c *trackertest.Fleet) {
			c.Hire("w1")
			held := c.MustHolding("w1", 5)
			if err := trackertest.EndWithoutRecovery(c.Tracker, trackertest.Scope, c.IDs["w1"]); err != nil {
				c.Fatal(err)
			}
			if r := c.Reconcile(); len(r) != 0 { // its recovery is in progress
				c.Fatal(r)
			}
			forget(c, c.IDs["w1"])
			c.MustSweep()
			c.WantRepairs("held_by_ended_worker", "held_by_ended_worker", "held_by_ended_worker", "held_by_ended_worker", "held_by_ended_worker")
			for _, a := range held {
				if task := c.WantState(a.TaskID, model.Queued, ""); task.Losses != 1 || task.History[0].Reason != model.WorkerLost {
					c.Fatalf("%+v", task)
				}
			}
		})
	})
	t.Run("one whose fence is forgotten when its attempt is adopted", func(t *testing.T) {
		trackertest.Claims(t, func(c *trackertest.Fleet) {
			c.Hire("w1")
			a := c.MustHolding("w1", 1)[0]
			c.Advance(31 * time.Second)
			c.MustSweep()
			c.Advance(5 * time.Second)
			c.MustSweep()
			c.Store.Client.Del(c.Ctx, c.Key(a.TaskID, "task:acme/prod/"+a.TaskID)) // the store loses it
			c.Reconcile()
			c.Remove(c.Key(a.TaskID, "fences"), c.IDs["w1"])
			if b := c.MustBeat(a, ""); b.Err != nil {
				c.Fatal(b.Err)
			}
			c.WantState(a.TaskID, model.Running, "")
			c.WantRepairs("held_by_ended_worker")
			c.WantState(a.TaskID, model.Failed, model.WorkerLost) // its queue was lost with the record
		})
	})
	t.Run("a live worker whose record the store lost", func(t *testing.T) {
		trackertest.Claims(t, func(c *trackertest.Fleet) {
			c.Hire("w1")
			a := c.MustHolding("w1", 1)[0]
			c.AdvanceAlive(35*time.Second, c.IDs["w1"])
			c.Store.Client.Del(c.Ctx, trackertest.WorkerKey(c.IDs["w1"], "worker:acme/prod/"+c.IDs["w1"]))
			c.Reconcile()
			c.WantState(a.TaskID, model.Running, "") // its next heartbeat restores it
		})
	})
	t.Run("a worker that the store lost", func(t *testing.T) {
		trackertest.Claims(t, func(c *trackertest.Fleet) {
			c.Hire("w1")
			c.Hire("w2")
			a := c.MustHolding("w1", 1)[0]
			own := c.MustHolding("w2", 1, func(n *model.NewTask) { n.HeartbeatTimeout = time.Minute })[0]
			for _, id := range c.IDs {
				c.Store.Client.Del(c.Ctx, trackertest.WorkerKey(id, "worker:acme/prod/"+id))
			}
			c.Reconcile() // its entries are removed
			c.WantState(a.TaskID, model.Running, "")
			c.Advance(31 * time.Second)
			c.WantRepairs("held_by_ended_worker")
			c.WantState(a.TaskID, model.Queued, "")
			c.WantState(own.TaskID, model.Running, "") // its own heartbeats show it
		})
	})
}
