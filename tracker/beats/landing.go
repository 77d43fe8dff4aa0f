package beats

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lubdub-io/lubdub/tracker/lane"
)

// Land lands many beats without waiting for them. Landed is called, from other goroutines and perhaps before Land returns, with
// those that have their fate, together where they got it together: each beat comes once. It must not block, and the slice is its
// own until it returns only. The slice that Land is given is the
// caller's again when Land returns; what stands in it then says nothing.
//
// Those of one node are apart from those of another, and those whose attempt was not live, which take another round trip, from
// those that are through.
func (s *Service) Land(beats []*Beat, landed func([]*Beat)) {
	for rest := beats; len(rest) > 0; {
		l := s.landing(landed)
		rest = l.take(rest)
		l.left.Store(int32(len(l.beats)))
		s.put(l.beats) // from here on it may be over
	}
}

// landing is beats of one node that land together, and whom to tell. It is pooled.
type landing struct {
	s      *Service
	beats  []*Beat
	slow   []*Beat
	left   atomic.Int32 // beats without a fate
	landed func([]*Beat)
}

var landings = sync.Pool{New: func() any { return new(landing) }}

func (s *Service) landing(landed func([]*Beat)) *landing {
	l := landings.Get().(*landing)
	l.s, l.landed = s, landed
	return l
}

// take takes those that go where the first one goes, and returns the others in place.
func (l *landing) take(beats []*Beat) (others []*Beat) {
	var to *lane.Lane[*Beat]
	others = beats[:0]
	for i, b := range beats {
		at := l.s.lanes.of(b.shard())
		if i == 0 {
			to = at
		}
		if at != to {
			others = append(others, b)
			continue
		}
		l.s.prepare(b, l)
		l.beats = append(l.beats, b)
	}
	return others
}

// Done tells that one more of the beats has its fate, or is slow.
func (l *landing) Done() {
	if l.left.Add(-1) > 0 {
		return
	}
	through := l.beats[:0]
	for _, b := range l.beats {
		if b.slow {
			l.slow = append(l.slow, b)
		} else {
			through = append(through, b)
		}
	}
	if len(l.slow) > 0 {
		l.s.explainLater(l.slow, l.landed)
	}
	if len(through) > 0 {
		l.landed(through)
	}
	clear(l.beats)
	clear(l.slow)
	l.s, l.landed, l.beats, l.slow = nil, nil, l.beats[:0], l.slow[:0]
	landings.Put(l)
}

// explainLater explains slow beats beside the flush that found them, and tells of each whatever happens.
func (s *Service) explainLater(slow []*Beat, landed func([]*Beat)) {
	beats := slices.Clone(slow)
	s.store.Beside("beats whose attempt was not live", func() {
		defer func() {
			if p := recover(); p != nil {
				s.store.BreakDown("beats whose attempt was not live", p)
				for _, b := range beats {
					b.Err = s.store.Bug()
				}
			}
			landed(beats)
		}()
		s.explain(beats)
	})
}
