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
	loss := ""
	if rec.loss {
		loss = "1"
	}
	listed, err := t.store.do("recover", newCall(shard, t.store.scripts.Get("fence"), []string{k.fences, k.held},
		rec.worker.id, ms(fenceLife), takeLimit, loss))
	if err != nil || len(listed) == 0 {
		return err == nil, 0, err
	}
	var held []holding
	for _, text := range listed.strings() {
		if h, ok := parseHeld(text, shard); ok {
			held = append(held, h)
		}
	}
	e := lostEvidence{loss: rec.loss}
	if rec.reason == WorkerStale {
		e.lastBeat, e.silent, e.timeout = rec.lastBeat, rec.ended.Sub(rec.lastBeat), rec.timeout
	} else {
		e.lastBeat = rec.lastBeat
	}
	taken, err = t.takeFrom("recover", held, e)
	return err == nil && len(listed) < takeLimit, taken, err
}

// lostEvidence is why attempts are taken from their worker.
type lostEvidence struct {
	loss     bool // they count as lost; else nothing is held against their tasks, which are tried again at once
	lastBeat time.Time
	silent   time.Duration // zero: not said
	timeout  time.Duration // zero: not said
}

// takeFrom takes attempts from the worker that holds them, and tells how many it took. Those that ended otherwise in
// between are left alone.
func (t *Tracker) takeFrom(op string, held []holding, e lostEvidence) (taken int, err error) {
	var calls []*call
	byShard := map[int][]holding{}
	for _, h := range held {
		byShard[h.ref.shard] = append(byShard[h.ref.shard], h)
	}
	for shard, group := range byShard {
		for len(group) > 0 {
			n := min(len(group), takeLimit)
			calls = append(calls, t.recoverCall(shard, group[:n], e))
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

func (t *Tracker) recoverCall(shard int, held []holding, e lostEvidence) *call {
	k := t.store.keys[shard]
	keys := append(make([]string, 0, len(k.fixed)+5*len(held)), k.fixed...)
	loss := ""
	if e.loss {
		loss = "1"
	}
	args := []any{t.opts.ReplicaID, ms(t.opts.FinishedRetention), loss, msOrEmpty(e.lastBeat), orEmpty(e.silent), orEmpty(e.timeout)}
	for _, h := range held {
		keys = k.ofTask(keys, h.ref.scope, h.ref.id, h.ref.run, h.ref.timeoutMs)
		args = append(args, h.ref.scope.String(), h.ref.id, h.text)
	}
	return newCall(shard, t.store.scripts.Get("recover"), keys, args...)
}

// orEmpty gives a duration for a script, ” for none.
func orEmpty(d time.Duration) any {
	if d == 0 {
		return ""
	}
	return ms(d)
}
