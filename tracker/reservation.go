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
	ended  string // reservations that had ended when it was made
	lost   bool   // the worker was silent for its timeout
}

// reservationLife is more than any claim takes: a reservation that a dead replica left behind ends by then.
const reservationLife = 10 * time.Second

// reserveClaim reserves room for up to `want` tasks of a worker. The registration knows a number that the worker holds no
// more than; only when that leaves too little is what it holds counted in every shard. Settle the grant when what was
// claimed stands in the held sets, or nothing was. With `hear` the worker has just asked, which counts as its beat.
func (t *Tracker) reserveClaim(scope Scope, workerID string, want int, hear bool) (*Grant, error) {
	r, ok := t.workerRef(scope, workerID)
	if !ok {
		return nil, workerNotFound("claim")
	}
	g := &Grant{name: newID(""), worker: r}
	err := t.reserveRoom(g, t.reserveCall(g, want, "", "", hear))
	if err == nil && g.Max < want && !g.lost {
		w := &Worker{Scope: scope, ID: workerID}
		load, settle := t.loadCalls([]*Worker{w})
		t.store.doAll("claim", load)
		for _, c := range load {
			if c.err != nil {
				t.settleClaim(g, 0)
				return nil, c.err
			}
		}
		settle()
		err = t.reserveRoom(g, t.reserveCall(g, want, w.Held, g.ended, false))
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

func (t *Tracker) reserveRoom(g *Grant, c *call) error {
	re, err := t.store.do("claim", c)
	if err != nil {
		return err
	}
	if err := workerRefusal("claim", re.int(0), WorkerReason(re.str(9))); err != nil {
		return err
	}
	g.At, g.Max, g.Queue, g.MachineID, g.ended = re.time(1), int(re.int(2)), re.str(4), re.str(5), re.str(10)
	g.lost = re.int(11) == 1
	g.Types, g.Runtimes, g.Labels = splitNames(re.str(6)), splitNames(re.str(7)), nil
	unmarshal(re.str(8), &g.Labels)
	return nil
}

func (t *Tracker) reserveCall(g *Grant, want int, n, counted any, hear bool) *call {
	k, name := t.store.keys[g.worker.shard], taskName(g.worker.scope, g.worker.id)
	heard := ""
	if hear {
		heard = name
	}
	return newCall(g.worker.shard, t.store.scripts.Get("worker_reserve"), []string{k.worker(name), k.reserved(name), k.clock, k.workerBeats},
		g.name, want, ms(reservationLife), n, counted, heard)
}

// settleClaim ends a reservation of which `used` places hold tasks now. It waits, so that the worker's next claim does
// not find it; one that could not be settled ends by itself.
func (t *Tracker) settleClaim(g *Grant, used int) {
	t.store.doAll("claim", []*call{t.reserveCall(g, -1, used, "", false)})
}
