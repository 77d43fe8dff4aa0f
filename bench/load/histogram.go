package load

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram records durations from 1 µs to a minute, to three digits.
type Histogram struct{ *hdrhistogram.Histogram }

const longest = int64(time.Minute / time.Microsecond)

// NewHistogram returns an empty histogram.
func NewHistogram() Histogram { return Histogram{hdrhistogram.New(1, longest, 3)} }

// Record counts one duration; more than a minute counts as a minute.
func (h Histogram) Record(d time.Duration) {
	_ = h.RecordValue(min(max(int64(d/time.Microsecond), 0), longest)) // it is within the bounds
}

// recorder records the durations of a run. Connections share a few stripes, so that memory does not grow with them.
type recorder struct{ stripes []stripe }

// stripe is the part of a recorder that some connections write to.
type stripe struct {
	mu                     sync.Mutex
	latency, lateness, own Histogram
}

const stripes = 8

func newRecorder() *recorder {
	r := &recorder{stripes: make([]stripe, stripes)}
	for i := range r.stripes {
		r.stripes[i] = stripe{latency: NewHistogram(), lateness: NewHistogram(), own: NewHistogram()}
	}
	return r
}

// times are the times of a request, since the run's start.
type times struct {
	intended time.Duration
	free     time.Duration // its connection was: since the answer before
	sent     time.Duration
	done     time.Duration
}

// record counts an answer.
func (r *recorder) record(conn int, at times) {
	s := &r.stripes[conn%len(r.stripes)]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency.Record(at.done - at.intended)
	s.lateness.Record(at.sent - at.intended)
	s.own.Record(at.sent - max(at.intended, at.free))
}

// into merges everything into a result, once recording has ended.
func (r *recorder) into(res *Result) {
	res.Latency, res.Lateness, res.OwnLateness = NewHistogram(), NewHistogram(), NewHistogram()
	for i := range r.stripes {
		s := &r.stripes[i]
		res.Latency.Merge(s.latency.Histogram)
		res.Lateness.Merge(s.lateness.Histogram)
		res.OwnLateness.Merge(s.own.Histogram)
	}
}
