package workers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// How often a worker went stale is counted for all that were started under its name; here its machine goes with it.
func TestFlapping(t *testing.T) {
	t.Parallel()
	var registry *prometheus.Registry
	trackertest.Contract(t, func(h *trackertest.Harness) {
		named := func(n *tracker.NewWorker) { n.Name = "mailer-1" }
		var id string
		for i := range 3 {
			id = h.MustRegister(named, func(n *tracker.NewWorker) { n.Hostname, n.PID = "host-1", 100+i }).WorkerID
			if w := h.MustWorker(id); w.StaleCount != i || w.Flapping {
				h.Fatalf("%d: %+v", i, w)
			}
			h.Advance(30 * time.Second)
			h.MustSweep()
		}
		other := h.MustRegister().WorkerID
		if w := h.MustWorker(id); w.StaleCount != 3 || !w.Flapping {
			h.Fatalf("%+v", w)
		}
		if w := h.MustWorker(other); w.StaleCount != 0 || w.Flapping {
			h.Fatalf("%+v", w)
		}
		if m := h.MustMachine("host-1"); m.StaleCount != 3 || !m.Flapping {
			h.Fatalf("%+v", m)
		}
		if e := h.Events(""); e["worker.flapping"] != 1 || e["machine.flapping"] != 1 {
			h.Fatalf("%v", e)
		}
		wantFlapping(h, registry)
		h.Store.Clock.Advance(24 * time.Hour)
		h.MustTick()
		h.MustBeatWorker(other)
		if m := h.MustMachine("host-1"); m.StaleCount != 0 || m.Flapping {
			h.Fatalf("a day later: %+v", m)
		}
	}, func(o *tracker.Options) {
		registry = prometheus.NewRegistry()
		o.Registerer = registry
	})
}

// wantFlapping wants one worker and one machine counted that flap.
func wantFlapping(h *trackertest.Harness, registry *prometheus.Registry) {
	h.Helper()
	const want = "# HELP lubdub_flapping_total Workers and machines that went silent for the third time within a day, by kind: " +
		"worker, machine.\n# TYPE lubdub_flapping_total counter\n" +
		"lubdub_flapping_total{kind=\"machine\"} 1\nlubdub_flapping_total{kind=\"worker\"} 1\n"
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "lubdub_flapping_total"); err != nil {
		h.Error(err)
	}
}

// A machine goes stale when its last worker does: one death of a host is one, however many workers it had, and a worker
// that dies beside others is none.
func TestAMachineFlapsByItsOwnChanges(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		on := func(host string, n int) (ids []string) {
			for range n {
				ids = append(ids, h.MustRegister(func(w *tracker.NewWorker) { w.MachineID = host }).WorkerID)
			}
			return ids
		}
		want := func(host string, count int, flapping bool) {
			h.Helper()
			if m := h.MustMachine(host); m.StaleCount != count || m.Flapping != flapping {
				h.Fatalf("%s went stale %d times, flapping %v; want %d, %v", host, m.StaleCount, m.Flapping, count, flapping)
			}
		}
		for deaths := 1; deaths <= 3; deaths++ {
			on("dies", 2)
			h.Advance(5 * time.Second)
			on("dies", 1) // silent a little later
			stays := on("stays", 2)[:1]
			h.AdvanceAlive(26*time.Second, stays...)
			h.MustSweep()
			h.AdvanceAlive(5*time.Second, stays...)
			h.MustSweep()
			want("dies", deaths, deaths == 3)
			want("stays", 0, false)
			if _, err := h.RetireWorker(h.Ctx, trackertest.Scope, stays[0], tracker.WorkerDeregistered, ""); err != nil {
				h.Fatal(err)
			}
			want("stays", 0, false)
		}
		if e := h.Events(""); e["machine.flapping"] != 1 {
			h.Fatalf("%v", e)
		}
	})
}

func TestUptime(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.MustRegister().WorkerID
		h.Advance(30 * time.Second) // never heard again: it was up for nothing that anybody knows of
		h.MustSweep()
		if w := h.MustWorker(a); w.Uptime != 0 {
			h.Fatalf("%v", w.Uptime)
		}
		b := h.MustRegister().WorkerID
		h.AdvanceAlive(30*time.Second, b)
		if w, m := h.MustWorker(b), h.MustMachine("host-1"); w.Uptime != 100 || m.Uptime != 50 {
			h.Fatalf("%v %v", w.Uptime, m.Uptime)
		}
		if _, err := h.RetireWorker(h.Ctx, trackertest.Scope, b, tracker.WorkerDeregistered, ""); err != nil {
			h.Fatal(err)
		}
		h.Advance(60 * time.Second)
		if w, m := h.MustWorker(b), h.MustMachine("host-1"); w.Uptime != 100 || m.Uptime != 25 { // its machine may come back
			h.Fatalf("%v %v", w.Uptime, m.Uptime)
		}
	})
}

// What a worker's uptime was at its end it stays, whatever ended it.
func TestUptimeIsFrozenAtTheEnd(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		silent, forced := h.MustRegister().WorkerID, h.MustRegister().WorkerID
		h.AdvanceAlive(50*time.Second, silent, forced)
		h.AdvanceAlive(30*time.Second, forced)
		h.MustSweep()
		h.WantWorker(silent, tracker.Offline, tracker.WorkerStale)
		if _, err := h.RetireWorker(h.Ctx, trackertest.Scope, forced, tracker.WorkerForced, ""); err != nil {
			h.Fatal(err)
		}
		for _, later := range []time.Duration{0, time.Second, time.Hour, 23 * time.Hour} {
			h.Store.Clock.Advance(later)
			h.MustTick()
			if s, f := h.MustWorker(silent).Uptime, h.MustWorker(forced).Uptime; s != 62.5 || f != 100 {
				h.Fatalf("%v later: %v and %v", later, s, f)
			}
		}
	})
}

// A worker that the sweepers would never look at again is found by the walk over the index: one without a beat on record
// is stale, one with a beat is looked at again.
func TestLostWorkersAreFound(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		never, known := h.MustRegister().WorkerID, h.MustRegister().WorkerID
		for shard := range h.Shards() {
			beats := fmt.Sprintf("lubdub:{%d}:workerbeats", shard)
			for _, id := range []string{never, known} {
				h.Store.Client.ZRem(h.Ctx, beats, trackertest.Scope.String()+"/"+id)
			}
			h.Store.Client.HDel(h.Ctx, fmt.Sprintf("lubdub:{%d}:worker:%s/%s", shard, trackertest.Scope, never), "bl")
		}
		if w := h.MustWorker(never); w.Liveness != tracker.Lost || !w.LastHeartbeatAt.IsZero() || fmt.Sprint(w.Unschedulable) != "[stale]" {
			h.Fatalf("%+v", w)
		}
		if r := h.MustSweep(); r.StaleWorkers != 1 {
			h.Fatalf("%+v", r)
		}
		h.WantWorker(never, tracker.Offline, tracker.WorkerStale)
		h.WantWorker(known, tracker.Online, "")
		h.Advance(30 * time.Second)
		h.MustSweep()
		h.WantWorker(known, tracker.Offline, tracker.WorkerStale)
	})
}

// A worker whose record the store lost leaves nothing behind in the lists.
func TestWorkersWithoutARecordLeaveTheLists(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustRegister().WorkerID
		for shard := range h.Shards() {
			h.Store.Client.Del(h.Ctx, fmt.Sprintf("lubdub:{%d}:worker:%s/%s", shard, trackertest.Scope, id))
			h.Store.Client.ZRem(h.Ctx, fmt.Sprintf("lubdub:{%d}:workerbeats", shard), trackertest.Scope.String()+"/"+id)
		}
		h.MustSweep()
		if page, err := h.Workers(h.Ctx, tracker.WorkerFilter{Scope: trackertest.Scope, PageSize: 10}); err != nil || page.Total != 0 {
			h.Fatalf("%+v %v", page, err)
		}
	})
}
