package tracker_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// An idle worker that drains is seen draining for a second and then ends, whether or not it was told by then.
func TestDrain(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		id := h.register().WorkerID
		w, err := h.DrainWorker(h.ctx, scope, id, tracker.Drain{Reason: "deploy"})
		if err != nil || w.Status != tracker.Draining || w.StatusReason != "deploy" {
			h.Fatalf("%+v %v", w, err)
		}
		if m := h.machine("host-1"); m.Status != tracker.Draining {
			h.Fatalf("%+v", m)
		}
		h.sweep()
		h.advance(999 * time.Millisecond)
		h.sweep()
		h.wantWorker(id, tracker.Draining, "deploy")
		if heard := h.beatWorker(id); !heard.ShouldDrain {
			h.Fatalf("%+v", heard)
		}
		h.advance(time.Millisecond)
		if r := h.sweep(); r.DrainedWorkers != 1 {
			h.Fatalf("%+v", r)
		}
		_, err = h.BeatWorker(h.ctx, scope, id, tracker.WorkerBeat{})
		h.wantCode(err, tracker.WorkerOffline)
		h.wantWorker(id, tracker.Offline, tracker.WorkerDrained)
		if e := h.events(id); e["worker.draining"] != 1 || e["worker.offline"] != 1 {
			h.Fatalf("%v", e)
		}
	})
}

func TestDrainBySelf(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		id := h.register().WorkerID
		if _, err := h.DrainWorker(h.ctx, scope, id, tracker.Drain{BySelf: true}); err != nil {
			h.Fatal(err)
		}
		h.sweep()
		h.wantWorker(id, tracker.Draining, "") // whatever the sweepers are faster than
		h.advance(time.Second)
		h.sweep()
		h.wantWorker(id, tracker.Offline, tracker.WorkerDrained)
		_, err := h.BeatWorker(h.ctx, scope, id, tracker.WorkerBeat{})
		h.wantCode(err, tracker.WorkerOffline)
	})
}

// A worker whose drain has ended it before a beat could tell it is told by its next one, or it would take the refusal
// for a reason to register anew, and what was drained would be back.
func TestADrainThatEndedIsTold(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		id := h.register().WorkerID
		if _, err := h.DrainWorker(h.ctx, scope, id, tracker.Drain{Reason: "deploy"}); err != nil {
			h.Fatal(err)
		}
		h.advance(time.Second)
		h.sweep()
		before := h.wantWorker(id, tracker.Offline, tracker.WorkerDrained)
		claim := func() error {
			_, err := h.Claim(h.ctx, tracker.ClaimRequest{Scope: scope, WorkerID: id, Queue: "default", Max: 1})
			return err
		}
		h.wantCode(claim(), tracker.WorkerDraining)
		h.advance(9 * time.Second)
		if heard := h.beatWorker(id); !heard.ShouldDrain {
			h.Fatalf("%+v", heard)
		}
		if w := h.wantWorker(id, tracker.Offline, tracker.WorkerDrained); !w.LastHeartbeatAt.Equal(before.LastHeartbeatAt) {
			h.Fatalf("it counts as alive: %+v", w)
		}
		_, err := h.BeatWorker(h.ctx, scope, id, tracker.WorkerBeat{})
		h.wantCode(err, tracker.WorkerOffline)
		h.wantCode(claim(), tracker.WorkerOffline)
	})
}

func TestDrainResumeAndDeadline(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		id := h.register().WorkerID
		for range 2 {
			if _, err := h.DrainWorker(h.ctx, scope, id, tracker.Drain{Deadline: 2 * time.Second}); err != nil {
				h.Fatal(err)
			}
		}
		w, err := h.ResumeWorker(h.ctx, scope, id, "")
		if err != nil || w.Status != tracker.Online || !w.DrainDeadline.IsZero() {
			h.Fatalf("%+v %v", w, err)
		}
		h.advance(3 * time.Second)
		h.sweep()
		h.wantWorker(id, tracker.Online, "")
		n := tracker.NewTask{Scope: scope, TaskID: "held", Queue: "default", Type: "send_email"}
		if err := n.Validate(h.store.Clock.Now()); err != nil {
			h.Fatal(err)
		}
		if _, err := h.Create(h.ctx, n); err != nil {
			h.Fatal(err)
		}
		if got, err := h.Claim(h.ctx, tracker.ClaimRequest{Scope: scope, WorkerID: id, Queue: "default", Max: 1}); err != nil || len(got) != 1 {
			h.Fatal(got, err)
		}
		if _, err := h.DrainWorker(h.ctx, scope, id, tracker.Drain{Deadline: 2 * time.Second}); err != nil {
			h.Fatal(err)
		}
		h.advance(1900 * time.Millisecond)
		h.sweep()
		h.wantWorker(id, tracker.Draining, "")
		h.advance(100 * time.Millisecond)
		h.sweep()
		h.wantWorker(id, tracker.Offline, tracker.WorkerDrainDeadline)
	})
}

func TestDrainMany(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		on := func(machine, queue, region string) string {
			return h.register(func(n *tracker.NewWorker) {
				n.MachineID, n.Queue, n.Labels = machine, queue, map[string]string{"region": region}
			}).WorkerID
		}
		a, b, c := on("m1", "default", "eu"), on("m1", "reports", "us"), on("m2", "default", "eu")
		eu := tracker.WorkerFilter{Scope: scope, Labels: map[string]string{"region": "eu"}}
		d, err := h.DrainWorkers(h.ctx, eu, tracker.Drain{}, true)
		if err != nil || d.Matched != 2 || d.Draining != 0 || len(d.Workers) != 2 {
			h.Fatalf("dry run: %+v %v", d, err)
		}
		h.wantWorker(a, tracker.Online, "")
		if d, err = h.DrainWorkers(h.ctx, eu, tracker.Drain{}, false); err != nil || d.Draining != 2 {
			h.Fatalf("%+v %v", d, err)
		}
		h.wantWorker(a, tracker.Draining, "")
		h.wantWorker(b, tracker.Online, "")
		h.wantWorker(c, tracker.Draining, "")
		if d, err = h.DrainMachine(h.ctx, scope, "m1", tracker.Drain{}); err != nil || d.Draining != 2 {
			h.Fatalf("%+v %v", d, err)
		}
		h.wantWorker(b, tracker.Draining, "")
		_, err = h.DrainMachine(h.ctx, scope, "m3", tracker.Drain{})
		h.wantCode(err, tracker.MachineNotFound)
		nosuch := tracker.WorkerFilter{Scope: scope, Queue: "nosuch"}
		_, err = h.DrainWorkers(h.ctx, nosuch, tracker.Drain{}, false)
		h.wantCode(err, tracker.NoWorkersMatch)
		if d, err = h.DrainWorkers(h.ctx, nosuch, tracker.Drain{}, true); err != nil || d.Matched != 0 {
			h.Fatalf("a count of nobody: %+v %v", d, err)
		}
		h.advance(time.Second)
		h.sweep()
		if d, err = h.DrainMachine(h.ctx, scope, "m1", tracker.Drain{}); err != nil || d.Matched != 0 {
			h.Fatalf("a machine that is drained already: %+v %v", d, err)
		}
	})
}
