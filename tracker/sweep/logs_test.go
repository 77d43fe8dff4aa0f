package sweep_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// with returns the lines that contain all of the texts.
func (l *lines) with(texts ...string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for line := range strings.Lines(l.b.String()) {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue next
			}
		}
		found = append(found, line)
	}
	return found
}

func logged(t *testing.T, test func(h *trackertest.Harness, log *lines)) {
	t.Helper()
	log := &lines{}
	trackertest.Contract(t, func(h *trackertest.Harness) {
		test(h, log)
		log.mu.Lock()
		defer log.mu.Unlock()
		log.b.Reset()
	}, func(o *tracker.Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
}

// A zombie is logged; of very many, ten lines a second are logged, and the number of further ones.
func TestVerdictsLeaveLines(t *testing.T) {
	t.Parallel()
	logged(t, func(h *trackertest.Harness, log *lines) {
		h.Running(func(n *model.NewTask) { n.TaskID = "one" })
		h.Advance(3 * time.Second)
		h.MustSweep()
		if got := log.with("task heartbeat is stale", "taskId=one", "attempt=1", "reason=HEARTBEAT_TIMEOUT", "by=swp_test",
			"requeued=false"); len(got) != 1 {
			t.Errorf("%q", got)
		}
		const many = 100
		for i := range many {
			h.Running(func(n *model.NewTask) { n.TaskID = fmt.Sprint("many", i) })
		}
		h.Advance(3 * time.Second)
		began := time.Now().Unix()
		if r := h.MustSweep(); r.Zombies != many {
			t.Fatalf("%+v", r)
		}
		seconds := time.Now().Unix() - began + 1
		if n := len(log.with("task heartbeat is stale", "taskId=many")); n < 1 && seconds > 1 || n > int(10*seconds) {
			t.Errorf("%d lines in %d s", n, seconds)
		}
	})
}

// The end of a recovery is logged in one line: the attempts taken in all shards, how many of them failed permanently, and the time
// since the worker ended.
func TestTheEndOfARecoveryLeavesALine(t *testing.T) {
	t.Parallel()
	logged(t, func(h *trackertest.Harness, log *lines) {
		c := trackertest.NewFleet(h)
		c.Hire("w1")
		made := 0
		c.MustHolding("w1", 12, func(n *model.NewTask) {
			if made++; made <= 5 {
				once := model.DefaultRetryPolicy
				once.MaxLosses = 0
				n.Retry = &once
			}
		})
		if err := trackertest.EndWithoutRecovery(c.Tracker, trackertest.Scope, c.IDs["w1"]); err != nil {
			t.Fatal(err)
		}
		c.Advance(2 * time.Second)
		c.MustSweep()
		c.MustSweep()
		const message = "tasks of an ended worker are requeued"
		if got := log.with("level=INFO", message, "tenantId=acme", "workspaceId=prod", "workerId="+c.IDs["w1"], "recovered=12",
			"failed=5", "took=2", "by=swp_test"); len(got) != 1 || len(log.with(message)) != 1 {
			t.Errorf("%q", log.with("recovered"))
		}
	})
}

// The log line of a worker that was ended for silence has the time of its last heartbeat, a drain that ends is logged too, and the
// line of an outage states its length.
func TestEndsOfWorkersLeaveLines(t *testing.T) {
	t.Parallel()
	logged(t, func(h *trackertest.Harness, log *lines) {
		silent := h.MustRegister(func(n *model.NewWorker) { n.MachineID = "m1" })
		seen := h.Store.Clock.Now()
		h.Advance(31 * time.Second)
		h.MustSweep()
		if got := log.with("worker heartbeat is stale", "workerId="+silent.WorkerID, "machineId=m1", "by=swp_test",
			"lastSeen="+seen.UTC().Format("2006-01-02T15:04:05.000Z")); len(got) != 1 {
			t.Errorf("%q", log.with("worker"))
		}
		drained := h.MustRegister(func(n *model.NewWorker) { n.MachineID = "m2" })
		if _, err := h.Workers.Drain(h.Ctx, trackertest.Scope, drained.WorkerID, workers.Drain{}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Workers.Beat(h.Ctx, trackertest.Scope, drained.WorkerID, workers.WorkerBeat{}); err != nil {
			t.Fatal(err)
		}
		h.Advance(2 * time.Second)
		h.MustSweep()
		if got := log.with("worker is drained and offline", "workerId="+drained.WorkerID, "machineId=m2"); len(got) != 1 {
			t.Errorf("%q", log.with("worker"))
		}
		h.Store.Clock.Advance(5 * time.Second)
		h.MustTick()
		if got := log.with("outage over", "lost=4.75s"); len(got) != 1 {
			t.Errorf("%q", log.with("outage"))
		}
	})
}
