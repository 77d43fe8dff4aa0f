package tracker

import "sync"

// FakeWorkers stands in for the registry of workers.
type FakeWorkers struct {
	t    *Tracker
	mu   sync.Mutex
	of   map[string]*FakeWorker
	Asks int
}

// FakeWorker is one of them.
type FakeWorker struct {
	Grant   // Max: maxConcurrent
	Refusal error
	out     int // reserved
}

// UseFakeWorkers gives a tracker a registry that the test writes.
func (t *Tracker) UseFakeWorkers() *FakeWorkers {
	f := &FakeWorkers{t: t, of: map[string]*FakeWorker{}}
	t.places = f
	return f
}

// Set registers a worker or changes it.
func (f *FakeWorkers) Set(id string, w FakeWorker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of[id] = &w
}

func (f *FakeWorkers) reserveClaim(scope Scope, workerID string, want int) (*Grant, error) {
	held, err := f.t.heldBy("claim", scope, workerID)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Asks++
	w := f.of[workerID]
	if w == nil {
		return nil, &Error{Code: "worker_not_found", Op: "claim"}
	}
	if w.Refusal != nil {
		return nil, w.Refusal
	}
	g := w.Grant
	g.Max = max(0, min(want, w.Max-w.out-len(held)))
	w.out += g.Max
	g.MachineID = workerID
	return &g, nil
}

func (f *FakeWorkers) giveBack(g *Grant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of[g.MachineID].out -= g.Max
}

// ShardOf tells where a task lives.
func (t *Tracker) ShardOf(scope Scope, id string) int { return t.store.shardOf(scope, id) }
