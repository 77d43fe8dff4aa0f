package holdings

import (
	"context"
	"log/slog"
	"strconv"
	"sync"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// A worker that has ended for good has a recovery entry, written by the script of the verdict, which lists every shard. In each shard the
// worker is fenced first, so that a claim in progress meets the fence, and then its attempts are taken. A finished shard is removed from
// the entry. Any replica that finds an unfinished entry continues it: all steps may be repeated.

// Recovery is a recovery entry with its remaining shards. It does not change after it is read.
type Recovery struct {
	worker   *schema.WorkerRef
	shards   []int
	evidence lostEvidence
	queue    string
	by       string // the recovering replica
}

// ReadRecoveries returns the recoveries of workers that have shards left.
func (s *Service) ReadRecoveries(ctx context.Context, op, by string, refs []*schema.WorkerRef) ([]*Recovery, error) {
	groups := schema.WorkersByShard(refs)
	calls := store.CallEach(groups, s.recoveryReadCall)
	s.store.DoAll(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	var found []*Recovery
	for g, group := range groups {
		for i, ref := range group {
			r := readRecovery(calls[g].Reply, i)
			rec := &Recovery{worker: ref, evidence: r.evidence(), queue: r.queue, by: by}
			for _, shard := range r.shards {
				if n, err := strconv.Atoi(shard); err == nil && n < s.store.Shards() {
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

// recoverAtOnce is how many recoveries run concurrently on one node.
const recoverAtOnce = 16

// Recover continues recoveries on all nodes concurrently: a node that does not respond must not delay the others. It returns how many
// attempts it took, and the first error; what failed is left to the next caller.
func (s *Service) Recover(ctx context.Context, recs ...*Recovery) (taken int, err error) {
	type part struct {
		rec   *Recovery
		shard int
	}
	byNode := map[*store.Node][]part{}
	for _, rec := range recs {
		for _, shard := range rec.shards {
			n := s.store.Node(shard)
			byNode[n] = append(byNode[n], part{rec, shard})
		}
	}
	var mu sync.Mutex
	var running sync.WaitGroup
	silent := map[int]bool{} // shards that do not respond: each wait for one would be as long
	for _, parts := range byNode {
		todo := make(chan part, len(parts))
		for _, p := range parts {
			todo <- p
		}
		close(todo)
		for range min(recoverAtOnce, len(parts)) {
			running.Go(func() {
				defer s.store.Contain("a recovery")
				for p := range todo {
					mu.Lock()
					left := silent[p.shard]
					mu.Unlock()
					if left {
						continue
					}
					n, failed := s.recoverIn(ctx, p.rec, p.shard)
					mu.Lock()
					taken += n
					if err == nil {
						err = failed
					}
					silent[p.shard] = silent[p.shard] || store.IsNetwork(failed)
					mu.Unlock()
				}
			})
		}
	}
	running.Wait()
	s.metrics.recovered.Add(float64(taken))
	return taken, err
}

// recoverIn recovers one shard and records that.
func (s *Service) recoverIn(ctx context.Context, rec *Recovery, shard int) (taken int, err error) {
	var here recovered
	for done := false; !done; {
		if ctx.Err() != nil {
			return here.attempts, ctx.Err()
		}
		var part recovered
		done, part, err = s.recoverShard(ctx, shard, rec)
		here.attempts, here.failed, here.exhausted = here.attempts+part.attempts, here.failed+part.failed, here.exhausted+part.exhausted
		if err != nil {
			return here.attempts, err
		}
	}
	if err := s.unpinShard(ctx, "recover", shard, rec.worker, rec.queue); err != nil {
		return here.attempts, err
	}
	re, err := s.store.Do(ctx, "recover", s.recoveryDoneCall(rec.worker, shard, here))
	if is := readRecoveryDone(re); err == nil && is.over {
		s.logRecovered(rec, is)
	}
	return here.attempts, err
}

// logRecovered logs that nothing is left of an ended worker's attempts, and how long that took from its end.
func (s *Service) logRecovered(rec *Recovery, is recoveryDone) {
	attrs := []slog.Attr{rec.worker.Scope.LogAttr(), slog.String("workerId", rec.worker.ID), slog.Int("recovered", is.all.attempts),
		slog.Int("failed", is.all.failed)}
	if is.since != notStored {
		attrs = append(attrs, slog.Duration("took", is.since))
	}
	attrs = append(attrs, slog.String("by", rec.by))
	s.log.LogAttrs(context.Background(), slog.LevelInfo, "tasks of an ended worker are requeued", attrs...)
}

// RecoverNow recovers workers at once, for a caller that has just ended them. What fails is left to the sweepers.
func (s *Service) RecoverNow(ctx context.Context, scope model.Scope, ids ...string) {
	var refs []*schema.WorkerRef
	for _, id := range ids {
		if r, ok := s.store.WorkerRef(scope, id); ok {
			refs = append(refs, r)
		}
	}
	if len(refs) == 0 {
		return
	}
	ctx = s.store.Sparing(ctx)
	recs, err := s.ReadRecoveries(ctx, "recover", s.store.SweeperID(), refs)
	if err != nil {
		return
	}
	_, _ = s.Recover(ctx, recs...)
}
