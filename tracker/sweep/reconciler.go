package sweep

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
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

func (w walk) key(k *schema.ShardKeys) string {
	switch w.set {
	case "timeouts":
		return k.Timeouts
	case "ix":
		return k.Index
	case "held":
		return k.Held
	case "ready":
		return k.Ready
	case "timers":
		return k.Timers
	case "due":
		return k.Due
	case "progress":
		return k.Progress
	case "cancels":
		return k.Cancels
	case "workers":
		return k.Workers
	case "workerbeats":
		return k.WorkerBeats
	case "workerdue":
		return k.WorkerDue
	case "recoveries":
		return k.Recoveries
	}
	return k.Beats(w.timeout)
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
	return &reconciler{s: s, rate: rate, shard: make([]position, s.t.store.Shards())}
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
		seen, _, err := r.step(ctx, rand.IntN(len(r.shard)), true)
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
			_, found, err := r.step(ctx, shard, false)
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
func (r *reconciler) step(ctx context.Context, shard int, ranked bool) (seen int, repairs map[string]int, err error) {
	t, p := r.s.t, &r.shard[shard]
	k := t.store.Keys[shard]
	w := p.walk()
	cursor := p.cursor
	if cursor == "" {
		cursor = "0"
	}
	page, err := t.store.Do(ctx, "reconcile", store.NewCall(shard, t.store.Scripts.Get("walk"), []string{w.key(k), k.Sweepers}, w.scan, cursor, reconcilePage))
	if err != nil {
		return 0, nil, err
	}
	if ranked && r.s.rank(shard, page.List(2).Strings()) > 0 {
		return 0, nil, nil
	}
	entries := slices.DeleteFunc(page.List(1).Strings(), func(e string) bool { return e == "!" }) // the sentinel
	switch w.set {
	case "timeouts":
		p.timeouts = append(p.timeouts, entries...)
	case "workers", "workerbeats", "workerdue", "recoveries":
		repairs, err = t.repairWorkers(ctx, shard, w.set, entries)
	default:
		repairs, err = r.s.repairTasks(ctx, shard, w, entries)
	}
	t.metrics.reconciled.Add(float64(len(entries)))
	if err != nil {
		return len(entries), repairs, err // the same page again
	}
	if p.cursor = page.Str(0); p.cursor == "0" {
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
func (t *Service) countRepairs(calls []*store.Call) (map[string]int, error) {
	repairs := map[string]int{}
	var err error
	for _, c := range calls {
		if c.Err != nil {
			err = c.Err
			continue
		}
		for i := range c.Reply {
			for _, what := range c.Reply.List(i).Strings() {
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
func entryOf(set, entry string, shard int) (scope model.Scope, id, worker string, ok bool) {
	switch set {
	case "ix": // <scope>/<state letter>/<task>, or ~<tenant>/<size>/<workspace>/<task>
		p := strings.Split(entry, "/")
		if len(p) != 4 {
			return model.Scope{}, "", "", false
		}
		if tenant, size := strings.CutPrefix(p[0], "~"); size {
			return model.Scope{Tenant: tenant, Workspace: p[2]}, p[3], "", true
		}
		return model.Scope{Tenant: p[0], Workspace: p[1]}, p[3], "", true
	case "held":
		h, ok := holdings.ParseHeld(entry, shard)
		if !ok {
			return model.Scope{}, "", "", false
		}
		return h.Ref.Scope, h.Ref.ID, h.Worker, true
	case "ready":
		e, ok := schema.ParseReady(entry, shard)
		if !ok {
			return model.Scope{}, "", "", false
		}
		return e.Ref.Scope, e.Ref.ID, "", true
	case "timers", "due":
		_, entry, _ = strings.Cut(entry, ":")
	}
	scope, id, ok = schema.SplitName(entry)
	return scope, id, "", ok
}
