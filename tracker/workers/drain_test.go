package workers_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// A draining idle worker is shown as DRAINING for a second and then ends, whether or not a heartbeat reported the drain to it by
// then.
func TestDrain(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustRegister().WorkerID
		w, err := h.Workers.Drain(h.Ctx, trackertest.Scope, id, workers.Drain{Reason: "deploy"})
		if err != nil || w.Status != model.Draining || w.StatusReason != "deploy" {
			h.Fatalf("%+v %v", w, err)
		}
		if m := h.MustMachine("host-1"); m.Status != model.Draining {
			h.Fatalf("%+v", m)
		}
		h.MustSweep()
		h.Advance(999 * time.Millisecond)
		h.MustSweep()
		h.WantWorker(id, model.Draining, "deploy")
		if result := h.MustBeatWorker(id); !result.ShouldDrain {
			h.Fatalf("%+v", result)
		}
		h.Advance(time.Millisecond)
		if r := h.MustSweep(); r.DrainedWorkers != 1 {
			h.Fatalf("%+v", r)
		}
		_, err = h.Workers.Beat(h.Ctx, trackertest.Scope, id, workers.WorkerBeat{})
		h.WantCode(err, workers.WorkerOffline)
		h.WantWorker(id, model.Offline, model.WorkerDrained)
		if e := h.Events(id); e["worker.draining"] != 1 || e["worker.offline"] != 1 {
			h.Fatalf("%v", e)
		}
	})
}

func TestDrainBySelf(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustRegister().WorkerID
		if _, err := h.Workers.Drain(h.Ctx, trackertest.Scope, id, workers.Drain{BySelf: true}); err != nil {
			h.Fatal(err)
		}
		h.MustSweep()
		h.WantWorker(id, model.Draining, "") // no matter how fast the sweepers are
		h.Advance(time.Second)
		h.MustSweep()
		h.WantWorker(id, model.Offline, model.WorkerDrained)
		_, err := h.Workers.Beat(h.Ctx, trackertest.Scope, id, workers.WorkerBeat{})
		h.WantCode(err, workers.WorkerOffline)
	})
}

// A worker whose drain ended before a heartbeat could report it learns of it from the next one. Otherwise it would take the
// refusal as a reason to register again, and the drained worker would return.
func TestAnEndedDrainIsReported(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustRegister().WorkerID
		if _, err := h.Workers.Drain(h.Ctx, trackertest.Scope, id, workers.Drain{Reason: "deploy"}); err != nil {
			h.Fatal(err)
		}
		h.Advance(time.Second)
		h.MustSweep()
		before := h.WantWorker(id, model.Offline, model.WorkerDrained)
		claim := func() error {
			_, err := h.Queues.Claim(h.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: id, Queue: "default", Max: 1})
			return err
		}
		h.WantCode(claim(), workers.WorkerDraining)
		h.Advance(9 * time.Second)
		if result := h.MustBeatWorker(id); !result.ShouldDrain {
			h.Fatalf("%+v", result)
		}
		if w := h.WantWorker(id, model.Offline, model.WorkerDrained); !w.LastHeartbeatAt.Equal(before.LastHeartbeatAt) {
			h.Fatalf("it counts as alive: %+v", w)
		}
		_, err := h.Workers.Beat(h.Ctx, trackertest.Scope, id, workers.WorkerBeat{})
		h.WantCode(err, workers.WorkerOffline)
		h.WantCode(claim(), workers.WorkerOffline)
	})
}

func TestDrainResumeAndDeadline(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustRegister().WorkerID
		for range 2 {
			if _, err := h.Workers.Drain(h.Ctx, trackertest.Scope, id, workers.Drain{Deadline: 2 * time.Second}); err != nil {
				h.Fatal(err)
			}
		}
		w, err := h.Workers.Resume(h.Ctx, trackertest.Scope, id, "")
		if err != nil || w.Status != model.Online || !w.DrainDeadline.IsZero() {
			h.Fatalf("%+v %v", w, err)
		}
		h.Advance(3 * time.Second)
		h.MustSweep()
		h.WantWorker(id, model.Online, "")
		n := model.NewTask{Scope: trackertest.Scope, TaskID: "held", Queue: "default", Type: "send_email"}
		if err := n.Validate(h.Store.Clock.Now()); err != nil {
			h.Fatal(err)
		}
		if _, err := h.Tasks.Create(h.Ctx, n); err != nil {
			h.Fatal(err)
		}
		if got, err := h.Queues.Claim(h.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: id, Queue: "default", Max: 1}); err != nil ||
			len(got) != 1 {
			h.Fatal(got, err)
		}
		if _, err := h.Workers.Drain(h.Ctx, trackertest.Scope, id, workers.Drain{Deadline: 2 * time.Second}); err != nil {
			h.Fatal(err)
		}
		h.Advance(1900 * time.Millisecond)
		h.MustSweep()
		h.WantWorker(id, model.Draining, "")
		h.Advance(100 * time.Millisecond)
		h.MustSweep()
		h.WantWorker(id, model.Offline, model.WorkerDrainDeadline)
	})
}

func TestDrainMany(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		on := func(machine, queue, region string) string {
			return h.MustRegister(func(n *model.NewWorker) {
				n.MachineID, n.Queue, n.Labels = machine, queue, map[string]string{"region": region}
			}).WorkerID
		}
		a, b, c := on("m1", "default", "eu"), on("m1", "reports", "us"), on("m2", "default", "eu")
		eu := workers.WorkerFilter{Scope: trackertest.Scope, Labels: map[string]string{"region": "eu"}}
		d, err := h.Workers.DrainMany(h.Ctx, eu, workers.Drain{}, true)
		if err != nil || d.Matched != 2 || d.Draining != 0 || len(d.Workers) != 2 {
			h.Fatalf("dry run: %+v %v", d, err)
		}
		h.WantWorker(a, model.Online, "")
		if d, err = h.Workers.DrainMany(h.Ctx, eu, workers.Drain{}, false); err != nil || d.Draining != 2 {
			h.Fatalf("%+v %v", d, err)
		}
		h.WantWorker(a, model.Draining, "")
		h.WantWorker(b, model.Online, "")
		h.WantWorker(c, model.Draining, "")
		if d, err = h.Workers.DrainMachine(h.Ctx, trackertest.Scope, "m1", workers.Drain{}); err != nil || d.Draining != 2 {
			h.Fatalf("%+v %v", d, err)
		}
		h.WantWorker(b, model.Draining, "")
		_, err = h.Workers.DrainMachine(h.Ctx, trackertest.Scope, "m3", workers.Drain{})
		h.WantCode(err, workers.MachineNotFound)
		nosuch := workers.WorkerFilter{Scope: trackertest.Scope, Queue: "nosuch"}
		_, err = h.Workers.DrainMany(h.Ctx, nosuch, workers.Drain{}, false)
		h.WantCode(err, workers.NoWorkersMatch)
		if d, err = h.Workers.DrainMany(h.Ctx, nosuch, workers.Drain{}, true); err != nil || d.Matched != 0 {
			h.Fatalf("a dry run without a match: %+v %v", d, err)
		}
		h.Advance(time.Second)
		h.MustSweep()
		if d, err = h.Workers.DrainMachine(h.Ctx, trackertest.Scope, "m1", workers.Drain{}); err != nil || d.Matched != 0 {
			h.Fatalf("a machine that is drained already: %+v %v", d, err)
		}
	})
}
