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

func newWindow() Histogram { return Histogram{hdrhistogram.New(1, longest, 2)} }

// Record counts one duration; more than a minute counts as a minute.
func (h Histogram) Record(d time.Duration) {
	_ = h.RecordValue(min(max(int64(d/time.Microsecond), 0), longest)) // it is within the bounds
}

// recorder records the durations of a run. Connections share a few stripes, so that memory does not grow with them.
type recorder struct {
	stripes []stripe
	width   time.Duration // of a window; 0: no windows

	mu      sync.Mutex
	windows []Window
}

// stripe is the part of a recorder that some connections write to.
type stripe struct {
	mu                     sync.Mutex
	latency, lateness, own Histogram
	window                 int       // the index of the window that current is for
	beats                  int64     // in it
	current                Histogram // of latency in it
}

// Window is what ended in one stretch of time.
type Window struct {
	Beats   int64
	Latency Histogram
}

const stripes = 8

func newRecorder(width time.Duration) *recorder {
	r := &recorder{stripes: make([]stripe, stripes), width: width}
	for i := range r.stripes {
		r.stripes[i] = stripe{latency: NewHistogram(), lateness: NewHistogram(), own: NewHistogram(), current: newWindow()}
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
func (r *recorder) record(conn int, at times, beats int) {
	s := &r.stripes[conn%len(r.stripes)]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency.Record(at.done - at.intended)
	s.lateness.Record(at.sent - at.intended)
	s.own.Record(at.sent - max(at.intended, at.free))
	if r.width == 0 {
		return
	}
	if w := int(at.done / r.width); w != s.window {
		r.flush(s)
		s.window = w
	}
	s.current.Record(at.done - at.intended)
	s.beats += int64(beats)
}

// flush moves a stripe's current window to the merged ones.
func (r *recorder) flush(s *stripe) {
	if s.current.TotalCount() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.windows) <= s.window {
		r.windows = append(r.windows, Window{Latency: newWindow()})
	}
	r.windows[s.window].Latency.Merge(s.current.Histogram)
	r.windows[s.window].Beats += s.beats
	s.current.Reset()
	s.beats = 0
}

// into merges everything into a result, once recording has ended.
func (r *recorder) into(res *Result) {
	res.Latency, res.Lateness, res.OwnLateness = NewHistogram(), NewHistogram(), NewHistogram()
	for i := range r.stripes {
		s := &r.stripes[i]
		res.Latency.Merge(s.latency.Histogram)
		res.Lateness.Merge(s.lateness.Histogram)
		res.OwnLateness.Merge(s.own.Histogram)
		r.flush(s)
	}
	res.Windows = r.windows
}
