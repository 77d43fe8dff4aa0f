package httpapi

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// skewBuckets are the buckets of lubdub_worker_clock_skew_seconds.
var skewBuckets = [...]time.Duration{
	10 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second, 10 * time.Second, time.Minute, 10 * time.Minute,
	time.Hour,
}

// maxSkew is the most that one reported time adds to the sum, so that a clock which is years off does not dominate it.
const maxSkew = 24 * time.Hour

// skewCount is a histogram of the difference between the time that a worker reports in a callback and the time when Redis received it.
type skewCount struct {
	millis  atomic.Uint64
	buckets [len(skewBuckets) + 1]atomic.Uint64
}

// Observe adds a worker's time. It ignores a zero time: the worker reported none.
func (c *skewCount) Observe(reported, received time.Time) {
	if !reported.IsZero() {
		c.ObserveMs(reported.UnixMilli(), received)
	}
}

// ObserveMs counts a worker's time in ms since the epoch.
func (c *skewCount) ObserveMs(reported int64, received time.Time) {
	ms := received.UnixMilli() - reported
	if ms < 0 {
		ms = -ms
	}
	skew := maxSkew
	if ms < maxSkew.Milliseconds() {
		skew = time.Duration(ms) * time.Millisecond
	}
	i := 0
	for i < len(skewBuckets) && skew > skewBuckets[i] {
		i++
	}
	c.buckets[i].Add(1)
	c.millis.Add(uint64(skew.Milliseconds()))
}

// collectSkew adds up the stripes.
func (h *hotMetrics) collectSkew(ch chan<- prometheus.Metric) {
	var millis uint64
	var buckets [len(skewBuckets) + 1]uint64
	for i := range h.stripes {
		c := &h.stripes[i].Skew
		millis += c.millis.Load()
		for j := range buckets {
			buckets[j] += c.buckets[j].Load()
		}
	}
	upTo, count := cumulative(skewBuckets[:], buckets[:])
	ch <- prometheus.MustNewConstHistogram(h.skew, count, float64(millis)/1000, upTo)
}
