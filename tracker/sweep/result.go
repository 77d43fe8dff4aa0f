package sweep

import (
	"fmt"
	"slices"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// SweepResult counts what one sweep did.
type SweepResult struct {
	Zombies        int // attempts ended for silence
	TimedOut       int // attempts and tasks ended by a start, run or cancel timeout or by their deadline
	Requeued       int // of both, those whose task went back to its queue
	Ready          int // queued tasks whose backoff or start time was over
	Removed        int // finished tasks past their retention
	MassExpiryHeld int // attempts and workers to which the mass-expiry brake gave a second timeout period

	StaleWorkers   int // workers that went OFFLINE for silence
	Machines       []MachineName
	DrainedWorkers int // workers whose drain ended
	RemovedWorkers int // OFFLINE workers past their retention
	Recovered      int // attempts recovered from ended workers
}

// MachineName names a machine whose worker was swept.
type MachineName struct {
	Scope model.Scope
	ID    string
}

func (m MachineName) String() string { return m.ID }

func (r *SweepResult) add(o SweepResult) {
	r.Zombies += o.Zombies
	r.TimedOut += o.TimedOut
	r.Requeued += o.Requeued
	r.Ready += o.Ready
	r.Removed += o.Removed
	r.MassExpiryHeld += o.MassExpiryHeld
	r.StaleWorkers += o.StaleWorkers
	for _, m := range o.Machines {
		r.addMachine(m)
	}
	r.DrainedWorkers += o.DrainedWorkers
	r.RemovedWorkers += o.RemovedWorkers
	r.Recovered += o.Recovered
}

// data returns the result as the JSON of its event.
func (r *SweepResult) data() string {
	return fmt.Sprintf(`{"zombies":%d,"timedOut":%d,"requeued":%d,"ready":%d,"removed":%d,"held":%d,`+
		`"workers":{"stale":%d,"drained":%d,"removed":%d,"recoveredAttempts":%d}}`,
		r.Zombies, r.TimedOut, r.Requeued, r.Ready, r.Removed, r.MassExpiryHeld, r.StaleWorkers, r.DrainedWorkers, r.RemovedWorkers, r.Recovered)
}

func (r *SweepResult) addMachine(m MachineName) {
	if !slices.Contains(r.Machines, m) {
		r.Machines = append(r.Machines, m)
	}
}
