package tracker_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker"
)

// key names a fixed key of a task's shard.
func (h *harness) key(id, name string) string {
	return fmt.Sprintf("lubdub:{%d}:%s", h.ShardOf(scope, id), name)
}

// workerKey names a fixed key of a worker's shard, which its id ends with.
func workerKey(id, name string) string {
	shard, _ := strconv.ParseInt(id[len(id)-3:], 16, 16)
	return fmt.Sprintf("lubdub:{%d}:%s", shard, name)
}

// remove takes members out of a sorted set, as damage; they must have been there.
func (h *harness) remove(key string, members ...any) {
	h.Helper()
	if n, err := h.store.Client.ZRem(h.ctx, key, members...).Result(); err != nil || int(n) != len(members) {
		h.Fatalf("%d of %v were in %s: %v", n, members, key, err)
	}
}

// plant puts a member where it does not belong.
func (h *harness) plant(key, member string) {
	h.Helper()
	const far = 9e15
	if n, err := h.store.Client.ZAdd(h.ctx, key, redis.Z{Score: far, Member: member}).Result(); err != nil || n != 1 {
		h.Fatalf("%s was in %s already: %v", member, key, err)
	}
}

// find gives the one member of a sorted set that has a text in it.
func (h *harness) find(key, text string) string {
	h.Helper()
	found := ""
	for _, m := range h.store.Client.ZRange(h.ctx, key, 0, -1).Val() {
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

// reconcile walks over everything once.
func (h *harness) reconcile() map[string]int {
	h.Helper()
	repairs, err := h.sweeper.Reconcile(h.ctx)
	if err != nil {
		h.Fatal(err)
	}
	return repairs
}

// wantRepairs walks twice: the first must repair exactly this and tell it, the second nothing.
func (h *harness) wantRepairs(want ...string) {
	h.Helper()
	before := h.events("")["system.repaired"]
	wanted := map[string]int{}
	for _, what := range want {
		wanted[what]++
	}
	if got := h.reconcile(); !maps.Equal(got, wanted) {
		h.Fatalf("repaired %v, want %v", got, wanted)
	}
	if n := h.events("")["system.repaired"] - before; n != len(want) {
		h.Fatalf("%d events of %d repairs", n, len(want))
	}
	if again := h.reconcile(); len(again) != 0 {
		h.Fatalf("again: %v", again)
	}
}

func TestReconcilerRepairsTasks(t *testing.T) {
	t.Parallel()
	const ghost = "acme/prod/ghost"
	running := func(c *crew) *tracker.Attempt {
		return c.running(func(n *tracker.NewTask) { n.TaskID = "t1" })
	}
	for name, test := range map[string]func(c *crew){
		"entries without a record": func(c *crew) {
			running(c)
			c.plant(c.key("ghost", "ix"), "acme/prod/R/ghost")
			c.plant(c.key("ghost", "held"), "wkr_01HGW5N7XHJM4GX29KZRXQP6N9000/"+ghost+"#1.abcd/0//")
			c.plant(c.key("ghost", "timers"), "r:"+ghost+"#1.abcd")
			c.plant(c.key("ghost", "due"), "d:"+ghost)
			c.plant(c.key("ghost", "ready"), "acme/prod/q//x///0001768471200000/ghost/0/")
			for _, key := range []string{"progress", "cancels"} {
				c.store.Client.HSet(c.ctx, c.key("ghost", key), ghost+"#1.abcd", "\t\t\t")
			}
			c.store.Client.SAdd(c.ctx, c.key("ghost", "timeouts"), "2000")
			c.plant(c.key("ghost", "beats:2000"), ghost+"#1.abcd")
			c.wantRepairs("stray_ix", "stray_held", "stray_timers", "stray_due", "stray_ready", "stray_progress", "stray_cancels", "stray_beats")
		},
		"entries of a time that is over": func(c *crew) {
			a := running(c)
			if _, err := c.Complete(c.ctx, a, tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
				c.Fatal(err)
			}
			member := fmt.Sprintf("acme/prod/t1#1.%s", a.Fence)
			c.plant(c.key("t1", "ix"), "acme/prod/R/t1")
			c.plant(c.key("t1", "beats:2000"), member)
			c.plant(c.key("t1", "timers"), "s:"+member)
			c.plant(c.key("t1", "due"), "b:acme/prod/t1")
			c.store.Client.HSet(c.ctx, c.key("t1", "cancels"), member, "1000\t\t")
			c.wantRepairs("stray_ix", "stray_beats", "stray_timers", "stray_due", "stray_cancels")
			c.wantState("t1", tracker.Succeeded, "")
		},
		"a running task without its beat": func(c *crew) {
			a := running(c)
			c.remove(c.key("t1", "beats:2000"), "acme/prod/t1#1."+a.Fence)
			c.advance(3 * time.Second)
			if r := c.sweep(); r.Zombies != 0 {
				c.Fatal("something else found it")
			}
			c.wantRepairs("missing_beat")
			c.advance(2 * time.Second) // it gets a whole timeout
			c.sweep()
			c.wantState("t1", tracker.Running, "")
			c.advance(time.Second)
			c.sweep()
			c.wantState("t1", tracker.Failed, tracker.HeartbeatTimeout)
		},
		"a timeout that nobody sweeps": func(c *crew) {
			running(c)
			c.store.Client.SRem(c.ctx, c.key("t1", "timeouts"), "2000")
			c.advance(3 * time.Second)
			if r := c.sweep(); r.Zombies != 0 {
				c.Fatal("something else found it")
			}
			c.wantRepairs("missing_timeout")
			c.sweep()
			c.wantState("t1", tracker.Failed, tracker.HeartbeatTimeout)
		},
		"a task that no list has": func(c *crew) {
			c.running(func(n *tracker.NewTask) { n.TaskID, n.RunID = "t1", "r1" })
			c.remove(c.key("t1", "ix"), "acme/prod/R/t1")
			c.remove(c.key("t1", "run:acme/prod/r1"), "R/t1")
			c.wantRepairs("missing_ix", "missing_run")
			if page, err := c.List(c.ctx, tracker.TaskFilter{Scope: scope, State: tracker.Running, PageSize: 10}); err != nil || page.Total != 1 {
				c.Fatalf("%+v %v", page, err)
			}
		},
		"a size that is not listed, and sizes that nothing has": func(c *crew) {
			c.create(func(n *tracker.NewTask) { n.TaskID, n.Payload = "t1", []byte(`"`+strings.Repeat("x", 5000)+`"`) })
			c.remove(c.key("t1", "ix"), "~acme/J/prod/t1")
			c.plant(c.key("t1", "ix"), "~acme/Z/prod/t1")
			c.plant(c.key("ghost", "ix"), "~acme/Z/prod/ghost")
			c.wantRepairs("missing_ix", "stray_ix", "stray_ix")
			if left := c.sizes(); len(left) != 1 || left[0] != "~acme/J/prod/t1" {
				c.Fatalf("%v", left)
			}
		},
		"a dispatched task without its start timeout": func(c *crew) {
			c.create(func(n *tracker.NewTask) { n.TaskID, n.StartTimeout = "t1", 5*time.Second })
			c.remove(c.key("t1", "timers"), c.find(c.key("t1", "timers"), "s:acme/prod/t1#"))
			c.wantRepairs("missing_timer")
			c.advance(5 * time.Second)
			c.sweep()
			c.wantState("t1", tracker.Failed, tracker.StartTimeout)
		},
		"a running task without its run timeout and deadline": func(c *crew) {
			a := c.running(func(n *tracker.NewTask) {
				n.TaskID, n.RunTimeout, n.Deadline = "t1", 5*time.Second, c.store.Clock.Now().Add(time.Hour)
			})
			c.remove(c.key("t1", "timers"), "r:acme/prod/t1#1."+a.Fence)
			c.remove(c.key("t1", "due"), "d:acme/prod/t1")
			c.wantRepairs("missing_timer", "missing_due")
			c.harness.pass(5*time.Second, a)
			c.sweep()
			c.wantState("t1", tracker.Failed, tracker.RunTimeout)
		},
		"a cancel that nobody is told": func(c *crew) {
			a := running(c)
			if _, err := c.Cancel(c.ctx, scope, "t1", "why"); err != nil {
				c.Fatal(err)
			}
			c.store.Client.HDel(c.ctx, c.key("t1", "cancels"), "acme/prod/t1#1."+a.Fence)
			c.wantRepairs("missing_cancel")
			if b := c.beat(a, ""); b.Cancel == nil || b.Cancel.Reason != "why" {
				c.Fatalf("%+v", b.Cancel)
			}
		},
		"a delivered cancel without its grace": func(c *crew) {
			a := running(c)
			if _, err := c.Cancel(c.ctx, scope, "t1", ""); err != nil {
				c.Fatal(err)
			}
			c.CancelDelivered(a)
			for b := c.beat(a, ""); !b.Cancel.Delivered; b = c.beat(a, "") {
				continue // recorded beside the caller
			}
			c.remove(c.key("t1", "timers"), "c:acme/prod/t1#1."+a.Fence)
			c.wantRepairs("missing_timer")
		},
		"a queued task that nobody can claim": func(c *crew) {
			c.hire("w1")
			c.queue("t1", "x")
			c.remove(c.key("t1", "ready"), c.find(c.key("t1", "ready"), "/t1/"))
			c.wantRepairs("missing_ready")
			c.wantIDs(c.claim("w1", 1), "t1")
		},
		"a task that waits for its time for ever": func(c *crew) {
			c.hire("w1")
			c.queue("t1", "x", func(n *tracker.NewTask) { n.NotBefore = c.store.Clock.Now().Add(time.Second) })
			c.remove(c.key("t1", "due"), "b:acme/prod/t1")
			c.advance(2 * time.Second)
			c.sweep()
			c.wantRepairs("missing_due")
			c.sweep()
			c.wantIDs(c.claim("w1", 1), "t1")
		},
		"a finished task that would stay for ever": func(c *crew) {
			if _, err := c.Complete(c.ctx, running(c), tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
				c.Fatal(err)
			}
			c.remove(c.key("t1", "due"), "x:acme/prod/t1")
			c.wantRepairs("missing_due")
			c.store.Clock.Advance(tracker.DefaultFinishedRetention)
			c.tick()
			if r := c.sweep(); r.Removed != 1 {
				c.Fatalf("%+v", r)
			}
		},
		"a claimed task that nobody holds": func(c *crew) {
			c.hire("w1")
			c.holding("w1", 1)
			id := "w1-000"
			c.remove(c.key(id, "held"), c.find(c.key(id, "held"), "/"+id+"#"))
			c.wantRepairs("missing_held")
			c.advance(31 * time.Second)
			if r := c.sweep(); r.Recovered != 1 {
				c.Fatalf("%+v", r)
			}
		},
		"a record that was lost": func(c *crew) {
			a := running(c)
			c.store.Client.Del(c.ctx, c.key("t1", "task:acme/prod/t1"))
			c.wantRepairs("stray_ix", "stray_beats", "stray_progress")
			if b := c.beat(a, ""); b.Err != nil { // its token proves it
				c.Fatal(b.Err)
			}
			c.wantState("t1", tracker.Running, "")
		},
	} {
		t.Run(name, func(t *testing.T) { claims(t, test) })
	}
}

func TestReconcilerTakesWhatTheDeadHold(t *testing.T) {
	t.Parallel()
	// Without its recovery an ended worker holds its tasks for good. Its fences may be long forgotten.
	forget := func(c *crew, id string) {
		c.remove(workerKey(id, "recoveries"), "acme/prod/"+id)
		c.store.Client.Del(c.ctx, workerKey(id, "recovery:acme/prod/"+id))
	}
	t.Run("a worker that is OFFLINE", func(t *testing.T) {
		claims(t, func(c *crew) {
			c.hire("w1")
			held := c.holding("w1", 5)
			if err := c.EndWithoutRecovery(scope, c.ids["w1"]); err != nil {
				c.Fatal(err)
			}
			if r := c.reconcile(); len(r) != 0 { // its recovery is under way
				c.Fatal(r)
			}
			forget(c, c.ids["w1"])
			c.sweep()
			c.wantRepairs("held_by_ended_worker", "held_by_ended_worker", "held_by_ended_worker", "held_by_ended_worker", "held_by_ended_worker")
			for _, a := range held {
				if task := c.wantState(a.TaskID, tracker.Queued, ""); task.Losses != 1 || task.History[0].Reason != tracker.WorkerLost {
					c.Fatalf("%+v", task)
				}
			}
		})
	})
	t.Run("one whose fence is forgotten when its attempt is adopted", func(t *testing.T) {
		claims(t, func(c *crew) {
			c.hire("w1")
			a := c.holding("w1", 1)[0]
			c.advance(31 * time.Second)
			c.sweep()
			c.advance(5 * time.Second)
			c.sweep()
			c.store.Client.Del(c.ctx, c.key(a.TaskID, "task:acme/prod/"+a.TaskID)) // the store loses it
			c.reconcile()
			c.remove(c.key(a.TaskID, "fences"), c.ids["w1"])
			if b := c.beat(a, ""); b.Err != nil {
				c.Fatal(b.Err)
			}
			c.wantState(a.TaskID, tracker.Running, "")
			c.wantRepairs("held_by_ended_worker")
			c.wantState(a.TaskID, tracker.Failed, tracker.WorkerLost) // its queue went with the record
		})
	})
	t.Run("a live worker whose record the store lost", func(t *testing.T) {
		claims(t, func(c *crew) {
			c.hire("w1")
			a := c.holding("w1", 1)[0]
			c.advanceAlive(35*time.Second, c.ids["w1"])
			c.store.Client.Del(c.ctx, workerKey(c.ids["w1"], "worker:acme/prod/"+c.ids["w1"]))
			c.reconcile()
			c.wantState(a.TaskID, tracker.Running, "") // its next beat brings it back
		})
	})
	t.Run("a worker that the store lost", func(t *testing.T) {
		claims(t, func(c *crew) {
			c.hire("w1")
			c.hire("w2")
			a := c.holding("w1", 1)[0]
			own := c.holding("w2", 1, func(n *tracker.NewTask) { n.HeartbeatTimeout = time.Minute })[0]
			for _, id := range c.ids {
				c.store.Client.Del(c.ctx, workerKey(id, "worker:acme/prod/"+id))
			}
			c.reconcile() // its entries go
			c.wantState(a.TaskID, tracker.Running, "")
			c.advance(31 * time.Second)
			c.wantRepairs("held_by_ended_worker")
			c.wantState(a.TaskID, tracker.Queued, "")
			c.wantState(own.TaskID, tracker.Running, "") // its own beats tell
		})
	})
}
