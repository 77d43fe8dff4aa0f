package workers_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// An idle worker that drains is seen draining for a second and then ends, whether or not it was told by then.
func TestDrain(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustRegister().WorkerID
		w, err := h.DrainWorker(h.Ctx, trackertest.Scope, id, tracker.Drain{Reason: "deploy"})
		if err != nil || w.Status != tracker.Draining || w.StatusReason != "deploy" {
			h.Fatalf("%+v %v", w, err)
		}
		if m := h.MustMachine("host-1"); m.Status != tracker.Draining {
			h.Fatalf("%+v", m)
		}
		h.MustSweep()
		h.Advance(999 * time.Millisecond)
		h.MustSweep()
		h.WantWorker(id, tracker.Draining, "deploy")
		if heard := h.MustBeatWorker(id); !heard.ShouldDrain {
			h.Fatalf("%+v", heard)
		}
		h.Advance(time.Millisecond)
		if r := h.MustSweep(); r.DrainedWorkers != 1 {
			h.Fatalf("%+v", r)
		}
		_, err = h.BeatWorker(h.Ctx, trackertest.Scope, id, tracker.WorkerBeat{})
		h.WantCode(err, tracker.WorkerOffline)
		h.WantWorker(id, tracker.Offline, tracker.WorkerDrained)
		if e := h.Events(id); e["worker.draining"] != 1 || e["worker.offline"] != 1 {
			h.Fatalf("%v", e)
		}
	})
}

func TestDrainBySelf(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustRegister().WorkerID
		if _, err := h.DrainWorker(h.Ctx, trackertest.Scope, id, tracker.Drain{BySelf: true}); err != nil {
			h.Fatal(err)
		}
		h.MustSweep()
		h.WantWorker(id, tracker.Draining, "") // whatever the sweepers are faster than
		h.Advance(time.Second)
		h.MustSweep()
		h.WantWorker(id, tracker.Offline, tracker.WorkerDrained)
		_, err := h.BeatWorker(h.Ctx, trackertest.Scope, id, tracker.WorkerBeat{})
		h.WantCode(err, tracker.WorkerOffline)
	})
}

// A worker whose drain has ended it before a beat could tell it is told by its next one, or it would take the refusal
// for a reason to register anew, and what was drained would be back.
func TestADrainThatEndedIsTold(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustRegister().WorkerID
		if _, err := h.DrainWorker(h.Ctx, trackertest.Scope, id, tracker.Drain{Reason: "deploy"}); err != nil {
			h.Fatal(err)
		}
		h.Advance(time.Second)
		h.MustSweep()
		before := h.WantWorker(id, tracker.Offline, tracker.WorkerDrained)
		claim := func() error {
			_, err := h.Claim(h.Ctx, tracker.ClaimRequest{Scope: trackertest.Scope, WorkerID: id, Queue: "default", Max: 1})
			return err
		}
		h.WantCode(claim(), tracker.WorkerDraining)
		h.Advance(9 * time.Second)
		if heard := h.MustBeatWorker(id); !heard.ShouldDrain {
			h.Fatalf("%+v", heard)
		}
		if w := h.WantWorker(id, tracker.Offline, tracker.WorkerDrained); !w.LastHeartbeatAt.Equal(before.LastHeartbeatAt) {
			h.Fatalf("it counts as alive: %+v", w)
		}
		_, err := h.BeatWorker(h.Ctx, trackertest.Scope, id, tracker.WorkerBeat{})
		h.WantCode(err, tracker.WorkerOffline)
		h.WantCode(claim(), tracker.WorkerOffline)
	})
}

func TestDrainResumeAndDeadline(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustRegister().WorkerID
		for range 2 {
			if _, err := h.DrainWorker(h.Ctx, trackertest.Scope, id, tracker.Drain{Deadline: 2 * time.Second}); err != nil {
				h.Fatal(err)
			}
		}
		w, err := h.ResumeWorker(h.Ctx, trackertest.Scope, id, "")
		if err != nil || w.Status != tracker.Online || !w.DrainDeadline.IsZero() {
			h.Fatalf("%+v %v", w, err)
		}
		h.Advance(3 * time.Second)
		h.MustSweep()
		h.WantWorker(id, tracker.Online, "")
		n := tracker.NewTask{Scope: trackertest.Scope, TaskID: "held", Queue: "default", Type: "send_email"}
		if err := n.Validate(h.Store.Clock.Now()); err != nil {
			h.Fatal(err)
		}
		if _, err := h.Create(h.Ctx, n); err != nil {
			h.Fatal(err)
		}
		if got, err := h.Claim(h.Ctx, tracker.ClaimRequest{Scope: trackertest.Scope, WorkerID: id, Queue: "default", Max: 1}); err != nil ||
			len(got) != 1 {
			h.Fatal(got, err)
		}
		if _, err := h.DrainWorker(h.Ctx, trackertest.Scope, id, tracker.Drain{Deadline: 2 * time.Second}); err != nil {
			h.Fatal(err)
		}
		h.Advance(1900 * time.Millisecond)
		h.MustSweep()
		h.WantWorker(id, tracker.Draining, "")
		h.Advance(100 * time.Millisecond)
		h.MustSweep()
		h.WantWorker(id, tracker.Offline, tracker.WorkerDrainDeadline)
	})
}

func TestDrainMany(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		on := func(machine, queue, region string) string {
			return h.MustRegister(func(n *tracker.NewWorker) {
				n.MachineID, n.Queue, n.Labels = machine, queue, map[string]string{"region": region}
			}).WorkerID
		}
		a, b, c := on("m1", "default", "eu"), on("m1", "reports", "us"), on("m2", "default", "eu")
		eu := tracker.WorkerFilter{Scope: trackertest.Scope, Labels: map[string]string{"region": "eu"}}
		d, err := h.DrainWorkers(h.Ctx, eu, tracker.Drain{}, true)
		if err != nil || d.Matched != 2 || d.Draining != 0 || len(d.Workers) != 2 {
			h.Fatalf("dry run: %+v %v", d, err)
		}
		h.WantWorker(a, tracker.Online, "")
		if d, err = h.DrainWorkers(h.Ctx, eu, tracker.Drain{}, false); err != nil || d.Draining != 2 {
			h.Fatalf("%+v %v", d, err)
		}
		h.WantWorker(a, tracker.Draining, "")
		h.WantWorker(b, tracker.Online, "")
		h.WantWorker(c, tracker.Draining, "")
		if d, err = h.DrainMachine(h.Ctx, trackertest.Scope, "m1", tracker.Drain{}); err != nil || d.Draining != 2 {
			h.Fatalf("%+v %v", d, err)
		}
		h.WantWorker(b, tracker.Draining, "")
		_, err = h.DrainMachine(h.Ctx, trackertest.Scope, "m3", tracker.Drain{})
		h.WantCode(err, tracker.MachineNotFound)
		nosuch := tracker.WorkerFilter{Scope: trackertest.Scope, Queue: "nosuch"}
		_, err = h.DrainWorkers(h.Ctx, nosuch, tracker.Drain{}, false)
		h.WantCode(err, tracker.NoWorkersMatch)
		if d, err = h.DrainWorkers(h.Ctx, nosuch, tracker.Drain{}, true); err != nil || d.Matched != 0 {
			h.Fatalf("a count of nobody: %+v %v", d, err)
		}
		h.Advance(time.Second)
		h.MustSweep()
		if d, err = h.DrainMachine(h.Ctx, trackertest.Scope, "m1", tracker.Drain{}); err != nil || d.Matched != 0 {
			h.Fatalf("a machine that is drained already: %+v %v", d, err)
		}
	})
}
