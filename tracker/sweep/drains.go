package sweep

import (
	"context"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

const drainAgain = 250 * time.Millisecond // until a draining worker is checked again

// takeDue checks drains and removes workers that are past their retention.
func (w *workerSweep) takeDue(ctx context.Context, r *round, todo []workersDue) error {
	found, more, err := w.findDue(ctx, r.node, todo, 0, func(d workersDue, k *schema.ShardKeys) dueIn {
		return dueIn{set: k.WorkerDue, wall: true, due: d.due}
	})
	if err != nil || len(found) == 0 {
		return err
	}
	if err := w.service.resolve(ctx, r.node, found); err != nil {
		return err
	}
	drains, err := w.evaluateDrains(ctx, r.node, found)
	if err != nil {
		return err
	}
	pieces := piecesOf(found)
	calls := store.CallEach(pieces, func(piece []dueWorker) *store.Call {
		return w.service.scripts.workerDueCall(w.service.opts.Retention, drainAgain, piece, drains)
	})
	w.service.store.Exec(ctx, r.node, calls)
	for i, c := range calls {
		if c.Err != nil {
			return c.Err
		}
		for j, is := range readWorkerDue(c.Reply) {
			switch ref := pieces[i][j].ref; {
			case is.offline:
				w.service.log.Info("worker is drained and offline", ref.Scope.LogAttr(), "workerId", ref.ID, "machineId", ref.Machine,
					"by", string(w.id))
				r.result.DrainedWorkers++
				r.more = true
			case is.removed:
				r.result.RemovedWorkers++
			}
		}
	}
	r.more = r.more || more
	return nil
}

// drain is what one check found about a drain.
type drain struct {
	began string // wall ms; "": the worker does not drain, or a claim is in progress
	empty bool   // the worker holds nothing
}

// evaluateDrains finds which draining workers hold nothing. It reads whether a claim is in progress before it counts what they hold:
// no claim begins while a worker drains.
func (w *workerSweep) evaluateDrains(ctx context.Context, n *store.Node, found []dueWorker) (map[*schema.WorkerRef]drain, error) {
	var refs []*schema.WorkerRef
	for _, d := range found {
		if strings.HasPrefix(d.entry, "g:") {
			refs = append(refs, d.ref)
		}
	}
	groups := schema.WorkersByShard(refs)
	calls := store.CallEach(groups, w.service.scripts.workerDrainsCall)
	if err := w.service.exec(ctx, n, calls); err != nil {
		return nil, err
	}
	seen := map[*schema.WorkerRef]drain{}
	var idle []*model.Worker
	var of []*schema.WorkerRef
	for g, group := range groups {
		for i, began := range readWorkerDrains(calls[g].Reply) {
			if r := group[i]; began != "" {
				seen[r] = drain{began: began}
				idle, of = append(idle, &model.Worker{Scope: r.Scope, ID: r.ID}), append(of, r)
			}
		}
	}
	if len(idle) == 0 {
		return seen, nil
	}
	err := w.service.workers.CountLoad(ctx, w.service.store.DoAll, "sweep", idle)
	if err != nil { // a shard on another node that does not respond ends no drain
		return seen, nil //nolint:nilerr // the drain is checked again
	}
	for i, worker := range idle {
		if worker.Held == 0 {
			seen[of[i]] = drain{seen[of[i]].began, true}
		}
	}
	return seen, nil
}
