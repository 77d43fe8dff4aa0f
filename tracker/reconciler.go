package tracker

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// The reconciler walks over everything that names a task or a worker, slowly, and holds it against the records: what
// nothing stands behind goes, what a record needs to come to an end is put back. In a healthy store it finds nothing:
// every transition writes all of it in one step. A store that lost writes, or a hand that deleted a key, leaves what no
// sweeper would ever see.
const (
	reconcilePage = 50 // entries of one step, about
	reconcileIdle = 25 // entries that a step counts as at least: a look at an empty set costs too
	repairLimit   = 25 // tasks or workers of one script call
)

// walks are the sets of a shard in the order of the walk; the beats sets come behind, as timeouts lists them.
var walks = []walk{
	{set: "timeouts", scan: "SSCAN"},
	{set: "ix", scan: "ZSCAN"},
	{set: "held", scan: "ZSCAN"},
	{set: "ready", scan: "ZSCAN"},
	{set: "timers", scan: "ZSCAN"},
	{set: "due", scan: "ZSCAN"},
	{set: "progress", scan: "HSCAN"},
	{set: "cancels", scan: "HSCAN"},
	{set: "workerbeats", scan: "ZSCAN"},
	{set: "workerdue", scan: "ZSCAN"},
	{set: "recoveries", scan: "ZSCAN"},
	{set: "workers", scan: "ZSCAN"}, // last: by now no machine is without workers only because its lists lost them
}

type walk struct {
	set     string
	scan    string
	timeout string // of a beats set, ms
}

func (w walk) key(k *shardKeys) string {
	switch w.set {
	case "timeouts":
		return k.timeouts
	case "ix":
		return k.ix
	case "held":
		return k.held
	case "ready":
		return k.ready
	case "timers":
		return k.timers
	case "due":
		return k.due
	case "progress":
		return k.progress
	case "cancels":
		return k.cancels
	case "workers":
		return k.workers
	case "workerbeats":
		return k.workerBeats
	case "workerdue":
		return k.workerDue
	case "recoveries":
		return k.recoveries
	}
	return k.beats(w.timeout)
}

// position is how far the walk over one shard has come.
type position struct {
	at       int
	cursor   string
	timeouts []string
}

type reconciler struct {
	s     *Sweeper
	rate  int
	shard []position
}

func newReconciler(s *Sweeper, rate int) *reconciler {
	return &reconciler{s: s, rate: rate, shard: make([]position, s.t.store.shards())}
}

// run takes a step in a shard drawn at random whenever its pace allows one, until the context ends. A shard is left to
// the sweeper that is first in it, so all together keep the pace.
func (r *reconciler) run(ctx context.Context) {
	if r.rate == 0 {
		return
	}
	wait := time.Second
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration((0.5 + rand.Float64()) * float64(wait))):
		}
		seen, _, err := r.step(rand.IntN(len(r.shard)), true)
		wait = time.Duration(max(seen, reconcileIdle)) * time.Second / time.Duration(r.rate)
		if err != nil {
			wait = max(wait, time.Second) // the store does not answer; sweeping says so
		}
	}
}

// Reconcile walks over everything once, whatever other sweepers do, and counts what it repaired.
func (s *Sweeper) Reconcile(ctx context.Context) (map[string]int, error) {
	r, repairs := newReconciler(s, 0), map[string]int{}
	for shard := range r.shard {
		for more := true; more; {
			if err := ctx.Err(); err != nil {
				return repairs, err
			}
			_, found, err := r.step(shard, false)
			for what, n := range found {
				repairs[what] += n
			}
			if err != nil {
				return repairs, err
			}
			more = r.shard[shard].at > 0 || r.shard[shard].cursor != ""
		}
	}
	return repairs, nil
}

// step looks at one page of one shard and moves on. It tells how many entries it saw.
func (r *reconciler) step(shard int, ranked bool) (seen int, repairs map[string]int, err error) {
	t, p := r.s.t, &r.shard[shard]
	k := t.store.keys[shard]
	w := p.walk()
	cursor := p.cursor
	if cursor == "" {
		cursor = "0"
	}
	page, err := t.store.do("reconcile", newCall(shard, t.store.scripts.Get("walk"), []string{w.key(k), k.sweepers}, w.scan, cursor, reconcilePage))
	if err != nil {
		return 0, nil, err
	}
	if ranked && r.s.rank(shard, page.list(2).strings()) > 0 {
		return 0, nil, nil
	}
	entries := slices.DeleteFunc(page.list(1).strings(), func(e string) bool { return e == "!" }) // the sentinel
	switch w.set {
	case "timeouts":
		p.timeouts = append(p.timeouts, entries...)
	case "workers", "workerbeats", "workerdue", "recoveries":
		repairs, err = t.repairWorkers(shard, w.set, entries)
	default:
		repairs, err = r.s.repairTasks(shard, w, entries)
	}
	t.metrics.reconciled.Add(float64(len(entries)))
	if err != nil {
		return len(entries), repairs, err // the same page again
	}
	if p.cursor = page.str(0); p.cursor == "0" {
		p.cursor = ""
		if p.at++; p.at == len(walks)+len(p.timeouts) {
			*p = position{}
		}
	}
	return len(entries), repairs, nil
}

func (p *position) walk() walk {
	if p.at < len(walks) {
		return walks[p.at]
	}
	return walk{"beats", "ZSCAN", p.timeouts[p.at-len(walks)]}
}

// countRepairs counts what scripts answered that they repaired.
func (t *Tracker) countRepairs(calls []*call) (map[string]int, error) {
	repairs := map[string]int{}
	var err error
	for _, c := range calls {
		if c.err != nil {
			err = c.err
			continue
		}
		for i := range c.reply {
			for _, what := range c.reply.list(i).strings() {
				repairs[what]++
				t.metrics.repairs.WithLabelValues(what).Inc()
			}
		}
	}
	if len(repairs) > 0 {
		t.log.Warn("the reconciler repaired the store; if it lost writes or something else wrote to it, this was to be expected, else please report it", "repairs", repairs)
	}
	return repairs, err
}

// entryOf reads which task an entry of a set is about.
func entryOf(set, entry string, shard int) (scope Scope, id, worker string, ok bool) {
	switch set {
	case "ix": // <scope>/<state letter>/<task>, or ~<tenant>/<size>/<workspace>/<task>
		p := strings.Split(entry, "/")
		if len(p) != 4 {
			return Scope{}, "", "", false
		}
		if tenant, size := strings.CutPrefix(p[0], "~"); size {
			return Scope{tenant, p[2]}, p[3], "", true
		}
		return Scope{p[0], p[1]}, p[3], "", true
	case "held":
		h, ok := parseHeld(entry, shard)
		if !ok {
			return Scope{}, "", "", false
		}
		return h.ref.scope, h.ref.id, h.worker, true
	case "ready":
		e, ok := parseReady(entry, shard)
		if !ok {
			return Scope{}, "", "", false
		}
		return e.ref.scope, e.ref.id, "", true
	case "timers", "due":
		_, entry, _ = strings.Cut(entry, ":")
	}
	scope, id, ok = splitName(entry)
	return scope, id, "", ok
}
