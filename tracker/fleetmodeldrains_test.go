package tracker_test

import (
	"pgregory.net/rapid"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// The drains of the fleet's model: of workers, and of their machines; and their cordons.

// These are the ways in which a worker drains.
const (
	drainsItself      = "its own"
	drainsWithMachine = "with its machine"
	waitsForMachine   = "until its machine is resumed"
)

func (m *fleetModel) Drain(rt *rapid.T) {
	w := draw(rt, "worker", m.workers)
	_, err := m.tr.Workers.Drain(rt.Context(), trackertest.Scope, w.id, workers.Drain{BySelf: true})
	if w.status == model.Offline {
		m.code(rt, "drain", err, workers.WorkerOffline)
		return
	}
	m.must(rt, err)
	w.status, w.drain, w.notified = model.Draining, drainsItself, true
}

func (m *fleetModel) Resume(rt *rapid.T) {
	w := draw(rt, "worker", m.workers)
	_, err := m.tr.Workers.Resume(rt.Context(), trackertest.Scope, w.id, "")
	switch {
	case w.held:
		m.must(rt, err)
		w.held = false
		delete(m.holds, w.lineage())
		return
	case w.status == model.Offline:
		m.code(rt, "resume", err, workers.WorkerOffline)
		return
	}
	m.must(rt, err)
	w.status, w.notified = model.Online, false
}

// Cordon cordons or uncordons a worker, whatever else happens to it.
func (m *fleetModel) Cordon(rt *rapid.T) {
	w, on := draw(rt, "worker", m.workers), rapid.Bool().Draw(rt, "on")
	change := m.tr.Workers.Uncordon
	if on {
		change = m.tr.Workers.Cordon
	}
	_, err := change(rt.Context(), trackertest.Scope, w.id, "")
	if w.status == model.Offline {
		m.code(rt, "cordon", err, workers.WorkerOffline)
		return
	}
	m.must(rt, err)
	w.cordoned = on
}

func (m *fleetModel) DrainMachine(rt *rapid.T) {
	id, there := m.machine(rt)
	_, err := m.tr.Workers.DrainMachine(rt.Context(), trackertest.Scope, id, workers.Drain{})
	if len(there) == 0 {
		m.code(rt, "drain of a machine", err, workers.MachineNotFound)
		return
	}
	m.must(rt, err)
	m.drained[id] = true
	for _, w := range there {
		if w.status == model.Online {
			w.status, w.drain = model.Draining, drainsWithMachine
		}
	}
}

func (m *fleetModel) OfflineMachine(rt *rapid.T) {
	id, there := m.machine(rt)
	_, err := m.tr.Workers.OfflineMachine(rt.Context(), trackertest.Scope, id, "")
	if len(there) == 0 {
		m.code(rt, "offline of a machine", err, workers.MachineNotFound)
		return
	}
	m.must(rt, err)
	m.heldMachines[id] = true
	for _, w := range there {
		m.ended(w, true)
	}
}

func (m *fleetModel) ResumeMachine(rt *rapid.T) {
	id, there := m.machine(rt)
	_, err := m.tr.Workers.ResumeMachine(rt.Context(), trackertest.Scope, id, "")
	if len(there) == 0 {
		m.code(rt, "resume of a machine", err, workers.MachineNotFound)
		return
	}
	m.must(rt, err)
	m.drained[id], m.heldMachines[id] = false, false
	for _, w := range there {
		if w.status == model.Draining && w.drain != drainsItself {
			w.status, w.notified = model.Online, false
		}
	}
}

// machine draws a machine and returns all workers that were ever on it.
func (m *fleetModel) machine(rt *rapid.T) (id string, there []*modelWorker) {
	id = rapid.SampledFrom([]string{"m0", "m1", "m2"}).Draw(rt, "machine")
	for _, w := range m.workers {
		if w.machine == id {
			there = append(there, w)
		}
	}
	return id, there
}

// drainOver updates the model after a drain's end, which the sweeper may see one look later.
func (m *fleetModel) drainOver(rt *rapid.T, w *modelWorker) {
	got, err := m.tr.Workers.Get(rt.Context(), trackertest.Scope, w.id)
	m.must(rt, err)
	if got.Status == model.Offline {
		w.status, w.missedNotice = model.Offline, !w.notified
	}
}
