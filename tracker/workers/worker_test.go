package workers_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

var online = []model.WorkerStatus{model.Online}

func TestWorkerRegistry(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		r := h.MustRegister(func(n *model.NewWorker) {
			n.Name, n.Hostname, n.PID, n.Version = "mailer-1", "host-1", 4711, "1.2.3"
			n.Runtimes, n.Labels = []string{"python"}, map[string]string{"region": "eu"}
		})
		if !strings.HasPrefix(r.WorkerID, "wkr_") || r.Interval != 10*time.Second || r.Timeout != 30*time.Second || r.MachineID != "host-1" {
			h.Fatalf("%+v", r)
		}
		w := h.WantWorker(r.WorkerID, model.Online, "")
		if w.Name != "mailer-1" || w.PID != 4711 || w.Version != "1.2.3" || w.Runtimes[0] != "python" || w.Labels["region"] != "eu" ||
			w.MaxConcurrent != 10 ||
			w.Liveness != model.Fresh || !w.LastHeartbeatAt.Equal(h.Store.Clock.Now()) || len(w.Unschedulable) != 0 || w.Uptime != 100 {
			h.Fatalf("%+v", w)
		}
		if m := h.MustMachine("host-1"); m.Status != model.Online || m.Workers[model.Online] != 1 || m.Uptime != 100 {
			h.Fatalf("%+v", m)
		}
		alone := h.MustRegister(func(n *model.NewWorker) { n.MachineID = "" })
		if alone.MachineID != alone.WorkerID || h.MustMachine(alone.WorkerID).Status != model.Online {
			h.Fatalf("a worker without a machine is its own: %+v", alone)
		}
		for _, id := range []string{"nosuch", "wkr_01HGW5N7XHJM4GX29KZRXQP6N9FFF", "wkr_01HGW5N7XHJM4GX29KZRXQP6N9000"} {
			_, err := h.Workers.Get(h.Ctx, trackertest.Scope, id)
			h.WantCode(err, workers.WorkerNotFound)
			_, err = h.Workers.Beat(h.Ctx, trackertest.Scope, id, workers.WorkerBeat{})
			h.WantCode(err, workers.WorkerNotFound)
			_, err = h.Workers.Drain(h.Ctx, trackertest.Scope, id, workers.Drain{})
			h.WantCode(err, workers.WorkerNotFound)
		}
		_, err := h.Workers.Get(h.Ctx, model.Scope{Tenant: "other", Workspace: "prod"}, r.WorkerID)
		h.WantCode(err, workers.WorkerNotFound)
	})
}

func TestWorkerBeat(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustRegister().WorkerID
		h.Advance(4 * time.Second)
		deltas := func(seq, completed, failed int64) func(*workers.WorkerBeat) {
			return func(b *workers.WorkerBeat) {
				active := 3
				b.Active, b.Seq, b.CompletedDelta, b.FailedDelta = &active, &seq, completed, failed
			}
		}
		result := h.MustBeatWorker(id, deltas(1, 5, 1))
		if result.ShouldDrain || result.Interval != 10*time.Second || result.Timeout != 30*time.Second || !result.At.Equal(h.Store.Clock.Now()) {
			h.Fatalf("%+v", result)
		}
		h.MustBeatWorker(id, deltas(1, 5, 1)) // a repeated seq adds nothing
		h.MustBeatWorker(id, deltas(0, 7, 7)) // nor does an older one
		h.MustBeatWorker(id)
		h.MustBeatWorker(id, deltas(9, 1, 0))
		w := h.MustWorker(id)
		if w.TotalCompleted != 6 || w.TotalFailed != 1 || w.ActiveCount != 3 || !w.LastHeartbeatAt.Equal(h.Store.Clock.Now()) {
			h.Fatalf("%+v", w)
		}
		for name, b := range map[string]workers.WorkerBeat{
			"negative": {Seq: new(int64), CompletedDelta: -1}, "without seq": {FailedDelta: 1},
			"negative seq": {Seq: ptr(int64(-1))}, "negative active": {Active: ptr(-1)},
		} {
			if model.CodeOf(b.Validate()) != model.Invalid {
				h.Errorf("%s was let through", name)
			}
		}
	})
}

func ptr[T any](v T) *T { return &v }

// Same scope, queue, machine, hostname and pid: the old registration is OFFLINE, SUPERSEDED.
func TestWorkerIsSuperseded(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		process := func(n *model.NewWorker) { n.Hostname, n.PID = "host-1", 7 }
		first := h.MustRegister(process)
		other := h.MustRegister(process, func(n *model.NewWorker) { n.Queue = "reports" })
		noPID := []string{h.MustRegister().WorkerID, h.MustRegister().WorkerID}
		second := h.MustRegister(process)
		h.WantWorker(first.WorkerID, model.Offline, model.WorkerSuperseded)
		for _, id := range append(noPID, second.WorkerID, other.WorkerID) {
			h.WantWorker(id, model.Online, "")
		}
		_, err := h.Workers.Beat(h.Ctx, trackertest.Scope, first.WorkerID, workers.WorkerBeat{})
		h.WantCode(err, workers.WorkerOffline)
		if e := err.(*model.Error); e.Reason != model.Reason(model.WorkerSuperseded) {
			h.Fatalf("%+v", e)
		}
		if e := h.Events("host-1"); e["machine.online"] != 1 || e["machine.offline"] != 0 {
			h.Fatalf("the machine's status went up and down: %v", e)
		}
		h.MustSweep()
		if e := h.Events(first.WorkerID); e["worker.offline"] != 1 || e["worker.tasks_recovered"] != 1 {
			h.Fatalf("%v", e)
		}
	})
}

// Many simultaneous registrations of one identity leave exactly one.
func TestWorkerIdentityRace(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		var registering sync.WaitGroup
		for range 8 {
			registering.Go(func() {
				n := trackertest.NewWorker(func(n *model.NewWorker) { n.Hostname, n.PID = "host-1", 7 })
				if _, err := h.Workers.Register(h.Ctx, n); err != nil {
					h.Error(err)
				}
			})
		}
		registering.Wait()
		page, err := h.Workers.List(h.Ctx, workers.WorkerFilter{Scope: trackertest.Scope, Statuses: online, PageSize: 100})
		if err != nil || page.Total != 1 {
			h.Fatalf("%+v %v", page, err)
		}
	})
}

func TestWorkerStale(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		dead, alive := h.MustRegister().WorkerID, h.MustRegister(func(n *model.NewWorker) { n.MachineID = "host-2" }).WorkerID
		h.AdvanceAlive(15*time.Second, alive)
		h.MustSweep()
		if w := h.WantWorker(dead, model.Online, ""); w.Liveness != model.Late || len(w.Unschedulable) != 0 {
			h.Fatalf("LATE is still schedulable: %+v", w)
		}
		if e := h.Events(dead); e["worker.late"] != 1 {
			h.Fatalf("%v", e)
		}
		h.AdvanceAlive(14750*time.Millisecond, alive)
		if r := h.MustSweep(); r.StaleWorkers != 0 {
			h.Fatalf("before its timeout: %+v", r)
		}
		h.Store.Clock.Advance(249 * time.Millisecond)
		h.MustTick()
		if r := h.MustSweep(); r.StaleWorkers != 0 {
			h.Fatalf("before its timeout: %+v", r)
		}
		h.Store.Clock.Advance(time.Millisecond)
		h.MustTick()
		if w := h.MustWorker(dead); w.Liveness != model.Lost || w.Status != model.Online || fmt.Sprint(w.Unschedulable) != "[stale]" {
			h.Fatalf("liveness is judged now, not by the last sweep: %+v", w)
		}
		r := h.MustSweep()
		if r.StaleWorkers != 1 || fmt.Sprint(r.Machines) != "[host-1]" {
			h.Fatalf("at its timeout: %+v", r)
		}
		w := h.WantWorker(dead, model.Offline, model.WorkerStale)
		if w.StaleCount != 1 || w.Liveness != model.Lost || !w.DeregisteredAt.Equal(h.Store.Clock.Now()) {
			h.Fatalf("%+v", w)
		}
		if m := h.MustMachine("host-1"); m.Status != model.Offline || m.StaleCount != 1 || m.Uptime != 0 {
			h.Fatalf("%+v", m)
		}
		if m := h.MustMachine("host-2"); m.Status != model.Online || m.Uptime != 100 {
			h.Fatalf("%+v", m)
		}
		e := h.Events("")
		if e["worker.late"] != 1 || e["worker.offline"] != 1 || e["worker.tasks_recovered"] != 1 || e["machine.offline"] != 1 {
			h.Fatalf("%v", e)
		}
		for _, statuses := range [][]model.WorkerStatus{nil, {model.Offline}, {model.Online, model.Draining}} {
			want := 1
			if slices.Contains(statuses, model.Online) { // as statistics count
				want = 0
			}
			for _, machine := range []string{"", "host-1"} {
				f := workers.WorkerFilter{Scope: trackertest.Scope, Liveness: model.Lost, Statuses: statuses, MachineID: machine}
				page, err := h.Workers.List(h.Ctx, f)
				if err != nil || page.Total != want || len(page.Workers) != want {
					h.Fatalf("%d workers of %v are lost on machine %q: %v", page.Total, statuses, machine, err)
				}
			}
		}
		_, err := h.Workers.Beat(h.Ctx, trackertest.Scope, dead, workers.WorkerBeat{})
		h.WantCode(err, workers.WorkerOffline)
		if r := h.MustSweep(); r.StaleWorkers != 0 {
			h.Fatalf("again: %+v", r)
		}
	})
}

// A heartbeat or claim of a LATE worker makes it FRESH, with one event; it is reported again when it is late again.
func TestWorkerComesBackInTime(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustRegister().WorkerID
		for round := 1; round <= 2; round++ {
			h.Advance(20 * time.Second)
			h.MustSweep()
			if e := h.Events(id); e["worker.late"] != round {
				h.Fatalf("round %d: %v", round, e)
			}
			if round == 2 { // a claim counts as a heartbeat
				if _, err := h.Queues.Claim(h.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: id, Queue: "default", Max: 1}); err != nil {
					h.Fatal(err)
				}
			}
			h.MustBeatWorker(id)
			h.MustBeatWorker(id)
			if w, e := h.MustWorker(id), h.Events(id); w.Liveness != model.Fresh || e["worker.fresh"] != round {
				h.Fatalf("round %d: %+v, %v", round, w, e)
			}
		}
		h.Advance(29 * time.Second)
		if r := h.MustSweep(); r.StaleWorkers != 0 {
			h.Fatalf("%+v", r)
		}
	})
}

// An outage of the store costs a worker at most one step of shard time.
func TestOutageKillsNoWorker(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustRegister().WorkerID
		h.Advance(20 * time.Second)
		h.Store.Clock.Advance(time.Hour)
		h.MustTick()
		h.MustSweep()
		h.WantWorker(id, model.Online, "")
		h.Advance(9500 * time.Millisecond)
		h.MustSweep()
		h.WantWorker(id, model.Online, "")
		h.Advance(time.Second)
		if r := h.MustSweep(); r.StaleWorkers != 1 {
			h.Fatalf("the truly dead: %+v", r)
		}
	})
}

func TestWorkerEnds(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a, b := h.MustRegister().WorkerID, h.MustRegister().WorkerID
		w, err := h.Workers.Retire(h.Ctx, trackertest.Scope, a, model.WorkerDeregistered, "")
		if err != nil || w.Status != model.Offline || w.StatusReason != "DEREGISTERED" {
			h.Fatalf("%+v %v", w, err)
		}
		if m := h.MustMachine("host-1"); m.Status != model.Online || m.Workers[model.Online] != 1 || m.Workers[model.Offline] != 1 {
			h.Fatalf("%+v", m)
		}
		for range 2 { // a repeat is fine too
			if w, err = h.Workers.Retire(h.Ctx, trackertest.Scope, b, model.WorkerForced, ""); err != nil || w.StatusReason != "FORCED_OFFLINE" {
				h.Fatalf("%+v %v", w, err)
			}
		}
		if m := h.MustMachine("host-1"); m.Status != model.Offline || m.StaleCount != 0 {
			h.Fatalf("%+v", m)
		}
		if e := h.Events(""); e["worker.tasks_recovered"] != 2 || e["worker.offline"] != 2 || e["machine.offline"] != 1 {
			h.Fatalf("recovered at once, not by the next sweep: %v", e)
		}
		_, err = h.Workers.Resume(h.Ctx, trackertest.Scope, a, "")
		h.WantCode(err, workers.WorkerOffline)
	})
}

// OFFLINE workers are removed after their retention, from every index.
func TestWorkerRetention(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		before := h.Store.Dump(h.TB)
		process := func(n *model.NewWorker) { n.Hostname, n.PID = "host-1", 7 }
		a, b := h.MustRegister(process).WorkerID, h.MustRegister().WorkerID
		for _, id := range []string{a, b} {
			if _, err := h.Workers.Retire(h.Ctx, trackertest.Scope, id, model.WorkerDeregistered, ""); err != nil {
				h.Fatal(err)
			}
		}
		h.Store.Clock.Advance(24*time.Hour - time.Second)
		h.MustTick()
		if r := h.MustSweep(); r.RemovedWorkers != 0 {
			h.Fatalf("%+v", r)
		}
		h.Store.Clock.Advance(time.Second)
		h.MustTick()
		if r := h.MustSweep(); r.RemovedWorkers != 2 {
			h.Fatalf("%+v", r)
		}
		_, err := h.Workers.Get(h.Ctx, trackertest.Scope, a)
		h.WantCode(err, workers.WorkerNotFound)
		_, err = h.Workers.Machine(h.Ctx, trackertest.Scope, "host-1")
		h.WantCode(err, workers.MachineNotFound)
		if list, err := h.Workers.Machines(h.Ctx, workers.MachineFilter{Scope: trackertest.Scope, PageSize: 10}); err != nil || list.Total != 0 {
			h.Fatalf("%+v %v", list, err)
		}
		after := h.Store.Dump(h.TB)
		for key := range after {
			if _, was := before[key]; !was && !strings.Contains(key, "sweepers") && !strings.Contains(key, "outages") &&
				!strings.Contains(key, "lives") { // which expire
				h.Errorf("%s is left behind: %v", key, after[key])
			}
		}
	})
}
