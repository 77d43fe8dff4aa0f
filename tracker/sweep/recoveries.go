package sweep

import (
	"context"
	"sync"

	"github.com/lubdub-io/lubdub/tracker/schema"
)

const recoverLimit = 100 // recoveries begun in a round

// recoveries ends the attempts that ended workers held.
type recoveries struct {
	service    *Service
	id         sweeperID
	background *background
	busy       sync.Map // worker id → true: recoveries in progress on this sweeper
}

func newRecoveries(s *Service, id sweeperID, bg *background) *recoveries {
	return &recoveries{service: s, id: id, background: bg}
}

// recover continues unfinished recoveries. A ranked sweeper does so in the background: a shard on a node that does not respond
// must not delay the verdicts of this one.
func (w *workerSweep) recover(ctx context.Context, r *round, todo []workersDue) error {
	var refs []*schema.WorkerRef
	// If a node does not respond, many may be in progress already; the list continues behind them.
	for from, more := 0, true; more && len(refs) < recoverLimit; from += findLimit {
		var found []dueWorker
		var err error
		found, more, err = w.findDue(ctx, r.node, todo, from, func(d workersDue, k *schema.ShardKeys) dueIn {
			return dueIn{set: k.Recoveries, wall: true, due: d.recoveries}
		})
		if err != nil {
			w.recoveries.end(refs)
			return err
		}
		for _, d := range found {
			if len(refs) < recoverLimit && w.recoveries.begin(d.ref) {
				refs = append(refs, d.ref)
			}
		}
	}
	if len(refs) == 0 {
		return nil
	}
	if r.ranked {
		w.recoveries.background.run("recoveries", func() { _, _, _ = w.recoveries.all(ctx, refs) }) // the next round finds what failed
		return nil
	}
	begun, taken, err := w.recoveries.all(ctx, refs)
	r.result.Recovered += taken
	r.more = r.more || err == nil && begun > 0
	return err
}

// begin reports whether the recovery was not in progress on this sweeper, and marks it as such.
func (v *recoveries) begin(r *schema.WorkerRef) bool {
	_, busy := v.busy.LoadOrStore(r.ID, true)
	return !busy
}

func (v *recoveries) end(refs []*schema.WorkerRef) {
	for _, r := range refs {
		v.busy.Delete(r.ID)
	}
}

// all does the rest of some recoveries. It returns how many were unfinished and how many attempts it took.
func (v *recoveries) all(ctx context.Context, refs []*schema.WorkerRef) (begun, taken int, err error) {
	defer v.end(refs)
	recs, err := v.service.holdings.ReadRecoveries(ctx, "sweep", string(v.id), refs)
	if err != nil {
		return 0, 0, err
	}
	taken, err = v.service.holdings.Recover(ctx, recs...)
	return len(recs), taken, err
}
