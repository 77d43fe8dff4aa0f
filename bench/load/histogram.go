package load

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram is of durations from 1 µs to a minute, to three digits.
type Histogram struct{ *hdrhistogram.Histogram }

const longest = int64(time.Minute / time.Microsecond)

// NewHistogram makes an empty one.
func NewHistogram() Histogram { return Histogram{hdrhistogram.New(1, longest, 3)} }

func newWindow() Histogram { return Histogram{hdrhistogram.New(1, longest, 2)} }

// Record counts one duration; what is longer than a minute counts as a minute.
func (h Histogram) Record(d time.Duration) {
	_ = h.RecordValue(min(max(int64(d/time.Microsecond), 0), longest)) // it is within the bounds
}

// recorder takes the durations of a run. Connections share a few stripes, so that memory does not grow with them.
type recorder struct {
	stripes []stripe
	width   time.Duration // of a window; 0: none

	mu      sync.Mutex
	windows []Window
}

// stripe is the part of a recorder that some connections write to.
type stripe struct {
	mu                sync.Mutex
	latency, lateness Histogram
	window            int       // that current is for
	beats             int64     // in it
	current           Histogram // of latency in it
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
		r.stripes[i] = stripe{latency: NewHistogram(), lateness: NewHistogram(), current: newWindow()}
	}
	return r
}

// record counts an answer. All times are since the run's start.
func (r *recorder) record(conn int, intended, sent, done time.Duration, beats int) {
	s := &r.stripes[conn%len(r.stripes)]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency.Record(done - intended)
	s.lateness.Record(sent - intended)
	if r.width == 0 {
		return
	}
	if w := int(done / r.width); w != s.window {
		r.flush(s)
		s.window = w
	}
	s.current.Record(done - intended)
	s.beats += int64(beats)
}

// flush moves a stripe's current window to where all are merged.
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

// result merges everything, once nobody records any more.
func (r *recorder) result() (latency, lateness Histogram, windows []Window) {
	latency, lateness = NewHistogram(), NewHistogram()
	for i := range r.stripes {
		s := &r.stripes[i]
		latency.Merge(s.latency.Histogram)
		lateness.Merge(s.lateness.Histogram)
		r.flush(s)
	}
	return latency, lateness, r.windows
}
