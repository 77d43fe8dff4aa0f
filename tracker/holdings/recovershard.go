package holdings

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// fenceLife is longer than any claim that began before its worker's end may still be under way.
const fenceLife = time.Hour

// recoverShard fences an ended worker in one shard and takes up to takeLimit attempts that it holds there. It tells
// whether none was left.
func (s *Service) recoverShard(ctx context.Context, shard int, rec *Recovery) (done bool, taken int, err error) {
	k := s.store.Keys[shard]
	listed, err := s.store.Do(ctx, "recover", store.NewCall(shard, s.store.Scripts.Get("fence"), []string{k.Fences, k.Held},
		rec.worker.ID, model.Millis(fenceLife), schema.TakeLimit, Flag(rec.evidence.loss), string(rec.evidence.reason)))
	if err != nil || len(listed) == 0 {
		return err == nil, 0, err
	}
	var held []Holding
	for _, text := range listed.Strings() {
		if h, ok := ParseHeld(text, shard); ok {
			held = append(held, h)
		}
	}
	taken, err = s.takeFrom(ctx, "recover", rec.by, held, rec.evidence)
	return err == nil && len(listed) < schema.TakeLimit, taken, err
}

// lostEvidence is why attempts are taken from their worker.
type lostEvidence struct {
	loss     bool               // they count as lost; else nothing is held against their tasks, which are tried again at once
	reason   model.WorkerReason // why the worker has them no longer
	lastBeat time.Time          // of the worker
	silent   time.Duration
	credit   time.Duration // time since the last beat that did not count
	timeout  time.Duration // of the worker
	held     bool          // the mass expiry brake had held the worker
	due      time.Time     // since when they could have been taken; zero: now
}

// recoveryFields is what recovery_read.lua tells of each worker.
const recoveryFields = 11

// readLostEvidence reads the record of a worker that has ended, as recovery_read.lua tells it.
func readLostEvidence(re store.Reply) lostEvidence {
	ended, bl, br := schema.ParseMillis(re.Str(4)), re.Str(9), re.Str(10)
	e := lostEvidence{
		reason: model.WorkerReason(re.Str(1)), loss: re.Str(2) != "", lastBeat: schema.ParseMillis(re.Str(3)), timeout: schema.Duration(re.Str(5), 0),
		held: bl != "" && br != "" && schema.ParseInt(br) >= schema.ParseInt(bl), due: ended.Add(-schema.Duration(re.Str(8), 0)),
	}
	if e.lastBeat.IsZero() || ended.IsZero() || bl == "" {
		e.lastBeat = time.Time{}
		return e
	}
	wall := ended.Sub(e.lastBeat)
	e.silent = schema.Duration(re.Str(7), wall) // a version before did not keep it
	e.credit = max(0, wall-e.silent)
	return e
}

// takeFrom takes attempts from the worker that holds them, and tells how many it took. Those that ended otherwise in
// between are left alone.
func (s *Service) takeFrom(ctx context.Context, op, by string, held []Holding, e lostEvidence) (taken int, err error) {
	var calls []*store.Call
	byShard := map[int][]Holding{}
	for _, h := range held {
		byShard[h.Ref.Shard] = append(byShard[h.Ref.Shard], h)
	}
	for shard, group := range byShard {
		for len(group) > 0 {
			n := min(len(group), recoverTakes)
			calls = append(calls, s.recoverCall(shard, by, group[:n], e))
			group = group[n:]
		}
	}
	s.store.DoAll(ctx, op, calls)
	for _, c := range calls {
		if c.Err != nil {
			err = c.Err
			continue
		}
		for i := range c.Reply {
			if took := c.Reply.Int(i); took == schema.TookFailed || took == schema.TookRequeued {
				s.CountEnd(model.WorkerLost, took == schema.TookRequeued)
				taken++
			}
		}
	}
	return taken, err
}

func (s *Service) recoverCall(shard int, by string, held []Holding, e lostEvidence) *store.Call {
	k := s.store.Keys[shard]
	keys := append(make([]string, 0, len(k.Fixed)+5*len(held)), k.Fixed...)
	args := []any{
		by, model.Millis(s.opts.FinishedRetention), Flag(e.loss), schema.MillisOrEmpty(e.lastBeat), orEmpty(e.silent), orEmpty(e.timeout),
		string(e.reason), orEmpty(e.credit), Flag(e.held), schema.MillisOrEmpty(e.due),
	}
	for _, h := range held {
		keys = k.OfTask(keys, h.Ref.Scope, h.Ref.ID, h.Ref.Run, h.Ref.TimeoutMs)
		args = append(args, h.Ref.Scope.String(), h.Ref.ID, h.text)
	}
	return store.NewCall(shard, s.store.Scripts.Get("recover"), keys, args...)
}

// Flag gives a script '1' for true, ” for false.
func Flag(is bool) string {
	if is {
		return "1"
	}
	return ""
}

// orEmpty gives a duration for a script, ” for none.
func orEmpty(d time.Duration) any {
	if d == 0 {
		return ""
	}
	return model.Millis(d)
}
