package workers_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

func adopt(h *trackertest.Harness, r *workers.Registered) {
	h.Helper()
	if err := h.Workers.Adopt(h.Ctx, trackertest.Scope, r.WorkerID, r.Record); err != nil {
		h.Fatal(err)
	}
}

func hosted(n *model.NewWorker) {
	n.Hostname, n.PID, n.Name, n.Version, n.Runtimes = "host-1", 4711, "mailer", "1.2", []string{"python"}
	n.Labels = map[string]string{"region": "eu"}
}

// A worker whose record the store lost is restored from its token, and its silence ends it like any other.
func TestAWorkerThatTheStoreLostIsAdopted(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		r := h.MustRegister(hosted)
		h.Advance(2 * time.Second)
		before := h.MustWorker(r.WorkerID)
		h.Empty()
		_, err := h.Workers.Beat(h.Ctx, trackertest.Scope, r.WorkerID, workers.WorkerBeat{})
		h.WantCode(err, workers.WorkerNotFound)
		adopt(h, r)
		adopt(h, r) // a known worker is left unchanged
		h.MustBeatWorker(r.WorkerID)
		after := h.WantWorker(r.WorkerID, model.Online, "")
		before.Silent, before.LastHeartbeatAt = 0, after.LastHeartbeatAt // it has just sent a heartbeat
		if got, want := fmt.Sprintf("%+v", after), fmt.Sprintf("%+v", before); got != want {
			h.Errorf("it came back as\n%s, was\n%s", got, want)
		}
		if got := h.Events(r.WorkerID); got["system.adopted"] != 1 {
			h.Errorf("events: %v", got)
		}
		if m := h.MustMachine("host-1"); m.Status != model.Online {
			h.Errorf("its machine: %+v", m)
		}
		h.MustCreate(func(n *model.NewTask) { n.Queue, n.Type, n.HeartbeatTimeout = "default", "send_email", 0 })
		if got, err := h.Queues.Claim(h.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: r.WorkerID, Queue: "default",
			Max: 1}); err != nil || len(got) != 1 {
			h.Errorf("it claims %v: %v", got, err)
		}
		h.Advance(31 * time.Second)
		h.MustSweep()
		h.WantWorker(r.WorkerID, model.Offline, model.WorkerStale)
		adopt(h, r) // OFFLINE is permanent
		h.WantWorker(r.WorkerID, model.Offline, model.WorkerStale)
	})
}

// A worker that has registered again meanwhile keeps the identity: the old one is superseded, as it would have been before.
func TestAnAdoptedWorkerMayBeSuperseded(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		old := h.MustRegister(hosted)
		h.Empty()
		replacement := h.MustRegister(hosted)
		adopt(h, old)
		h.WantWorker(old.WorkerID, model.Offline, model.WorkerSuperseded)
		h.WantWorker(replacement.WorkerID, model.Online, "")
		h.Empty()
		adopt(h, old)
		replacement = h.MustRegister(hosted)
		h.WantWorker(old.WorkerID, model.Offline, model.WorkerSuperseded)
		h.WantWorker(replacement.WorkerID, model.Online, "")
	})
}

// The size of a token is limited: a worker with very many types keeps what it holds and must register again for more.
func TestAnAdoptedWorkerWithoutItsTypes(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		r := h.MustRegister(hosted, func(n *model.NewWorker) {
			for i := range 200 {
				n.Types = append(n.Types, fmt.Sprintf("type-%d", i))
			}
		})
		size := 0
		for _, part := range r.Record {
			size += len(part)
		}
		if size > 1500 || slices.Contains(r.Record, "y") {
			h.Errorf("the token carries %d bytes: %q", size, r.Record)
		}
		h.Empty()
		adopt(h, r)
		h.MustBeatWorker(r.WorkerID)
		_, err := h.Queues.Claim(h.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: r.WorkerID, Queue: "default", Max: 1})
		h.WantCode(err, workers.WorkerNotFound)
		h.MustBeatWorker(r.WorkerID)
	})
}

// An adopted task keeps its deadline.
func TestAnAdoptedTaskHasItsDeadline(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.Running(func(n *model.NewTask) { n.TaskID, n.Deadline = "t1", h.Store.Clock.Now().Add(time.Minute) })
		h.Running(func(n *model.NewTask) { n.TaskID = "t2" })
		h.Empty()
		if b := h.MustBeat(a, ""); b.Err != nil {
			h.Fatal(b.Err)
		}
		if task := h.MustGet("t1"); !task.Deadline.Equal(time.UnixMilli(a.Deadline)) {
			h.Errorf("its deadline is %v", task.Deadline)
		}
		h.Store.Clock.Advance(time.Minute)
		h.MustSweep()
		h.WantState("t1", model.Failed, model.DeadlineExceeded)
	})
}

// An empty store learns the number of shards again: a replica that starts later must not choose another number.
func TestAnEmptyStoreLearnsTheShardsAgain(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.Empty()
		if tr := trackertest.Open(t, tracker.Options{RedisURL: h.Store.URL, Scripts: h.Store.Scripts,
			RedisTimeout: 10 * time.Second}); tr.Store.Shards() != h.Tracker.Store.Shards() {
			h.Errorf("a new replica has %d shards, the others have %d", tr.Store.Shards(), h.Tracker.Store.Shards())
		}
	})
}

// An adopted worker claims no more than it has room for, given what it already holds.
func TestAnAdoptedWorkerKeepsToItsMaximum(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		r := c.MustRegister(func(n *model.NewWorker) { n.Queue, n.Types, n.MaxConcurrent = "q", []string{"x"}, 3 })
		c.IDs["w1"] = r.WorkerID
		c.MustHolding("w1", 2)
		for _, id := range []string{"a", "b", "c"} {
			c.MustQueue(id, "x")
		}
		// its shard lost it, the others did not
		if err := c.Store.Client.Del(c.Ctx, trackertest.WorkerRecord(c.Tracker, trackertest.Scope, r.WorkerID)).Err(); err != nil {
			c.Fatal(err)
		}
		adopt(c.Harness, r)
		if got := c.MustClaim("w1", 3); len(got) != 1 {
			c.Errorf("with room for one it claimed %v", trackertest.IDs(got))
		}
		if got := c.MustClaim("w1", 3); len(got) != 0 {
			c.Errorf("full, it claimed %v", trackertest.IDs(got))
		}
	})
}
