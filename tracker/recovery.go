package tracker

import (
	"context"
	"strconv"
	"sync"
)

// A worker that has ended for good leaves a recovery entry, written in the script of the verdict, which lists every
// shard. In each of them the worker is fenced first, so that a claim of its that is still under way finds the fence,
// and then what it held is taken. A shard that is done is ticked off. Whoever finds an unfinished entry goes on with
// it: all steps may be repeated.

// recovery is an entry and what is left to do of it.
type recovery struct {
	worker   *workerRef
	shards   []int
	evidence lostEvidence
	queue    string
	by       string // who recovers
}

// readRecoveries reads what is left to do for workers; those without anything left are not in the result.
func (t *Tracker) readRecoveries(op, by string, refs []*workerRef) ([]*recovery, error) {
	groups := byShard(refs)
	calls := make([]*call, len(groups))
	for g, group := range groups {
		k := t.store.keys[group[0].shard]
		var keys []string
		for _, r := range group {
			name := taskName(r.scope, r.id)
			keys = append(keys, k.recovery(name), k.worker(name))
		}
		calls[g] = newCall(group[0].shard, t.store.scripts.Get("recovery_read"), keys)
	}
	t.store.doAll(op, calls)
	var found []*recovery
	for g, group := range groups {
		if calls[g].err != nil {
			return nil, calls[g].err
		}
		for i, r := range group {
			re := calls[g].reply
			rec := &recovery{
				worker: r, evidence: readLostEvidence(re[recoveryFields*i:]), queue: re.str(recoveryFields*i + 6), by: by,
			}
			for _, shard := range re.list(recoveryFields * i).strings() {
				if n, err := strconv.Atoi(shard); err == nil && n < t.store.shards() {
					rec.shards = append(rec.shards, n)
				}
			}
			if len(rec.shards) > 0 {
				found = append(found, rec)
			}
		}
	}
	return found, nil
}

// recoverAtOnce is how many recoveries go on at once on one node.
const recoverAtOnce = 16

// recover does what is left of recoveries, on all nodes at once: one that does not answer must not hold up what is
// requeued on the others. It gives how many attempts it took; what failed is left to whoever comes next.
func (t *Tracker) recover(ctx context.Context, recs ...*recovery) (taken int, err error) {
	type part struct {
		rec   *recovery
		shard int
	}
	byNode := map[*node][]part{}
	for _, rec := range recs {
		for _, shard := range rec.shards {
			n := t.store.node(shard)
			byNode[n] = append(byNode[n], part{rec, shard})
		}
	}
	var mu sync.Mutex
	var running sync.WaitGroup
	silent := map[int]bool{} // shards that do not answer: each wait for one would be as long
	for _, parts := range byNode {
		todo := make(chan part, len(parts))
		for _, p := range parts {
			todo <- p
		}
		close(todo)
		for range min(recoverAtOnce, len(parts)) {
			running.Go(func() {
				defer t.store.contain("a recovery")
				for p := range todo {
					mu.Lock()
					left := silent[p.shard]
					mu.Unlock()
					if left {
						continue
					}
					n, failed := t.recoverIn(ctx, p.rec, p.shard)
					mu.Lock()
					taken += n
					if err == nil {
						err = failed
					}
					silent[p.shard] = silent[p.shard] || isNetwork(failed)
					mu.Unlock()
				}
			})
		}
	}
	running.Wait()
	t.metrics.recovered.Add(float64(taken))
	return taken, err
}

// recoverIn does one shard and ticks it off.
func (t *Tracker) recoverIn(ctx context.Context, rec *recovery, shard int) (taken int, err error) {
	for done := false; !done; {
		if ctx.Err() != nil {
			return taken, ctx.Err()
		}
		var n int
		done, n, err = t.recoverShard(ctx, shard, rec)
		taken += n
		if err != nil {
			return taken, err
		}
	}
	if err := t.unpinShard("recover", shard, rec.worker, rec.queue); err != nil {
		return taken, err
	}
	return taken, t.tickOff(rec.worker, shard, taken)
}

func (t *Tracker) tickOff(r *workerRef, shard, taken int) error {
	k, name := t.store.keys[r.shard], taskName(r.scope, r.id)
	_, err := t.store.do("recover", newCall(r.shard, t.store.scripts.Get("recovery_done"),
		[]string{k.events, k.recoveries, k.recovery(name), k.worker(name)}, r.scope.String(), r.id, shard, taken))
	return err
}

// recoverNow recovers one worker at once, for a caller that has just ended it. What fails the sweepers do.
func (t *Tracker) recoverNow(ctx context.Context, scope Scope, id string) {
	r, ok := t.workerRef(scope, id)
	if !ok {
		return
	}
	t = t.sparing()
	recs, err := t.readRecoveries("recover", t.sweeperID(), []*workerRef{r})
	if err != nil {
		return
	}
	_, _ = t.recover(ctx, recs...)
}
