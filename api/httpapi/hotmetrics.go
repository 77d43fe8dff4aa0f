package httpapi

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// hotMetrics counts single heartbeats in stripes, since a counter that all cores write to costs each of them more than the rest of the
// handler. It exposes them to Prometheus under the names of their families.
type hotMetrics struct {
	stripes [32]Stripe
	taken   atomic.Uint32

	requests, seconds, skew *prometheus.Desc
	labels                  []string
}

// Stripe contains the counters of one user, or of a few if there are more users than stripes; users are pooled by core. It fills whole
// cache lines.
type Stripe struct {
	InFlight  atomic.Int64
	ok        atomic.Uint64 // single beats answered 200
	Accepted  atomic.Uint64 // beats answered 200, alone or in batches
	CacheHits atomic.Uint64
	nanos     atomic.Uint64
	buckets   [len(requestBuckets) + 1]atomic.Uint64
	Skew      skewCount // of all callbacks
	_         [128 - (5+len(requestBuckets)+1+len(skewBuckets)+2)*8%128]byte
}

// requestBuckets are the buckets of lubdub_http_request_seconds.
var requestBuckets = [...]time.Duration{
	500 * time.Microsecond, 2 * time.Millisecond, 8 * time.Millisecond, 32 * time.Millisecond,
	128 * time.Millisecond, 512 * time.Millisecond, 2048 * time.Millisecond, 8192 * time.Millisecond,
}

func (h *hotMetrics) stripe() *Stripe {
	return &h.stripes[int(h.taken.Add(1))%len(h.stripes)]
}

// Observe counts the answer to a single heartbeat.
func (s *Stripe) Observe(status int, took time.Duration) {
	if status == 200 {
		s.ok.Add(1)
		s.Accepted.Add(1)
	}
	i := 0
	for i < len(requestBuckets) && took > requestBuckets[i] {
		i++
	}
	s.buckets[i].Add(1)
	s.nanos.Add(uint64(max(took, 0)))
}

func (h *hotMetrics) accepted() (n float64) {
	for i := range h.stripes {
		n += float64(h.stripes[i].Accepted.Load())
	}
	return n
}

func (h *hotMetrics) cacheHits() (n float64) {
	for i := range h.stripes {
		n += float64(h.stripes[i].CacheHits.Load())
	}
	return n
}

func (h *hotMetrics) inFlight() (n int64) {
	for i := range h.stripes {
		n += h.stripes[i].InFlight.Load()
	}
	return n
}

// Describe omits the families that the collectors of the other routes describe.
func (h *hotMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- h.skew }

func (h *hotMetrics) Collect(ch chan<- prometheus.Metric) {
	var ok, nanos uint64
	var buckets [len(requestBuckets) + 1]uint64
	for i := range h.stripes {
		s := &h.stripes[i]
		ok += s.ok.Load()
		nanos += s.nanos.Load()
		for j := range buckets {
			buckets[j] += s.buckets[j].Load()
		}
	}
	upTo, count := cumulative(requestBuckets[:], buckets[:])
	seconds := float64(nanos) / float64(time.Second)
	ch <- prometheus.MustNewConstMetric(h.requests, prometheus.CounterValue, float64(ok), append(h.labels, "200")...)
	ch <- prometheus.MustNewConstHistogram(h.seconds, count, seconds, upTo, h.labels...)
	h.collectSkew(ch)
}

// cumulative returns buckets in Prometheus's form, each including all below it, and the total count; the last bucket contains the values
// above every bound.
func cumulative(bounds []time.Duration, buckets []uint64) (upTo map[float64]uint64, count uint64) {
	upTo = make(map[float64]uint64, len(bounds))
	for i, b := range bounds {
		count += buckets[i]
		upTo[b.Seconds()] = count
	}
	return upTo, count + buckets[len(bounds)]
}
