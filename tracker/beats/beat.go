package beats

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/lane"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Beat is one heartbeat. The caller owns it, may pool it, and must not touch it from Service.Beat or BeatMany until that returns, or from
// Submit until it has a result.
type Beat struct {
	Attempt *model.Attempt

	// Report is the report of the beat, packed by AppendReport; empty: only a sign of life. The string may share a buffer of the caller's
	// that does not change during that time.
	Report string

	// Details are a checkpoint, as compact JSON of at most model.MaxDetailsBytes; empty: none. A beat with details takes a script call of
	// its own.
	Details string

	// Arrived is when the request with the beat arrived, from which its wait for Redis is counted. Zero: from the call of Service.Beat.
	Arrived time.Time

	// The result:
	At     time.Time     // time of Redis's clock when the beat was applied
	Cancel *model.Cancel // nil: none pending
	Err    error         // nil: Redis has applied the beat

	// Of belongs to the caller, for instance for what the beat is part of. This package does not use it.
	Of any

	until  time.Time    // when its caller must have the result
	waiter waiter       // signalled when the result is set
	own    *lane.Waiter // of a single beat; kept, since beats are pooled
	slow   bool         // its attempt was not live at the flush: storeSingly finds out why
	tick   *tick        // replaces Attempt in an empty beat, which only advances shard time
}

// Signalled once for each beat that has a result. It may not block: a flush calls it.
type waiter interface{ Done() }

// Beat applies one beat and returns when its result is set in it.
func (s *Service) Beat(b *Beat) {
	if b.Details != "" {
		s.BeatMany([]*Beat{b})
		return
	}
	if b.own == nil {
		b.own = lane.NewOwnWaiter()
	}
	b.own.Expect(1)
	s.prepare(b, b.own)
	l := s.lanes.of(b.shard())
	r := l.Put(b)
	for r == lane.Closed && s.lanes.of(b.shard()) != l { // the shard has just moved to another node
		l = s.lanes.of(b.shard())
		r = l.Put(b)
	}
	if r != lane.Admitted {
		s.refuseBeat(b, r)
	}
	b.own.Await()
	if b.slow {
		s.storeSingly([]*Beat{b})
	}
}

// BeatMany applies many beats at once and returns when each has a result. One that fails does not affect the others.
func (s *Service) BeatMany(beats []*Beat) {
	batched := beats
	var detailed []*Beat
	if slices.ContainsFunc(beats, hasDetails) {
		batched = nil
		for _, b := range beats {
			if hasDetails(b) {
				s.prepare(b, nil)
				s.metrics.beatsDetailed.Inc()
				s.RecordResult(b.shard(), 1, nil)
				detailed = append(detailed, b)
			} else {
				batched = append(batched, b)
			}
		}
	}
	wait := func() {}
	if len(batched) > 0 {
		w := lane.NewWaiter(len(batched))
		for _, b := range batched {
			s.prepare(b, w)
		}
		s.put(batched)
		wait = w.Wait
	}
	s.storeSingly(detailed) // meanwhile
	wait()
	var slow []*Beat
	for _, b := range batched {
		if b.slow {
			slow = append(slow, b)
		}
	}
	s.storeSingly(slow)
}

func hasDetails(b *Beat) bool { return b.Details != "" }

// put adds beats to their lanes.
func (s *Service) put(beats []*Beat) {
	for rest := beats; len(rest) > 0; { // beats of one node together
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

func (s *Service) prepare(b *Beat, by waiter) {
	b.At, b.Cancel, b.Err, b.slow, b.waiter = time.Time{}, nil, nil, false, by
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

// turnAway refuses a beat that was not sent.
func (s *Service) turnAway(b *Beat, refusal *model.Error) {
	refusal.Op = "beat"
	b.Err = refusal
	if b.tick == nil {
		s.RecordResult(b.shard(), 1, refusal)
	}
	b.waiter.Done()
}

func (b *Beat) shard() int {
	if b.tick != nil {
		return b.tick.shard
	}
	return b.Attempt.Shard
}

// storeSingly applies beats that need a script each: those with details, and those whose attempt was not live: it was not started yet
// (the beat starts it), the store lost it (it is adopted), or it has ended.
func (s *Service) storeSingly(beats []*Beat) {
	if len(beats) == 0 {
		return
	}
	calls := store.CallEach(beats, func(b *Beat) *store.Call {
		return s.startCall(b.Attempt, schema.UnpackReport(b.Report).WorkerID, b.Report, b.Details)
	})
	s.store.DoAll(store.By(context.Background(), beats[0].until), "beat", calls) // they arrived together
	for i, b := range beats {
		ack, err := acknowledgement("beat", b.Attempt, calls[i])
		b.At, b.Cancel, b.Err = ack.At, ack.Cancel, err
		s.RecordResult(b.shard(), 0, calls[i].Err) // it has been counted
	}
}

// parseCancel parses a value of the cancels hash: grace ms TAB delivered in shard time TAB reason as JSON.
func parseCancel(raw string) *model.Cancel {
	if raw == "" {
		return nil
	}
	_, rest, _ := strings.Cut(raw, schema.PackSep)
	delivered, reason, _ := strings.Cut(rest, schema.PackSep)
	c := &model.Cancel{Delivered: delivered != ""}
	if reason != "" {
		_ = json.Unmarshal([]byte(reason), &c.Reason) // cancel wrote it, so it is JSON
	}
	return c
}
