package holdings

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// fenceLife is how long a fence is kept. It outlasts every claim that was in progress when the worker ended.
const fenceLife = time.Hour

// recoverShard fences an ended worker in one shard and takes up to TakeLimit attempts that it holds there. It reports whether none is
// left.
func (s *Service) recoverShard(ctx context.Context, shard int, rec *Recovery) (done bool, took recovered, err error) {
	fence := s.fenceCall(shard, rec.worker.ID, schema.TakeLimit, rec.evidence.loss, rec.evidence.reason)
	re, err := s.store.Do(ctx, "recover", fence)
	listed := readEntries(re)
	if err != nil || len(listed) == 0 {
		return err == nil, took, err
	}
	var held []Holding
	for _, text := range listed {
		if h, ok := ParseHeld(text, shard); ok {
			held = append(held, h)
		}
	}
	took, err = s.takeFrom(ctx, "recover", rec.by, held, rec.evidence)
	return err == nil && len(listed) < schema.TakeLimit, took, err
}

// lostEvidence is why attempts are taken from their worker.
type lostEvidence struct {
	loss     bool               // each counts towards maxLosses; else towards nothing, and the task is retried without backoff
	reason   model.WorkerReason // why the worker lost them
	lastBeat time.Time          // of the worker
	silent   time.Duration
	credit   time.Duration // outage time since the last beat, which does not count as silence
	timeout  time.Duration // of the worker
	braked   bool          // the mass-expiry brake had delayed the end of the worker
	due      time.Time     // since when they could be taken; zero: now
}

// evidence returns why the attempts of an ended worker are taken from it.
func (r *recoveryReply) evidence() lostEvidence {
	e := lostEvidence{
		reason: r.reason, loss: r.loss, timeout: r.timeout, due: r.ended.Add(-r.lag),
		braked: r.lastBeatMs != notStored && r.heldAtMs >= r.lastBeatMs,
	}
	if r.lastBeat.IsZero() || r.ended.IsZero() || r.lastBeatMs == notStored {
		return e
	}
	e.lastBeat = r.lastBeat
	wall := r.ended.Sub(r.lastBeat)
	if e.silent = r.silent; r.silent == notStored {
		e.silent = wall
	}
	e.credit = max(0, wall-e.silent)
	return e
}

// recoverTakes is how many attempts one script takes.
const recoverTakes = 25

// takeFrom takes attempts from the worker that holds them, and returns how many it took. Attempts that have ended meanwhile are
// unchanged. It returns the first error.
func (s *Service) takeFrom(ctx context.Context, op, by string, held []Holding, e lostEvidence) (all recovered, err error) {
	groups := schema.ByShard(held, recoverTakes, func(h Holding) int { return h.Ref.Shard })
	calls := store.CallEach(groups, func(group []Holding) *store.Call { return s.recoverCall(by, group, e) })
	s.store.DoAll(ctx, op, calls)
	for _, c := range calls {
		if c.Err != nil {
			continue
		}
		for _, took := range readRecover(c.Reply) {
			switch took {
			case schema.TookExhausted:
				all.exhausted++
				fallthrough
			case schema.TookFailed:
				all.failed++
				fallthrough
			case schema.TookRequeued:
				all.attempts++
				s.CountEnd(model.WorkerLost, took == schema.TookRequeued)
			}
		}
	}
	return all, store.FirstError(calls)
}

// unpinShard releases the tasks in a shard that are pinned to a worker that will not claim them.
func (s *Service) unpinShard(ctx context.Context, op string, shard int, worker *schema.WorkerRef, queue string) error {
	if queue == "" {
		return nil // the worker's record is gone, so its queue is unknown
	}
	after := ""
	for {
		re, err := s.store.Do(ctx, op, s.pinnedCall(shard, worker, queue, after))
		listed := readEntries(re)
		if err != nil || len(listed) == 0 {
			return err
		}
		var waiting []*schema.ReadyEntry
		for _, text := range listed {
			if e, ok := schema.ParseReady(text, shard); ok {
				waiting = append(waiting, e)
			}
		}
		if _, err := s.store.Do(ctx, op, s.unpinCall(shard, worker.ID, waiting)); err != nil {
			return err
		}
		after = listed[len(listed)-1]
	}
}

// UnpinAll releases the tasks in all shards that are pinned to a worker.
func (s *Service) UnpinAll(ctx context.Context, op string, worker *schema.WorkerRef, queue string) error {
	for shard := range s.store.Keys {
		if err := s.unpinShard(ctx, op, shard, worker, queue); err != nil {
			return err
		}
	}
	return nil
}
