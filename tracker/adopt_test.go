package tracker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// empty loses everything that the store holds, as a restart without its data does.
func (h *harness) empty() {
	h.Helper()
	if err := h.store.Client.FlushDB(h.ctx).Err(); err != nil {
		h.Fatal(err)
	}
	h.store.Clock.Advance(0) // the clock in hand is no part of the data
	h.tick()
}

func (h *harness) adopt(r *tracker.Registered) {
	h.Helper()
	if err := h.AdoptWorker(h.ctx, scope, r.WorkerID, r.Record); err != nil {
		h.Fatal(err)
	}
}

func hosted(n *tracker.NewWorker) {
	n.Hostname, n.PID, n.Name, n.Version, n.Runtimes = "host-1", 4711, "mailer", "1.2", []string{"python"}
	n.Labels = map[string]string{"region": "eu"}
}

// A worker whose record the store lost is what it was, once its token has been shown; it dies of its silence like any other.
func TestAWorkerThatTheStoreLostIsAdopted(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		r := h.register(hosted)
		h.advance(2 * time.Second)
		before := h.worker(r.WorkerID)
		h.empty()
		_, err := h.BeatWorker(h.ctx, scope, r.WorkerID, tracker.WorkerBeat{})
		h.wantCode(err, tracker.WorkerNotFound)
		h.adopt(r)
		h.adopt(r) // what the store knows is left alone
		h.beatWorker(r.WorkerID)
		after := h.wantWorker(r.WorkerID, tracker.Online, "")
		before.Silent, before.LastHeartbeatAt = 0, after.LastHeartbeatAt // it has just beaten
		if got, want := fmt.Sprintf("%+v", after), fmt.Sprintf("%+v", before); got != want {
			h.Errorf("it came back as\n%s, was\n%s", got, want)
		}
		if got := h.events(r.WorkerID); got["system.adopted"] != 1 {
			h.Errorf("events: %v", got)
		}
		if m := h.machine("host-1"); m.Status != tracker.Online {
			h.Errorf("its machine: %+v", m)
		}
		h.create(func(n *tracker.NewTask) { n.Queue, n.Type, n.HeartbeatTimeout = "default", "send_email", 0 })
		if got, err := h.Claim(h.ctx, tracker.ClaimRequest{Scope: scope, WorkerID: r.WorkerID, Queue: "default", Max: 1}); err != nil || len(got) != 1 {
			h.Errorf("it claims %v: %v", got, err)
		}
		h.advance(31 * time.Second)
		h.sweep()
		h.wantWorker(r.WorkerID, tracker.Offline, tracker.WorkerStale)
		h.adopt(r) // OFFLINE is for ever
		h.wantWorker(r.WorkerID, tracker.Offline, tracker.WorkerStale)
	})
}

// Whoever registered anew meanwhile keeps the identity: the old one is superseded, as it would have been before.
func TestAnAdoptedWorkerMayBeSuperseded(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		old := h.register(hosted)
		h.empty()
		anew := h.register(hosted)
		h.adopt(old)
		h.wantWorker(old.WorkerID, tracker.Offline, tracker.WorkerSuperseded)
		h.wantWorker(anew.WorkerID, tracker.Online, "")
		h.empty()
		h.adopt(old)
		anew = h.register(hosted)
		h.wantWorker(old.WorkerID, tracker.Offline, tracker.WorkerSuperseded)
		h.wantWorker(anew.WorkerID, tracker.Online, "")
	})
}

// A token has room for so much: a worker with very many types keeps what it holds and must register again for more.
func TestAnAdoptedWorkerWithoutItsTypes(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		r := h.register(hosted, func(n *tracker.NewWorker) {
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
		h.empty()
		h.adopt(r)
		h.beatWorker(r.WorkerID)
		_, err := h.Claim(h.ctx, tracker.ClaimRequest{Scope: scope, WorkerID: r.WorkerID, Queue: "default", Max: 1})
		h.wantCode(err, tracker.WorkerNotFound)
		h.beatWorker(r.WorkerID)
	})
}

// An adopted task keeps its deadline.
func TestAnAdoptedTaskHasItsDeadline(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		a := h.running(func(n *tracker.NewTask) { n.TaskID, n.Deadline = "t1", h.store.Clock.Now().Add(time.Minute) })
		h.running(func(n *tracker.NewTask) { n.TaskID = "t2" })
		h.empty()
		if b := h.beat(a, ""); b.Err != nil {
			h.Fatal(b.Err)
		}
		if task := h.get("t1"); !task.Deadline.Equal(time.UnixMilli(a.Deadline)) {
			h.Errorf("its deadline is %v", task.Deadline)
		}
		h.store.Clock.Advance(time.Minute)
		h.sweep()
		h.wantState("t1", tracker.Failed, tracker.DeadlineExceeded)
	})
}

// A store that lost everything is told how many shards the deployment has: a replica that starts later must not choose
// another number.
func TestAnEmptyStoreLearnsTheShardsAgain(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		h.empty()
		if tr := open(t, tracker.Options{RedisURL: h.store.URL, Scripts: h.store.Scripts}); tr.Shards() != h.Shards() {
			h.Errorf("a new replica has %d shards, the others have %d", tr.Shards(), h.Shards())
		}
	})
}

// An adopted worker claims no more than it has room for beside what it holds already.
func TestAnAdoptedWorkerKeepsToItsMaximum(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		r := c.register(func(n *tracker.NewWorker) { n.Queue, n.Types, n.MaxConcurrent = "q", []string{"x"}, 3 })
		c.ids["w1"] = r.WorkerID
		c.holding("w1", 2)
		for _, id := range []string{"a", "b", "c"} {
			c.queue(id, "x")
		}
		if err := c.store.Client.Del(c.ctx, c.WorkerKey(scope, r.WorkerID)).Err(); err != nil { // its shard lost it, the others did not
			c.Fatal(err)
		}
		c.adopt(r)
		if got := c.claim("w1", 3); len(got) != 1 {
			c.Errorf("with room for one it claimed %v", ids(got))
		}
		if got := c.claim("w1", 3); len(got) != 0 {
			c.Errorf("full, it claimed %v", ids(got))
		}
	})
}
