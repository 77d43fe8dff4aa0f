package tracker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// How often a worker went stale is counted for all that were started under its name, and for its machine.
func TestFlapping(t *testing.T) {
	contract(t, func(h *harness) {
		named := func(n *tracker.NewWorker) { n.Name = "mailer-1" }
		var id string
		for i := range 3 {
			id = h.register(named, func(n *tracker.NewWorker) { n.Hostname, n.PID = "host-1", 100+i }).WorkerID
			if w := h.worker(id); w.StaleCount != i || w.Flapping {
				h.Fatalf("%d: %+v", i, w)
			}
			h.advance(30 * time.Second)
			h.sweep()
		}
		other := h.register().WorkerID
		if w := h.worker(id); w.StaleCount != 3 || !w.Flapping {
			h.Fatalf("%+v", w)
		}
		if w := h.worker(other); w.StaleCount != 0 || w.Flapping {
			h.Fatalf("%+v", w)
		}
		if m := h.machine("host-1"); m.StaleCount != 3 || !m.Flapping {
			h.Fatalf("%+v", m)
		}
		if e := h.events(""); e["worker.flapping"] != 1 || e["machine.flapping"] != 1 {
			h.Fatalf("%v", e)
		}
		h.store.Clock.Advance(24 * time.Hour)
		h.tick()
		h.beatWorker(other)
		if m := h.machine("host-1"); m.StaleCount != 0 || m.Flapping {
			h.Fatalf("a day later: %+v", m)
		}
	})
}

func TestUptime(t *testing.T) {
	contract(t, func(h *harness) {
		a := h.register().WorkerID
		h.advance(30 * time.Second) // never heard again: it was up for nothing that anybody knows of
		h.sweep()
		if w := h.worker(a); w.Uptime != 0 {
			h.Fatalf("%v", w.Uptime)
		}
		b := h.register().WorkerID
		h.advanceAlive(30*time.Second, b)
		if w, m := h.worker(b), h.machine("host-1"); w.Uptime != 100 || m.Uptime != 50 {
			h.Fatalf("%v %v", w.Uptime, m.Uptime)
		}
		if _, err := h.RetireWorker(h.ctx, scope, b, tracker.WorkerDeregistered); err != nil {
			h.Fatal(err)
		}
		h.advance(60 * time.Second)
		if w, m := h.worker(b), h.machine("host-1"); w.Uptime != 33.3 || m.Uptime != 25 {
			h.Fatalf("%v %v", w.Uptime, m.Uptime)
		}
	})
}

// A worker that the sweepers would never look at again is found by the walk over the index: one without a beat on record
// is stale, one with a beat is looked at again.
func TestLostWorkersAreFound(t *testing.T) {
	contract(t, func(h *harness) {
		never, known := h.register().WorkerID, h.register().WorkerID
		for shard := range h.Shards() {
			beats := fmt.Sprintf("lubdub:{%d}:workerbeats", shard)
			for _, id := range []string{never, known} {
				h.store.Client.ZRem(h.ctx, beats, scope.String()+"/"+id)
			}
			h.store.Client.HDel(h.ctx, fmt.Sprintf("lubdub:{%d}:worker:%s/%s", shard, scope, never), "bl")
		}
		if w := h.worker(never); w.Liveness != tracker.Lost || !w.LastHeartbeatAt.IsZero() || fmt.Sprint(w.Unschedulable) != "[stale]" {
			h.Fatalf("%+v", w)
		}
		if r := h.sweep(); r.StaleWorkers != 1 {
			h.Fatalf("%+v", r)
		}
		h.wantWorker(never, tracker.Offline, tracker.WorkerStale)
		h.wantWorker(known, tracker.Online, "")
		h.advance(30 * time.Second)
		h.sweep()
		h.wantWorker(known, tracker.Offline, tracker.WorkerStale)
	})
}

// A worker whose record the store lost leaves nothing behind in the lists.
func TestWorkersWithoutARecordLeaveTheLists(t *testing.T) {
	contract(t, func(h *harness) {
		id := h.register().WorkerID
		for shard := range h.Shards() {
			h.store.Client.Del(h.ctx, fmt.Sprintf("lubdub:{%d}:worker:%s/%s", shard, scope, id))
			h.store.Client.ZRem(h.ctx, fmt.Sprintf("lubdub:{%d}:workerbeats", shard), scope.String()+"/"+id)
		}
		h.sweep()
		if page, err := h.Workers(h.ctx, tracker.WorkerFilter{Scope: scope, PageSize: 10}); err != nil || page.Total != 0 {
			h.Fatalf("%+v %v", page, err)
		}
	})
}
