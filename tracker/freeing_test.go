package tracker_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
)

// usedMemory is what Redis says that it uses, in bytes.
func (h *harness) usedMemory() int {
	h.Helper()
	info, err := h.store.Client.InfoMap(h.ctx, "memory").Result()
	if err != nil {
		h.Fatal(err)
	}
	n, err := strconv.Atoi(info["Memory"]["used_memory"])
	if err != nil {
		h.Fatal(err)
	}
	return n
}

func (h *harness) limitMemory(bytes int) {
	h.Helper()
	if err := h.store.Client.ConfigSet(h.ctx, "maxmemory", strconv.Itoa(bytes)).Err(); err != nil {
		h.Fatal(err)
	}
}

// Above maxmemory Redis refuses whatever may grow. What is past its retention still goes, tasks and workers alike, though
// verdicts fall due beside it; and once there is room again all goes on.
func TestRetentionFreesAFullStore(t *testing.T) {
	t.Parallel()
	s, _ := redistest.Own(t)
	h := newHarness(t, s)
	payload := []byte(`"` + strings.Repeat("x", 32<<10) + `"`)
	for i := range 64 {
		a := h.create(func(n *tracker.NewTask) { n.TaskID, n.Payload = fmt.Sprintf("done-%d", i), payload }).Envelope.Attempt
		if _, err := h.Complete(h.ctx, a, tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
			h.Fatal(err)
		}
	}
	gone := h.register(func(n *tracker.NewWorker) { n.MachineID = "host-gone" }).WorkerID
	if _, err := h.RetireWorker(h.ctx, scope, gone, tracker.WorkerForced, ""); err != nil {
		h.Fatal(err)
	}
	h.sweep()
	live := h.running(func(n *tracker.NewTask) { n.TaskID = "live" })
	h.store.Clock.Advance(tracker.DefaultFinishedRetention) // an outage: no time passes for those who live
	h.tick()
	// Due together with what is past retention, and written about first.
	h.running(func(n *tracker.NewTask) { n.TaskID = "silent" })
	late := h.register(func(n *tracker.NewWorker) { n.MachineID = "host-late" }).WorkerID
	drained := h.register(func(n *tracker.NewWorker) { n.MachineID = "host-drained" }).WorkerID
	busy := h.register(func(n *tracker.NewWorker) { n.MachineID = "host-busy" }).WorkerID
	if _, err := h.ReserveClaim(scope, busy, 1); err != nil {
		h.Fatal(err)
	}
	for _, id := range []string{drained, busy} {
		if _, err := h.DrainWorker(h.ctx, scope, id, tracker.Drain{}); err != nil {
			h.Fatal(err)
		}
	}
	h.advance(1900 * time.Millisecond)
	if b := h.beat(live, ""); b.Err != nil {
		h.Fatal(b.Err)
	}
	h.advance(200 * time.Millisecond)
	for range 13 {
		h.advance(time.Second)
		h.beat(live, "")
	}

	full := h.usedMemory()
	h.limitMemory(100 << 10) // less than an empty Redis uses: full to the end of the sweep
	h.wantCode(h.beat(live, "").Err, tracker.Unavailable)
	r := h.sweep()
	if r.Removed != 64 || r.RemovedWorkers != 1 || r.Zombies != 1 {
		h.Errorf("%+v: want 64 tasks and 1 worker to be removed, and a zombie found", r)
	}
	if told := h.events(late); told["worker.late"] != 1 {
		h.Errorf("the late worker: %v", told)
	}
	h.limitMemory(full - 1<<20) // there is room by what was freed
	if b := h.beat(live, ""); b.Err != nil {
		h.Fatal(b.Err)
	}
	h.advance(time.Second)
	h.sweep()
	h.wantState("live", tracker.Running, "")
	h.wantWorker(late, tracker.Online, "")
	h.wantWorker(drained, tracker.Offline, tracker.WorkerDrained)
}
