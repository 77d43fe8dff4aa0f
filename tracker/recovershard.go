package tracker

import (
	"context"
	"time"
)

// fenceLife is longer than any claim that began before its worker's end may still be under way.
const fenceLife = time.Hour

// recoverShard fences an ended worker in one shard and takes up to takeLimit attempts that it holds there. It tells
// whether none was left.
func (t *Tracker) recoverShard(_ context.Context, shard int, rec *recovery) (done bool, taken int, err error) {
	k := t.store.keys[shard]
	listed, err := t.store.do("recover", newCall(shard, t.store.scripts.Get("fence"), []string{k.fences, k.held},
		rec.worker.id, ms(fenceLife), takeLimit, flag(rec.evidence.loss), string(rec.evidence.reason)))
	if err != nil || len(listed) == 0 {
		return err == nil, 0, err
	}
	var held []holding
	for _, text := range listed.strings() {
		if h, ok := parseHeld(text, shard); ok {
			held = append(held, h)
		}
	}
	taken, err = t.takeFrom("recover", rec.by, held, rec.evidence)
	return err == nil && len(listed) < takeLimit, taken, err
}

// lostEvidence is why attempts are taken from their worker.
type lostEvidence struct {
	loss     bool         // they count as lost; else nothing is held against their tasks, which are tried again at once
	reason   WorkerReason // why the worker has them no longer
	lastBeat time.Time    // of the worker
	silent   time.Duration
	credit   time.Duration // time since the last beat that did not count
	timeout  time.Duration // of the worker
	held     bool          // the mass expiry brake had held the worker
	due      time.Time     // since when they could have been taken; zero: now
}

// recoveryFields is what recovery_read.lua tells of each worker.
const recoveryFields = 11

// readLostEvidence reads the record of a worker that has ended, as recovery_read.lua tells it.
func readLostEvidence(re reply) lostEvidence {
	ended, bl, br := parseMs(re.str(4)), re.str(9), re.str(10)
	e := lostEvidence{
		reason: WorkerReason(re.str(1)), loss: re.str(2) != "", lastBeat: parseMs(re.str(3)), timeout: duration(re.str(5), 0),
		held: bl != "" && br != "" && parseInt(br) >= parseInt(bl), due: ended.Add(-duration(re.str(8), 0)),
	}
	if e.lastBeat.IsZero() || ended.IsZero() || bl == "" {
		e.lastBeat = time.Time{}
		return e
	}
	wall := ended.Sub(e.lastBeat)
	e.silent = duration(re.str(7), wall) // a version before did not keep it
	e.credit = max(0, wall-e.silent)
	return e
}

// takeFrom takes attempts from the worker that holds them, and tells how many it took. Those that ended otherwise in
// between are left alone.
func (t *Tracker) takeFrom(op, by string, held []holding, e lostEvidence) (taken int, err error) {
	var calls []*call
	byShard := map[int][]holding{}
	for _, h := range held {
		byShard[h.ref.shard] = append(byShard[h.ref.shard], h)
	}
	for shard, group := range byShard {
		for len(group) > 0 {
			n := min(len(group), recoverTakes)
			calls = append(calls, t.recoverCall(shard, by, group[:n], e))
			group = group[n:]
		}
	}
	t.store.doAll(op, calls)
	for _, c := range calls {
		if c.err != nil {
			err = c.err
			continue
		}
		for i := range c.reply {
			switch c.reply.int(i) {
			case tookRequeued:
				t.metrics.requeued.Inc()
				fallthrough
			case tookFailed:
				t.metrics.verdicts.WithLabelValues(string(WorkerLost)).Inc()
				taken++
			}
		}
	}
	return taken, err
}

func (t *Tracker) recoverCall(shard int, by string, held []holding, e lostEvidence) *call {
	k := t.store.keys[shard]
	keys := append(make([]string, 0, len(k.fixed)+5*len(held)), k.fixed...)
	args := []any{
		by, ms(t.opts.FinishedRetention), flag(e.loss), msOrEmpty(e.lastBeat), orEmpty(e.silent), orEmpty(e.timeout),
		string(e.reason), orEmpty(e.credit), flag(e.held), msOrEmpty(e.due),
	}
	for _, h := range held {
		keys = k.ofTask(keys, h.ref.scope, h.ref.id, h.ref.run, h.ref.timeoutMs)
		args = append(args, h.ref.scope.String(), h.ref.id, h.text)
	}
	return newCall(shard, t.store.scripts.Get("recover"), keys, args...)
}

// flag gives a script '1' for true, ” for false.
func flag(is bool) string {
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
	return ms(d)
}
