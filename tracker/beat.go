package tracker

import (
	"encoding/json"
	"strings"
	"time"
)

// Beat is one heartbeat on its way through the batcher. The caller owns it, may pool it, and must leave it
// alone from Tracker.Beat (or Beats) until that returns.
type Beat struct {
	Attempt *Attempt

	// Report is what came with the beat, packed by AppendReport; empty: nothing but "I am alive". The string
	// may borrow a buffer of the caller's that stays unchanged until the call returns.
	Report string

	// Arrived is when the request arrived that the beat came with, from which it is counted how long it may wait for
	// Redis; zero: when Tracker.Beat is called.
	Arrived time.Time

	// What became of it:
	At     time.Time // Redis's clock when the beat was applied
	Cancel *Cancel   // nil: none pending
	Err    error     // nil: the beat is applied in Redis

	until time.Time // when its caller must have its answer
	wait  *waiter
	own   *waiter // of a beat on its own; kept, since beats are pooled
	slow  bool    // its attempt was not live when the flush came: explained one by one
	tick  *tick   // set instead of Attempt by an empty beat, which only keeps shard time running
}

// Beat lands one beat and returns when it has its one fate, which is in the beat.
func (t *Tracker) Beat(b *Beat) {
	if b.own == nil {
		b.own = &waiter{ch: make(chan struct{}, 1)}
	}
	b.own.left.Store(1)
	t.prepare(b, b.own)
	n := t.store.node(b.shard())
	r := n.beats.put(b)
	for r == laneClosed && t.store.node(b.shard()) != n { // the shard went to another node just now
		n = t.store.node(b.shard())
		r = n.beats.put(b)
	}
	if r != admitted {
		t.refuseBeat(b, r)
	}
	<-b.own.ch
	if b.slow {
		t.explain([]*Beat{b})
	}
}

// Beats lands many beats in one go and returns when each has its fate. One that fails does not touch the others.
func (t *Tracker) Beats(beats []*Beat) {
	if len(beats) == 0 {
		return
	}
	w := newWaiter(len(beats))
	for _, b := range beats {
		t.prepare(b, w)
	}
	for rest := beats; len(rest) > 0; { // those of one node together
		n, run := t.store.node(rest[0].shard()), 1
		for run < len(rest) && t.store.node(rest[run].shard()) == n {
			run++
		}
		fit, r := n.beats.putAll(rest[:run])
		if r == laneClosed && t.store.node(rest[0].shard()) != n {
			continue
		}
		for _, b := range rest[fit:run] {
			t.refuseBeat(b, r)
		}
		rest = rest[run:]
	}
	w.wait()
	var slow []*Beat
	for _, b := range beats {
		if b.slow {
			slow = append(slow, b)
		}
	}
	t.explain(slow)
}

func (t *Tracker) prepare(b *Beat, w *waiter) {
	b.At, b.Cancel, b.Err, b.slow, b.wait = time.Time{}, nil, nil, false, w
	if b.until = t.store.until; !b.Arrived.IsZero() {
		b.until = b.Arrived.Add(t.opts.patience())
	} else if b.until.IsZero() {
		b.until = time.Now().Add(t.opts.patience())
	}
}

func (t *Tracker) refuseBeat(b *Beat, r laneRefusal) {
	t.metrics.beatsOverloaded.Inc()
	refusal := t.store.refusal(r, "beats", t.opts.MaxPendingBeats)
	t.turnAway(b, refusal)
}

// turnAway is the fate of a beat that is not sent.
func (t *Tracker) turnAway(b *Beat, refusal *Error) {
	refusal.Op = "beat"
	b.Err = refusal
	if b.tick == nil {
		t.keeper.heard(b.shard(), 1, refusal)
	}
	b.wait.done()
}

func (b *Beat) shard() int {
	if b.tick != nil {
		return b.tick.shard
	}
	return b.Attempt.shard
}

// explain asks one by one why beats found no live attempt: not started yet (the beat starts it), lost by the
// store (it is adopted), or really over.
func (t *Tracker) explain(beats []*Beat) {
	if len(beats) == 0 {
		return
	}
	calls := make([]*call, len(beats))
	for i, b := range beats {
		calls[i] = t.startCall(b.Attempt, unpackReport(b.Report).WorkerID, b.Report)
	}
	t.store.by(beats[0].until).doAll("beat", calls) // they came together
	for i, b := range beats {
		ack, err := heard("beat", b.Attempt, calls[i])
		b.At, b.Cancel, b.Err = ack.At, ack.Cancel, err
		t.keeper.heard(b.shard(), 0, calls[i].err) // it was counted by the flush
	}
}

// parseCancel reads a value of the cancels hash: grace ms TAB delivered in shard time TAB reason as JSON.
func parseCancel(raw string) *Cancel {
	if raw == "" {
		return nil
	}
	_, rest, _ := strings.Cut(raw, packSep)
	delivered, reason, _ := strings.Cut(rest, packSep)
	c := &Cancel{Delivered: delivered != ""}
	if reason != "" {
		_ = json.Unmarshal([]byte(reason), &c.Reason) // written by cancel, so it is JSON
	}
	return c
}
