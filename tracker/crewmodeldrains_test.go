package tracker_test

import (
	"pgregory.net/rapid"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// The drains of the crew's model: of workers, and of the machines that they are on; and their cordons.

// How a worker drains.
const (
	drainsItself      = "its own"
	drainsWithMachine = "with its machine"
	waitsForMachine   = "until its machine is resumed"
)

func (m *crewModel) Drain(rt *rapid.T) {
	w := draw(rt, "worker", m.workers)
	_, err := m.tr.DrainWorker(rt.Context(), trackertest.Scope, w.id, tracker.Drain{BySelf: true})
	if w.status == tracker.Offline {
		m.code(rt, "drain", err, tracker.WorkerOffline)
		return
	}
	m.must(rt, err)
	w.status, w.drain, w.told = tracker.Draining, drainsItself, true
}

func (m *crewModel) Resume(rt *rapid.T) {
	w := draw(rt, "worker", m.workers)
	_, err := m.tr.ResumeWorker(rt.Context(), trackertest.Scope, w.id, "")
	switch {
	case w.held:
		m.must(rt, err)
		w.held = false
		if m.holds[w.lineage()] == w {
			delete(m.holds, w.lineage())
		}
		return
	case w.status == tracker.Offline:
		m.code(rt, "resume", err, tracker.WorkerOffline)
		return
	}
	m.must(rt, err)
	w.status, w.told = tracker.Online, false
}

// Cordon cordons a worker or takes that back, whatever else becomes of it.
func (m *crewModel) Cordon(rt *rapid.T) {
	w, on := draw(rt, "worker", m.workers), rapid.Bool().Draw(rt, "on")
	change := m.tr.UncordonWorker
	if on {
		change = m.tr.CordonWorker
	}
	_, err := change(rt.Context(), trackertest.Scope, w.id, "")
	if w.status == tracker.Offline {
		m.code(rt, "cordon", err, tracker.WorkerOffline)
		return
	}
	m.must(rt, err)
	w.cordoned = on
}

func (m *crewModel) DrainMachine(rt *rapid.T) {
	id, there := m.machine(rt)
	_, err := m.tr.DrainMachine(rt.Context(), trackertest.Scope, id, tracker.Drain{})
	if len(there) == 0 {
		m.code(rt, "drain of a machine", err, tracker.MachineNotFound)
		return
	}
	m.must(rt, err)
	m.drained[id] = true
	for _, w := range there {
		if w.status == tracker.Online {
			w.status, w.drain = tracker.Draining, drainsWithMachine
		}
	}
}

func (m *crewModel) OfflineMachine(rt *rapid.T) {
	id, there := m.machine(rt)
	_, err := m.tr.OfflineMachine(rt.Context(), trackertest.Scope, id, "")
	if len(there) == 0 {
		m.code(rt, "offline of a machine", err, tracker.MachineNotFound)
		return
	}
	m.must(rt, err)
	m.heldMachines[id] = true
	for _, w := range there {
		m.ended(w, true)
	}
}

func (m *crewModel) ResumeMachine(rt *rapid.T) {
	id, there := m.machine(rt)
	_, err := m.tr.ResumeMachine(rt.Context(), trackertest.Scope, id, "")
	if len(there) == 0 {
		m.code(rt, "resume of a machine", err, tracker.MachineNotFound)
		return
	}
	m.must(rt, err)
	m.drained[id], m.heldMachines[id] = false, false
	for _, w := range there {
		if w.status == tracker.Draining && w.drain != drainsItself {
			w.status, w.told = tracker.Online, false
		}
	}
}

// machine draws a machine and gives all workers that ever were on it.
func (m *crewModel) machine(rt *rapid.T) (id string, there []*modelWorker) {
	id = rapid.SampledFrom([]string{"m0", "m1", "m2"}).Draw(rt, "machine")
	for _, w := range m.workers {
		if w.machine == id {
			there = append(there, w)
		}
	}
	return id, there
}

// drainOver lets the model follow a drain's end, which the sweeper may see one look later.
func (m *crewModel) drainOver(rt *rapid.T, w *modelWorker) {
	got, err := m.tr.Worker(rt.Context(), trackertest.Scope, w.id)
	m.must(rt, err)
	if got.Status == tracker.Offline {
		w.status, w.untold = tracker.Offline, !w.told
	}
}
