package tracker_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// An idle worker that drains ends when it knows of it: one that an operator drains must hear so first, or its next
// beat would be refused and it would register anew.
func TestDrain(t *testing.T) {
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
		h.advance(500 * time.Millisecond)
		h.sweep()
		h.wantWorker(id, tracker.Draining, "deploy")
		if heard := h.beatWorker(id); !heard.ShouldDrain {
			h.Fatalf("%+v", heard)
		}
		h.advance(500 * time.Millisecond)
		if r := h.sweep(); r.DrainedWorkers != 1 {
			h.Fatalf("%+v", r)
		}
		h.wantWorker(id, tracker.Offline, tracker.WorkerDrained)
		if e := h.events(id); e["worker.draining"] != 1 || e["worker.offline"] != 1 {
			h.Fatalf("%v", e)
		}
	})
}

func TestDrainBySelf(t *testing.T) {
	contract(t, func(h *harness) {
		id := h.register().WorkerID
		if _, err := h.DrainWorker(h.ctx, scope, id, tracker.Drain{BySelf: true}); err != nil {
			h.Fatal(err)
		}
		if r := h.sweep(); r.DrainedWorkers != 1 {
			h.Fatalf("nothing held and known to it: at once: %+v", r)
		}
	})
}

func TestDrainResumeAndDeadline(t *testing.T) {
	contract(t, func(h *harness) {
		id := h.register().WorkerID
		for range 2 {
			if _, err := h.DrainWorker(h.ctx, scope, id, tracker.Drain{Deadline: 2 * time.Second}); err != nil {
				h.Fatal(err)
			}
		}
		w, err := h.ResumeWorker(h.ctx, scope, id)
		if err != nil || w.Status != tracker.Online || !w.DrainDeadline.IsZero() {
			h.Fatalf("%+v %v", w, err)
		}
		h.advance(3 * time.Second)
		h.sweep()
		h.wantWorker(id, tracker.Online, "")
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
		_, err = h.DrainWorkers(h.ctx, tracker.WorkerFilter{Scope: scope, Queue: "nosuch"}, tracker.Drain{}, false)
		h.wantCode(err, tracker.NoWorkersMatch)
	})
}
