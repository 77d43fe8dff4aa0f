package tracker

import (
	"time"
)

// Grant is what a worker may claim now, and what it can run.
type Grant struct {
	Max       int // tasks; 0: it is at its maxConcurrent
	Queue     string
	MachineID string
	Types     []string
	Runtimes  []string
	Labels    map[string]string
	At        time.Time // by Redis's clock

	name   string
	worker *workerRef
}

// reservationLife is more than any claim takes: a reservation that a dead replica left behind ends by then.
const reservationLife = 10 * time.Second

// reserveClaim reserves room for up to `want` tasks of a worker. What it holds is counted after the reservation stands,
// so that two claims at once cannot both take the last place. Give the grant back with giveBack when what was claimed
// stands in the held sets, or nothing was.
func (t *Tracker) reserveClaim(scope Scope, workerID string, want int) (*Grant, error) {
	r, ok := t.workerRef(scope, workerID)
	if !ok {
		return nil, workerNotFound("claim")
	}
	g := &Grant{name: newID(""), worker: r}
	c := t.reserveCall(g, want)
	w := &Worker{Scope: scope, ID: workerID}
	load, settle := t.loadCalls([]*Worker{w})
	if t.store.cluster == nil { // one connection runs them in their order
		t.store.doAll("claim", append([]*call{c}, load...))
	} else {
		t.store.doAll("claim", []*call{c})
		t.store.doAll("claim", load)
	}
	for _, c := range append(load, c) {
		if c.err != nil {
			t.giveBack(g)
			return nil, c.err
		}
	}
	re := c.reply
	code, granted, limit, others := re.int(0), int(re.int(2)), int(re.int(3)), int(re.int(4))
	if err := workerRefusal("claim", code, WorkerReason(re.str(10))); err != nil {
		return nil, err
	}
	settle()
	g.At, g.Queue, g.MachineID = re.time(1), re.str(5), re.str(6)
	g.Types, g.Runtimes = splitNames(re.str(7)), splitNames(re.str(8))
	unmarshal(re.str(9), &g.Labels)
	g.Max = max(0, min(granted, limit-others-w.Held))
	if g.Max == 0 {
		t.giveBack(g)
	}
	return g, nil
}

func (t *Tracker) reserveCall(g *Grant, want int) *call {
	k, name := t.store.keys[g.worker.shard], taskName(g.worker.scope, g.worker.id)
	return newCall(g.worker.shard, t.store.scripts.Get("worker_reserve"), []string{k.worker(name), k.reserved(name)}, g.name, want, ms(reservationLife))
}

// giveBack ends a reservation. It waits, so that the worker's next claim does not find it; one that could not be given
// back ends by itself.
func (t *Tracker) giveBack(g *Grant) { t.store.doAll("claim", []*call{t.reserveCall(g, -1)}) }
