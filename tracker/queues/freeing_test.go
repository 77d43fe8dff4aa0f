package queues_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// usedMemory is the memory that Redis reports as used, in bytes.
func usedMemory(h *trackertest.Harness) int {
	h.Helper()
	info, err := h.Store.Client.InfoMap(h.Ctx, "memory").Result()
	if err != nil {
		h.Fatal(err)
	}
	n, err := strconv.Atoi(info["Memory"]["used_memory"])
	if err != nil {
		h.Fatal(err)
	}
	return n
}

func limitMemory(h *trackertest.Harness, bytes int) {
	h.Helper()
	if err := h.Store.Client.ConfigSet(h.Ctx, "maxmemory", strconv.Itoa(bytes)).Err(); err != nil {
		h.Fatal(err)
	}
}

// Above maxmemory Redis refuses every write that may grow. Tasks and workers past their retention are still removed, even with
// verdicts due at the same time; and once there is room again, everything works again.
func TestRetentionFreesAFullStore(t *testing.T) {
	t.Parallel()
	s, _ := redistest.Own(t)
	h := trackertest.NewHarness(t, s)
	payload := []byte(`"` + strings.Repeat("x", 32<<10) + `"`)
	for i := range 64 {
		a := h.MustCreate(func(n *model.NewTask) { n.TaskID, n.Payload = fmt.Sprintf("done-%d", i), payload }).Envelope.Attempt
		if _, err := h.Beats.Complete(h.Ctx, a, model.Completion{Outcome: model.Succeeded}); err != nil {
			h.Fatal(err)
		}
	}
	gone := h.MustRegister(func(n *model.NewWorker) { n.MachineID = "host-gone" }).WorkerID
	if _, err := h.Workers.Retire(h.Ctx, trackertest.Scope, gone, model.WorkerDeregistered, ""); err != nil {
		h.Fatal(err)
	}
	h.MustSweep()
	live := h.Running(func(n *model.NewTask) { n.TaskID = "live" })
	h.Store.Clock.Advance(model.DefaultFinishedRetention) // an outage: no time passes for running attempts
	h.MustTick()
	// Due together with what is past its retention, and written first.
	h.Running(func(n *model.NewTask) { n.TaskID = "silent" })
	late := h.MustRegister(func(n *model.NewWorker) { n.MachineID = "host-late" }).WorkerID
	drained := h.MustRegister(func(n *model.NewWorker) { n.MachineID = "host-drained" }).WorkerID
	busy := h.MustRegister(func(n *model.NewWorker) { n.MachineID = "host-busy" }).WorkerID
	if _, err := h.Queues.ReserveClaim(trackertest.Scope, busy, 1); err != nil {
		h.Fatal(err)
	}
	for _, id := range []string{drained, busy} {
		if _, err := h.Workers.Drain(h.Ctx, trackertest.Scope, id, workers.Drain{}); err != nil {
			h.Fatal(err)
		}
	}
	h.Advance(1900 * time.Millisecond)
	if b := h.MustBeat(live, ""); b.Err != nil {
		h.Fatal(b.Err)
	}
	h.Advance(200 * time.Millisecond)
	for range 13 {
		h.Advance(time.Second)
		h.MustBeat(live, "")
	}

	full := usedMemory(h)
	limitMemory(h, 100<<10) // less than an empty Redis uses: full until the end of the sweep
	h.WantCode(h.MustBeat(live, "").Err, model.Unavailable)
	r := h.MustSweep()
	if r.Removed != 64 || r.RemovedWorkers != 1 || r.Zombies != 1 {
		h.Errorf("%+v: want 64 tasks and 1 worker to be removed, and a zombie found", r)
	}
	if published := h.Events(late); published["worker.late"] != 1 {
		h.Errorf("the late worker: %v", published)
	}
	limitMemory(h, full-1<<20) // what was freed makes room
	if b := h.MustBeat(live, ""); b.Err != nil {
		h.Fatal(b.Err)
	}
	h.Advance(time.Second)
	h.MustSweep()
	h.WantState("live", model.Running, "")
	h.WantWorker(late, model.Online, "")
	h.WantWorker(drained, model.Offline, model.WorkerDrained)
}

// A worker cannot list the tasks of a claim before it receives the response.
func TestInventoryDuringAClaim(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		a := c.MustHolding("w1", 1)[0]
		settle, err := c.Queues.ReserveClaim(trackertest.Scope, c.IDs["w1"], 1)
		if err != nil {
			c.Fatal(err)
		}
		for range 3 {
			c.MustBeatWorker(c.IDs["w1"], trackertest.Listing())
		}
		c.WantState(a.TaskID, model.Running, "")
		settle()
		c.MustBeatWorker(c.IDs["w1"], trackertest.Listing())
		c.WantState(a.TaskID, model.Running, "")
		c.MustBeatWorker(c.IDs["w1"], trackertest.Listing())
		c.WantState(a.TaskID, model.Queued, "")
	})
}
