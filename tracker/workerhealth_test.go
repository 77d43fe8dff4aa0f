package tracker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// How often a worker went stale is counted for all that were started under its name; here its machine goes with it.
func TestFlapping(t *testing.T) {
	t.Parallel()
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

// A machine goes stale when its last worker does: one death of a host is one, however many workers it had, and a worker
// that dies beside others is none.
func TestAMachineFlapsByItsOwnChanges(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		on := func(host string, n int) (ids []string) {
			for range n {
				ids = append(ids, h.register(func(w *tracker.NewWorker) { w.MachineID = host }).WorkerID)
			}
			return ids
		}
		want := func(host string, count int, flapping bool) {
			h.Helper()
			if m := h.machine(host); m.StaleCount != count || m.Flapping != flapping {
				h.Fatalf("%s went stale %d times, flapping %v; want %d, %v", host, m.StaleCount, m.Flapping, count, flapping)
			}
		}
		for deaths := 1; deaths <= 3; deaths++ {
			on("dies", 2)
			h.advance(5 * time.Second)
			on("dies", 1) // silent a little later
			stays := on("stays", 2)[:1]
			h.advanceAlive(26*time.Second, stays...)
			h.sweep()
			h.advanceAlive(5*time.Second, stays...)
			h.sweep()
			want("dies", deaths, deaths == 3)
			want("stays", 0, false)
			if _, err := h.RetireWorker(h.ctx, scope, stays[0], tracker.WorkerDeregistered, ""); err != nil {
				h.Fatal(err)
			}
			want("stays", 0, false)
		}
		if e := h.events(""); e["machine.flapping"] != 1 {
			h.Fatalf("%v", e)
		}
	})
}

func TestUptime(t *testing.T) {
	t.Parallel()
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
		if _, err := h.RetireWorker(h.ctx, scope, b, tracker.WorkerDeregistered, ""); err != nil {
			h.Fatal(err)
		}
		h.advance(60 * time.Second)
		if w, m := h.worker(b), h.machine("host-1"); w.Uptime != 100 || m.Uptime != 25 { // its machine may come back
			h.Fatalf("%v %v", w.Uptime, m.Uptime)
		}
	})
}

// What a worker's uptime was at its end it stays, whatever ended it.
func TestUptimeIsFrozenAtTheEnd(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		silent, forced := h.register().WorkerID, h.register().WorkerID
		h.advanceAlive(50*time.Second, silent, forced)
		h.advanceAlive(30*time.Second, forced)
		h.sweep()
		h.wantWorker(silent, tracker.Offline, tracker.WorkerStale)
		if _, err := h.RetireWorker(h.ctx, scope, forced, tracker.WorkerForced, ""); err != nil {
			h.Fatal(err)
		}
		for _, later := range []time.Duration{0, time.Second, time.Hour, 23 * time.Hour} {
			h.store.Clock.Advance(later)
			h.tick()
			if s, f := h.worker(silent).Uptime, h.worker(forced).Uptime; s != 62.5 || f != 100 {
				h.Fatalf("%v later: %v and %v", later, s, f)
			}
		}
	})
}

// A worker that the sweepers would never look at again is found by the walk over the index: one without a beat on record
// is stale, one with a beat is looked at again.
func TestLostWorkersAreFound(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
