package tracker_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// newWorker gives a valid worker on host-1 that runs send_email, as changed.
func newWorker(change ...func(*tracker.NewWorker)) tracker.NewWorker {
	n := tracker.NewWorker{Scope: scope, Queue: "default", Types: []string{"send_email"}, MachineID: "host-1", MaxConcurrent: 10}
	for _, f := range change {
		f(&n)
	}
	return n
}

// register registers a worker.
func (h *harness) register(change ...func(*tracker.NewWorker)) *tracker.Registered {
	h.Helper()
	n := newWorker(change...)
	if err := n.Validate(); err != nil {
		h.Fatalf("validate: %v", err)
	}
	r, err := h.Register(h.ctx, n)
	if err != nil {
		h.Fatalf("register: %v", err)
	}
	return r
}

func (h *harness) worker(id string) *tracker.Worker {
	h.Helper()
	w, err := h.Worker(h.ctx, scope, id)
	if err != nil {
		h.Fatalf("worker %s: %v", id, err)
	}
	return w
}

func (h *harness) machine(id string) *tracker.Machine {
	h.Helper()
	m, err := h.Machine(h.ctx, scope, id)
	if err != nil {
		h.Fatalf("machine %s: %v", id, err)
	}
	return m
}

func (h *harness) beatWorker(id string, change ...func(*tracker.WorkerBeat)) *tracker.WorkerHeard {
	h.Helper()
	var b tracker.WorkerBeat
	for _, f := range change {
		f(&b)
	}
	heard, err := h.BeatWorker(h.ctx, scope, id, b)
	if err != nil {
		h.Fatalf("beat of %s: %v", id, err)
	}
	return heard
}

func (h *harness) wantWorker(id string, status tracker.WorkerStatus, reason tracker.WorkerReason) *tracker.Worker {
	h.Helper()
	w := h.worker(id)
	got := w.StatusReason
	if status == tracker.Offline { // then that may be what was given
		got = string(w.EndReason)
	}
	if w.Status != status || got != string(reason) {
		h.Fatalf("worker %s is %s %q, want %s %q", id, w.Status, got, status, reason)
	}
	return w
}

// events counts the events of every shard by type, those of one subject only unless it is "".
func (h *harness) events(subject string) map[string]int {
	h.Helper()
	return h.eventsBySubject()[subject]
}

// eventsBySubject counts the events of every shard by subject and type; under "" stand those of all subjects.
func (h *harness) eventsBySubject() map[string]map[string]int {
	h.Helper()
	counts := map[string]map[string]int{"": {}}
	for shard := range h.Shards() {
		entries, err := h.store.Client.XRange(h.ctx, "lubdub:{"+strconv.Itoa(shard)+"}:events", "-", "+").Result()
		if err != nil {
			h.Fatal(err)
		}
		for _, e := range entries {
			kind := e.Values["type"].(string)
			counts[""][kind]++
			if subject, _ := e.Values["subject"].(string); subject != "" {
				if counts[subject] == nil {
					counts[subject] = map[string]int{}
				}
				counts[subject][kind]++
			}
			if data, ok := e.Values["data"].(string); ok && !json.Valid([]byte(data)) {
				h.Fatalf("data of %v is no JSON: %s", kind, data)
			}
		}
	}
	return counts
}

// advanceAlive moves the clock while these workers beat as they were told to.
func (h *harness) advanceAlive(d time.Duration, workers ...string) {
	h.Helper()
	for ; d > 0; d -= 5 * time.Second {
		h.advance(min(d, 5*time.Second))
		for _, id := range workers {
			h.beatWorker(id)
		}
	}
}

func TestWorkerRegistry(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		r := h.register(func(n *tracker.NewWorker) {
			n.Name, n.Hostname, n.PID, n.Version = "mailer-1", "host-1", 4711, "1.2.3"
			n.Runtimes, n.Labels = []string{"python"}, map[string]string{"region": "eu"}
		})
		if !strings.HasPrefix(r.WorkerID, "wkr_") || r.Interval != 10*time.Second || r.Timeout != 30*time.Second || r.MachineID != "host-1" {
			h.Fatalf("%+v", r)
		}
		w := h.wantWorker(r.WorkerID, tracker.Online, "")
		if w.Name != "mailer-1" || w.PID != 4711 || w.Version != "1.2.3" || w.Runtimes[0] != "python" || w.Labels["region"] != "eu" || w.MaxConcurrent != 10 ||
			w.Liveness != tracker.Fresh || !w.LastHeartbeatAt.Equal(h.store.Clock.Now()) || len(w.Unschedulable) != 0 || w.Uptime != 100 {
			h.Fatalf("%+v", w)
		}
		if m := h.machine("host-1"); m.Status != tracker.Online || m.Workers[tracker.Online] != 1 || m.Uptime != 100 {
			h.Fatalf("%+v", m)
		}
		alone := h.register(func(n *tracker.NewWorker) { n.MachineID = "" })
		if alone.MachineID != alone.WorkerID || h.machine(alone.WorkerID).Status != tracker.Online {
			h.Fatalf("a worker without a machine is its own: %+v", alone)
		}
		for _, id := range []string{"nosuch", "wkr_01HGW5N7XHJM4GX29KZRXQP6N9FFF", "wkr_01HGW5N7XHJM4GX29KZRXQP6N9000"} {
			_, err := h.Worker(h.ctx, scope, id)
			h.wantCode(err, tracker.WorkerNotFound)
			_, err = h.BeatWorker(h.ctx, scope, id, tracker.WorkerBeat{})
			h.wantCode(err, tracker.WorkerNotFound)
			_, err = h.DrainWorker(h.ctx, scope, id, tracker.Drain{})
			h.wantCode(err, tracker.WorkerNotFound)
		}
		_, err := h.Worker(h.ctx, tracker.Scope{Tenant: "other", Workspace: "prod"}, r.WorkerID)
		h.wantCode(err, tracker.WorkerNotFound)
	})
}

func TestWorkerBeat(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		id := h.register().WorkerID
		h.advance(4 * time.Second)
		deltas := func(seq, completed, failed int64) func(*tracker.WorkerBeat) {
			return func(b *tracker.WorkerBeat) {
				active := 3
				b.Active, b.Seq, b.CompletedDelta, b.FailedDelta = &active, &seq, completed, failed
			}
		}
		heard := h.beatWorker(id, deltas(1, 5, 1))
		if heard.ShouldDrain || heard.Interval != 10*time.Second || heard.Timeout != 30*time.Second || !heard.At.Equal(h.store.Clock.Now()) {
			h.Fatalf("%+v", heard)
		}
		h.beatWorker(id, deltas(1, 5, 1)) // a repeated seq adds nothing
		h.beatWorker(id, deltas(0, 7, 7)) // nor does one that is older
		h.beatWorker(id)
		h.beatWorker(id, deltas(9, 1, 0))
		w := h.worker(id)
		if w.TotalCompleted != 6 || w.TotalFailed != 1 || w.ActiveCount != 3 || !w.LastHeartbeatAt.Equal(h.store.Clock.Now()) {
			h.Fatalf("%+v", w)
		}
		for name, b := range map[string]tracker.WorkerBeat{
			"negative": {Seq: new(int64), CompletedDelta: -1}, "without seq": {FailedDelta: 1},
			"negative seq": {Seq: ptr(int64(-1))}, "negative active": {Active: ptr(-1)},
		} {
			if tracker.CodeOf(b.Validate()) != tracker.Invalid {
				h.Errorf("%s was let through", name)
			}
		}
	})
}

func ptr[T any](v T) *T { return &v }

// Same scope, queue, machine, hostname and pid: the old registration is OFFLINE, SUPERSEDED.
func TestWorkerIsSuperseded(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		process := func(n *tracker.NewWorker) { n.Hostname, n.PID = "host-1", 7 }
		first := h.register(process)
		other := h.register(process, func(n *tracker.NewWorker) { n.Queue = "reports" })
		noPID := []string{h.register().WorkerID, h.register().WorkerID}
		second := h.register(process)
		h.wantWorker(first.WorkerID, tracker.Offline, tracker.WorkerSuperseded)
		for _, id := range append(noPID, second.WorkerID, other.WorkerID) {
			h.wantWorker(id, tracker.Online, "")
		}
		_, err := h.BeatWorker(h.ctx, scope, first.WorkerID, tracker.WorkerBeat{})
		h.wantCode(err, tracker.WorkerOffline)
		if e := err.(*tracker.Error); e.Reason != tracker.Reason(tracker.WorkerSuperseded) {
			h.Fatalf("%+v", e)
		}
		if e := h.events("host-1"); e["machine.online"] != 1 || e["machine.offline"] != 0 {
			h.Fatalf("the machine's status went up and down: %v", e)
		}
		h.sweep()
		if e := h.events(first.WorkerID); e["worker.offline"] != 1 || e["worker.recovered"] != 1 {
			h.Fatalf("%v", e)
		}
	})
}

// Many registrations of one identity at once leave exactly one.
func TestWorkerIdentityRace(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		var registering sync.WaitGroup
		for range 8 {
			registering.Go(func() {
				n := newWorker(func(n *tracker.NewWorker) { n.Hostname, n.PID = "host-1", 7 })
				if _, err := h.Register(h.ctx, n); err != nil {
					h.Error(err)
				}
			})
		}
		registering.Wait()
		page, err := h.Workers(h.ctx, tracker.WorkerFilter{Scope: scope, Status: tracker.Online, PageSize: 100})
		if err != nil || page.Total != 1 {
			h.Fatalf("%+v %v", page, err)
		}
	})
}

func TestWorkerStale(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		dead, alive := h.register().WorkerID, h.register(func(n *tracker.NewWorker) { n.MachineID = "host-2" }).WorkerID
		h.advanceAlive(15*time.Second, alive)
		h.sweep()
		if w := h.wantWorker(dead, tracker.Online, ""); w.Liveness != tracker.Late || len(w.Unschedulable) != 0 {
			h.Fatalf("LATE is still schedulable: %+v", w)
		}
		if e := h.events(dead); e["worker.late"] != 1 {
			h.Fatalf("%v", e)
		}
		h.advanceAlive(14750*time.Millisecond, alive)
		if r := h.sweep(); r.StaleWorkers != 0 {
			h.Fatalf("before its timeout: %+v", r)
		}
		h.store.Clock.Advance(249 * time.Millisecond)
		h.tick()
		if r := h.sweep(); r.StaleWorkers != 0 {
			h.Fatalf("before its timeout: %+v", r)
		}
		h.store.Clock.Advance(time.Millisecond)
		h.tick()
		if w := h.worker(dead); w.Liveness != tracker.Lost || w.Status != tracker.Online || fmt.Sprint(w.Unschedulable) != "[stale]" {
			h.Fatalf("liveness is judged now, not by the last sweep: %+v", w)
		}
		r := h.sweep()
		if r.StaleWorkers != 1 || fmt.Sprint(r.Machines) != "[host-1]" {
			h.Fatalf("at its timeout: %+v", r)
		}
		w := h.wantWorker(dead, tracker.Offline, tracker.WorkerStale)
		if w.StaleCount != 1 || w.Liveness != tracker.Lost || !w.DeregisteredAt.Equal(h.store.Clock.Now()) {
			h.Fatalf("%+v", w)
		}
		if m := h.machine("host-1"); m.Status != tracker.Offline || m.StaleCount != 1 || m.Uptime != 0 {
			h.Fatalf("%+v", m)
		}
		if m := h.machine("host-2"); m.Status != tracker.Online || m.Uptime != 100 {
			h.Fatalf("%+v", m)
		}
		e := h.events("")
		if e["worker.late"] != 1 || e["worker.offline"] != 1 || e["worker.recovered"] != 1 || e["machine.offline"] != 1 {
			h.Fatalf("%v", e)
		}
		_, err := h.BeatWorker(h.ctx, scope, dead, tracker.WorkerBeat{})
		h.wantCode(err, tracker.WorkerOffline)
		if r := h.sweep(); r.StaleWorkers != 0 {
			h.Fatalf("again: %+v", r)
		}
	})
}

// A beat of a LATE worker makes it FRESH; it is told of again when it is late again.
func TestWorkerComesBackInTime(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		id := h.register().WorkerID
		for round := 1; round <= 2; round++ {
			h.advance(20 * time.Second)
			h.sweep()
			if e := h.events(id); e["worker.late"] != round {
				h.Fatalf("round %d: %v", round, e)
			}
			h.beatWorker(id)
			if w := h.worker(id); w.Liveness != tracker.Fresh {
				h.Fatalf("%+v", w)
			}
		}
		h.advance(29 * time.Second)
		if r := h.sweep(); r.StaleWorkers != 0 {
			h.Fatalf("%+v", r)
		}
	})
}

// An outage of the store costs a worker one step of shard time at most.
func TestOutageKillsNoWorker(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		id := h.register().WorkerID
		h.advance(20 * time.Second)
		h.store.Clock.Advance(time.Hour)
		h.tick()
		h.sweep()
		h.wantWorker(id, tracker.Online, "")
		h.advance(9500 * time.Millisecond)
		h.sweep()
		h.wantWorker(id, tracker.Online, "")
		h.advance(time.Second)
		if r := h.sweep(); r.StaleWorkers != 1 {
			h.Fatalf("the truly dead: %+v", r)
		}
	})
}

func TestWorkerEnds(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		a, b := h.register().WorkerID, h.register().WorkerID
		w, err := h.RetireWorker(h.ctx, scope, a, tracker.WorkerDeregistered, "")
		if err != nil || w.Status != tracker.Offline || w.StatusReason != "DEREGISTERED" {
			h.Fatalf("%+v %v", w, err)
		}
		if m := h.machine("host-1"); m.Status != tracker.Online || m.Workers[tracker.Online] != 1 || m.Workers[tracker.Offline] != 1 {
			h.Fatalf("%+v", m)
		}
		for range 2 { // again is as good
			if w, err = h.RetireWorker(h.ctx, scope, b, tracker.WorkerForced, ""); err != nil || w.StatusReason != "FORCED_OFFLINE" {
				h.Fatalf("%+v %v", w, err)
			}
		}
		if m := h.machine("host-1"); m.Status != tracker.Offline || m.StaleCount != 0 {
			h.Fatalf("%+v", m)
		}
		if e := h.events(""); e["worker.recovered"] != 2 || e["worker.offline"] != 2 || e["machine.offline"] != 1 {
			h.Fatalf("recovered at once, not by the next sweep: %v", e)
		}
		_, err = h.ResumeWorker(h.ctx, scope, a, "")
		h.wantCode(err, tracker.WorkerOffline)
	})
}

// OFFLINE workers are gone after their retention, from every index.
func TestWorkerRetention(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		before := h.store.Dump(h.TB)
		process := func(n *tracker.NewWorker) { n.Hostname, n.PID = "host-1", 7 }
		a, b := h.register(process).WorkerID, h.register().WorkerID
		for _, id := range []string{a, b} {
			if _, err := h.RetireWorker(h.ctx, scope, id, tracker.WorkerDeregistered, ""); err != nil {
				h.Fatal(err)
			}
		}
		h.store.Clock.Advance(24*time.Hour - time.Second)
		h.tick()
		if r := h.sweep(); r.RemovedWorkers != 0 {
			h.Fatalf("%+v", r)
		}
		h.store.Clock.Advance(time.Second)
		h.tick()
		if r := h.sweep(); r.RemovedWorkers != 2 {
			h.Fatalf("%+v", r)
		}
		_, err := h.Worker(h.ctx, scope, a)
		h.wantCode(err, tracker.WorkerNotFound)
		_, err = h.Machine(h.ctx, scope, "host-1")
		h.wantCode(err, tracker.MachineNotFound)
		if list, err := h.Machines(h.ctx, tracker.MachineFilter{Scope: scope, PageSize: 10}); err != nil || list.Total != 0 {
			h.Fatalf("%+v %v", list, err)
		}
		after := h.store.Dump(h.TB)
		for key := range after {
			if _, was := before[key]; !was && !strings.Contains(key, "sweepers") && !strings.Contains(key, "outages") {
				h.Errorf("%s is left behind: %v", key, after[key])
			}
		}
	})
}
