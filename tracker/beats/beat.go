package beats

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/lane"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Beat is one heartbeat on its way through the batcher. The caller owns it, may pool it, and must leave it
// alone from Tracker.Beat (or Beats) until that returns, or from Tracker.Land until it has landed.
type Beat struct {
	Attempt *model.Attempt

	// Report is what came with the beat, packed by AppendReport; empty: nothing but "I am alive". The string
	// may borrow a buffer of the caller's that stays unchanged for as long.
	Report string

	// Arrived is when the request that brought the beat arrived: how long it may wait for Redis is counted from then. Zero: from
	// the call of Tracker.Beat.
	Arrived time.Time

	// What became of it:
	At     time.Time     // Redis's clock when the beat was applied
	Cancel *model.Cancel // nil: none pending
	Err    error         // nil: the beat is applied in Redis

	// Of is the caller's own: what the beat belongs to. It says nothing here.
	Of any

	until time.Time    // when its caller must have its answer
	told  told         // that it has its fate
	own   *lane.Waiter // of a beat on its own; kept, since beats are pooled
	slow  bool         // its attempt was not live when the flush came: explained one by one
	tick  *tick        // set instead of Attempt by an empty beat, which only keeps shard time running
}

// told is whom beats that go together tell of their fate, each once. It may not block: a flush calls it.
type told interface{ Done() }

// Beat lands one beat and returns when it has its one fate, which is in the beat.
func (s *Service) Beat(b *Beat) {
	if b.own == nil {
		b.own = lane.NewOwnWaiter()
	}
	b.own.Expect(1)
	s.prepare(b, b.own)
	l := s.lanes.of(b.shard())
	r := l.Put(b)
	for r == lane.Closed && s.lanes.of(b.shard()) != l { // the shard went to another node just now
		l = s.lanes.of(b.shard())
		r = l.Put(b)
	}
	if r != lane.Admitted {
		s.refuseBeat(b, r)
	}
	b.own.Await()
	if b.slow {
		s.explain([]*Beat{b})
	}
}

// Beats lands many beats in one go and returns when each has its fate. One that fails does not touch the others.
func (s *Service) BeatMany(beats []*Beat) {
	if len(beats) == 0 {
		return
	}
	w := lane.NewWaiter(len(beats))
	for _, b := range beats {
		s.prepare(b, w)
	}
	s.put(beats)
	w.Wait()
	var slow []*Beat
	for _, b := range beats {
		if b.slow {
			slow = append(slow, b)
		}
	}
	s.explain(slow)
}

// put hands beats to their lanes.
func (s *Service) put(beats []*Beat) {
	for rest := beats; len(rest) > 0; { // those of one node together
		l, run := s.lanes.of(rest[0].shard()), 1
		for run < len(rest) && s.lanes.of(rest[run].shard()) == l {
			run++
		}
		fit, r := l.PutAll(rest[:run])
		if r == lane.Closed && s.lanes.of(rest[0].shard()) != l {
			continue
		}
		refused := rest[fit:run]
		rest = rest[run:]
		for _, b := range refused {
			s.refuseBeat(b, r)
		}
	}
}

func (s *Service) prepare(b *Beat, by told) {
	b.At, b.Cancel, b.Err, b.slow, b.told = time.Time{}, nil, nil, false, by
	from := b.Arrived
	if from.IsZero() {
		from = time.Now()
	}
	b.until = from.Add(s.store.Patience())
}

func (s *Service) refuseBeat(b *Beat, r lane.Refusal) {
	s.metrics.beatsOverloaded.Inc()
	refusal := s.store.Refusal(r, "beats", s.opts.MaxPending)
	s.turnAway(b, refusal)
}

// turnAway refuses a beat that is not sent.
func (s *Service) turnAway(b *Beat, refusal *model.Error) {
	refusal.Op = "beat"
	b.Err = refusal
	if b.tick == nil {
		s.Heard(b.shard(), 1, refusal)
	}
	b.told.Done()
}

func (b *Beat) shard() int {
	if b.tick != nil {
		return b.tick.shard
	}
	return b.Attempt.Shard
}

// explain asks one by one why beats found no live attempt: not started yet (the beat starts it), lost by the
// store (it is adopted), or really over.
func (s *Service) explain(beats []*Beat) {
	if len(beats) == 0 {
		return
	}
	calls := store.CallEach(beats, func(b *Beat) *store.Call {
		return s.startCall(b.Attempt, schema.UnpackReport(b.Report).WorkerID, b.Report)
	})
	s.store.DoAll(store.By(context.Background(), beats[0].until), "beat", calls) // they came together
	for i, b := range beats {
		ack, err := heard("beat", b.Attempt, calls[i])
		b.At, b.Cancel, b.Err = ack.At, ack.Cancel, err
		s.Heard(b.shard(), 0, calls[i].Err) // it was counted by the flush
	}
}

// parseCancel reads a value of the cancels hash: grace ms TAB delivered in shard time TAB reason as JSON.
func parseCancel(raw string) *model.Cancel {
	if raw == "" {
		return nil
	}
	_, rest, _ := strings.Cut(raw, schema.PackSep)
	delivered, reason, _ := strings.Cut(rest, schema.PackSep)
	c := &model.Cancel{Delivered: delivered != ""}
	if reason != "" {
		_ = json.Unmarshal([]byte(reason), &c.Reason) // written by cancel, so it is JSON
	}
	return c
}
