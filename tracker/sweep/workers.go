package sweep

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/brake"
	"github.com/lubdub-io/lubdub/tracker/reconcile"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// workerSweep enforces the deadlines of workers. Its rounds over several nodes run concurrently; its fields do not change.
type workerSweep struct {
	service    *Service
	id         sweeperID
	brake      *brake.Brake
	probes     *probes
	recoveries *recoveries
	audit      *reconcile.Audit
}

func newWorkerSweep(s *Service, id sweeperID, b *brake.Brake, bg *background) *workerSweep {
	return &workerSweep{
		service: s, id: id, brake: b, probes: newProbes(s, bg), recoveries: newRecoveries(s, id, bg),
		audit: reconcile.NewAudit(s.reconcile),
	}
}

// workersDue is what is due for the workers of one shard.
type workersDue struct {
	shard                  int
	beats, due, recoveries bool
	grace                  time.Duration // left to sweepers with a better rank
}

// sweep does one round over the workers in one node's shards, as taskSweep does over its tasks.
func (w *workerSweep) sweep(ctx context.Context, r *round) error {
	if err := w.audit.Step(ctx, r.node, r.shards, !r.ranked); err != nil {
		return err
	}
	todo, err := w.peek(ctx, r)
	if err != nil || len(todo) == 0 {
		return err
	}
	if err := w.endSilent(ctx, r, todo); err != nil {
		return err
	}
	if err := w.takeDue(ctx, r, todo); err != nil {
		return err
	}
	return w.recover(ctx, r, todo)
}

// peek scans the shards of one node for due workers, in one round trip.
func (w *workerSweep) peek(ctx context.Context, r *round) (todo []workersDue, err error) {
	st := w.service.store
	groups := st.Together(r.shards)
	calls := store.CallEach(groups, w.service.scripts.workerPeekCall)
	r.next = maxNap
	err = st.ExecEach(ctx, r.node, calls, groups, func(shard int, now int64, reply store.Reply) {
		dues := readWorkerPeek(reply)
		d := workersDue{shard: shard, grace: r.grace(w.id, shard, dues.sweepers)}
		isOver := func(dueInMs int64) bool {
			late := time.Duration(-dueInMs) * time.Millisecond
			if late < d.grace {
				r.next = min(r.next, d.grace-late)
			}
			return late >= d.grace
		}
		d.beats = isOver(dues.check - dues.time)
		d.due = isOver(dues.due - now)
		d.recoveries = isOver(dues.recovery - now)
		if d.beats || d.due || d.recoveries {
			todo = append(todo, d)
		}
	})
	return todo, err
}

// dueWorker is a worker for which something is due.
type dueWorker struct {
	ref   *schema.WorkerRef
	entry string
	waits bool // it must not end before the brake has decided again
}

// piecesOf splits due workers into one slice for each script call.
func piecesOf(found []dueWorker) [][]dueWorker {
	return schema.ByShard(found, workerLimit, func(w dueWorker) int { return w.ref.Shard })
}

func refsOf(found []dueWorker) []*schema.WorkerRef {
	refs := make([]*schema.WorkerRef, len(found))
	for i := range found {
		refs[i] = found[i].ref
	}
	return refs
}

// dueIn is a sorted set of workers, and whether anything is due in it.
type dueIn struct {
	set  string
	wall bool // its scores are wall time, not shard time
	due  bool
}

// findDue lists the overdue entries of one sorted set in each shard where some are due, except the first `from` of each.
func (w *workerSweep) findDue(ctx context.Context, n *store.Node, todo []workersDue, from int,
	in func(workersDue, *schema.ShardKeys) dueIn) (found []dueWorker, more bool, err error) {
	var calls []*store.Call
	for _, d := range todo {
		if in := in(d, w.service.store.Keys[d.shard]); in.due {
			find := store.Overdue{Set: in.set, Wall: in.wall, Grace: d.grace, Limit: findLimit, Skip: from}
			calls = append(calls, w.service.store.FindCall(d.shard, find))
		}
	}
	if err := w.service.exec(ctx, n, calls); err != nil {
		return nil, false, err
	}
	for _, c := range calls {
		entries := store.ReadFound(c.Reply)
		more = more || len(entries) == findLimit
		for _, entry := range entries {
			name := entry
			if kind, rest, ok := strings.Cut(entry, ":"); ok && len(kind) == 1 {
				name = rest
			}
			if scope, id, ok := schema.SplitName(name); ok {
				found = append(found, dueWorker{ref: &schema.WorkerRef{Scope: scope, ID: id, Shard: c.Shard}, entry: entry})
			}
		}
	}
	return found, more, nil
}

// resolve reads what identifies the keys of workers. One without a record gets its ID for all of them, and the script then
// removes its entry.
func (s *Service) resolve(ctx context.Context, n *store.Node, found []dueWorker) error {
	refs := refsOf(found)
	calls, resolve := s.workers.Names(refs)
	if err := s.exec(ctx, n, calls); err != nil {
		return err
	}
	resolve()
	for _, r := range refs {
		if r.Machine == "" {
			r.Machine, r.Lineage, r.Identity = r.ID, r.ID, r.ID
		}
	}
	return nil
}

// endSilent ends workers that were silent for their timeout and probes the late ones.
func (w *workerSweep) endSilent(ctx context.Context, r *round, todo []workersDue) error {
	found, more, err := w.findDue(ctx, r.node, todo, 0, func(d workersDue, k *schema.ShardKeys) dueIn {
		return dueIn{set: k.WorkerBeats, due: d.beats}
	})
	if err != nil || len(found) == 0 {
		return err
	}
	r.more = r.more || more
	found, inDoubt := w.withoutHeld(ctx, r, found)
	if len(found) > 0 {
		err = w.expire(ctx, r, found)
	}
	return cmp.Or(err, inDoubt)
}

// withoutHeld returns the due workers except those that the brake holds. The others may be late or have sent a heartbeat, which is
// checked even where they must not end yet.
func (w *workerSweep) withoutHeld(ctx context.Context, r *round, due []dueWorker) (rest []dueWorker, err error) {
	decisions, err := w.brake.DecideWorkers(ctx, r.node, refsOf(due))
	for i, decision := range decisions {
		if decision == brake.Hold {
			r.result.MassExpiryHeld++
			continue
		}
		due[i].waits = decision == brake.Wait
		rest = append(rest, due[i])
	}
	return rest, err
}

func (w *workerSweep) expire(ctx context.Context, r *round, found []dueWorker) error {
	if err := w.service.resolve(ctx, r.node, found); err != nil {
		return err
	}
	pieces := piecesOf(found)
	calls := store.CallEach(pieces, func(piece []dueWorker) *store.Call {
		return w.service.scripts.workerExpireCall(w.id, &w.service.opts, piece)
	})
	w.service.store.Exec(ctx, r.node, calls)
	m := w.service.metrics
	for i, c := range calls {
		if c.Err != nil {
			return c.Err
		}
		for j, is := range readWorkerExpire(c.Reply) {
			ref := pieces[i][j].ref
			if is.late || is.stale {
				stale := m.staleWorkers.of(ref.Scope, is.queue)
				if is.stale {
					stale.Inc()
				}
			}
			switch {
			case is.late && is.probeURL != "":
				w.probes.start(ref, is.probeURL)
			case is.stale:
				w.service.logStale(w.id, ref, is)
				r.result.StaleWorkers++
				r.result.addMachine(MachineName{ref.Scope, is.machine})
				m.detectionLag.Observe(is.lag.Seconds())
				m.flap(is)
				r.next, r.more = 0, true // its recovery is due now
			}
		}
	}
	return nil
}
