package beats

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lubdub-io/lubdub/tracker/lane"
)

// Submit applies many beats without waiting for them. It calls `done` with the beats that have a result, each beat once, from other
// goroutines and perhaps before Submit returns. The function must not block, and may not keep its slice. The slice passed to Submit is the
// caller's again when Submit returns; its contents are then undefined. It ignores Details.
//
// Beats of different nodes come in different calls, and so do beats whose attempt was not live, which need another round trip.
func (s *Service) Submit(beats []*Beat, done func([]*Beat)) {
	for rest := beats; len(rest) > 0; {
		l := s.newSubmission(done)
		rest = l.take(rest)
		l.left.Store(int32(len(l.beats)))
		s.put(l.beats) // all results may be set from here on
	}
}

// submission is a group of beats of one node with its callback. It is pooled.
type submission struct {
	s     *Service
	beats []*Beat
	slow  []*Beat
	left  atomic.Int32 // beats without a result
	done  func([]*Beat)
}

var submissions = sync.Pool{New: func() any { return new(submission) }}

func (s *Service) newSubmission(done func([]*Beat)) *submission {
	l := submissions.Get().(*submission)
	l.s, l.done = s, done
	return l
}

// take takes the beats with the same lane as the first one, and returns the others in the same slice.
func (l *submission) take(beats []*Beat) (others []*Beat) {
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

// Done records that one more beat has a result, or is slow.
func (l *submission) Done() {
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
		l.s.storeLater(l.slow, l.done)
	}
	if len(through) > 0 {
		l.done(through)
	}
	clear(l.beats)
	clear(l.slow)
	l.s, l.done, l.beats, l.slow = nil, nil, l.beats[:0], l.slow[:0]
	submissions.Put(l)
}

// storeLater stores slow beats one by one, in the background of the flush that found them. It calls `done` for all of them in any case.
func (s *Service) storeLater(slow []*Beat, done func([]*Beat)) {
	beats := slices.Clone(slow)
	s.store.Go("beats whose attempt was not live", func() {
		defer func() {
			if p := recover(); p != nil {
				s.store.BreakDown("beats whose attempt was not live", p)
				for _, b := range beats {
					b.Err = s.store.Bug()
				}
			}
			done(beats)
		}()
		s.storeSingly(beats)
	})
}
