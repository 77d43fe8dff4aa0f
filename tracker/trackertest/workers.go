package trackertest

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Empty deletes everything in the store, like a restart without its data.
func (h *Harness) Empty() {
	h.Helper()
	if err := h.Store.Client.FlushDB(h.Ctx).Err(); err != nil {
		h.Fatal(err)
	}
	h.Store.Clock.Advance(0) // the test's clock is not part of the data
	h.MustTick()
}

// Replica opens another front end of the same deployment.
func (h *Harness) Replica(change ...func(*tracker.Options)) *Harness {
	h.Helper()
	return NewHarness(h.TB, h.Store, change...)
}

func Placed(strategy string) func(*model.NewTask) {
	return func(n *model.NewTask) {
		n.Queue, n.Type, n.HeartbeatTimeout, n.Placement = "default", "send_email", 0, strategy
	}
}

// NewWorker returns a valid worker on host-1 that runs send_email, after applying `change`.
func NewWorker(change ...func(*model.NewWorker)) model.NewWorker {
	n := model.NewWorker{Scope: Scope, Queue: "default", Types: []string{"send_email"}, MachineID: "host-1", MaxConcurrent: 10}
	for _, f := range change {
		f(&n)
	}
	return n
}

// MustRegister registers a worker.
func (h *Harness) MustRegister(change ...func(*model.NewWorker)) *workers.Registered {
	h.Helper()
	n := NewWorker(change...)
	if err := n.Validate(); err != nil {
		h.Fatalf("validate: %v", err)
	}
	r, err := h.Workers.Register(h.Ctx, n)
	if err != nil {
		h.Fatalf("register: %v", err)
	}
	return r
}

// MustAssign makes a worker claim a task of the harness's scope, which must be the only one in its queue that the worker can run.
func (h *Harness) MustAssign(id, worker string) *model.Attempt {
	h.Helper()
	got, err := h.Queues.Claim(h.Ctx, queues.ClaimRequest{Scope: Scope, WorkerID: worker, Queue: h.MustGet(id).Queue, Max: 1})
	if err != nil || len(got) != 1 || got[0].Task.ID != id {
		h.Fatalf("%s claims %v (%v), want %s", worker, IDs(got), err, id)
	}
	return got[0].Attempt
}

func (h *Harness) MustWorker(id string) *model.Worker {
	h.Helper()
	w, err := h.Workers.Get(h.Ctx, Scope, id)
	if err != nil {
		h.Fatalf("worker %s: %v", id, err)
	}
	return w
}

func (h *Harness) MustMachine(id string) *workers.Machine {
	h.Helper()
	m, err := h.Workers.Machine(h.Ctx, Scope, id)
	if err != nil {
		h.Fatalf("machine %s: %v", id, err)
	}
	return m
}

func (h *Harness) MustBeatWorker(id string, change ...func(*workers.WorkerBeat)) *holdings.WorkerBeatResponse {
	h.Helper()
	var b workers.WorkerBeat
	for _, f := range change {
		f(&b)
	}
	result, err := h.Workers.Beat(h.Ctx, Scope, id, b)
	if err != nil {
		h.Fatalf("beat of %s: %v", id, err)
	}
	return result
}

func (h *Harness) WantWorker(id string, status model.WorkerStatus, reason model.WorkerReason) *model.Worker {
	h.Helper()
	w := h.MustWorker(id)
	got := w.StatusReason
	if status == model.Offline { // StatusReason may then be a given reason
		got = string(w.EndReason)
	}
	if w.Status != status || got != string(reason) {
		h.Fatalf("worker %s is %s %q, want %s %q", id, w.Status, got, status, reason)
	}
	return w
}

// Events counts the events of all shards by type, for one subject, or for all if it is "".
func (h *Harness) Events(subject string) map[string]int {
	h.Helper()
	return h.EventsBySubject()[subject]
}

// EventsBySubject counts the events of all shards by subject and type; "" has those of all subjects.
func (h *Harness) EventsBySubject() map[string]map[string]int {
	h.Helper()
	counts := map[string]map[string]int{"": {}}
	for shard := range h.Tracker.Store.Shards() {
		entries, err := h.Store.Client.XRange(h.Ctx, "lubdub:{"+strconv.Itoa(shard)+"}:events", "-", "+").Result()
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

// AdvanceAlive advances the clock while these workers beat in their interval.
func (h *Harness) AdvanceAlive(d time.Duration, workers ...string) {
	h.Helper()
	for ; d > 0; d -= 5 * time.Second {
		h.Advance(min(d, 5*time.Second))
		for _, id := range workers {
			h.MustBeatWorker(id)
		}
	}
}
