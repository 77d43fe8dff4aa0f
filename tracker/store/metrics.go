package store

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count how Redis responds, and how often it does not confirm durable writes.
type metrics struct {
	evicts      prometheus.Gauge
	silent      prometheus.Gauge
	unconfirmed prometheus.Counter
	trips       prometheus.Histogram
	errors      *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		evicts: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lubdub_redis_evicts",
			Help: "1 while a Redis server may evict keys, or does not say by INFO whether it does: tasks may be lost; else 0. " +
				"Looked at every minute.",
		}),
		silent: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lubdub_redis_silent",
			Help: "Redis servers that have not answered since a call to them timed out; this replica sends them nothing but probes.",
		}),
		unconfirmed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_unconfirmed_total",
			Help: "Creations, completions, new attempts and cancels that Redis did and did not confirm as durable in time; " +
				"their callers got 503 and may repeat them.",
		}),
		trips: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "lubdub_redis_round_trip_seconds",
			Help: "Time from sending Redis a pipeline of calls to its last answer, whether it answered or not.",
			// The buckets go from 100 µs to 52 s, since redis-timeout may be a minute.
			Buckets: prometheus.ExponentialBuckets(100e-6, 2, 20),
		}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_redis_errors_total",
			Help: "Pipelines of calls that failed: timeout, unreachable (no connection, or it broke), or refused (Redis rejected it: memory, " +
				"replicas, access, loading). Redirections of a Cluster and scripts that had to be sent first are not counted.",
		}, []string{"kind"}),
	}
	for _, kind := range []string{"timeout", "unreachable", "refused"} {
		m.errors.WithLabelValues(kind) // a rate needs the series to exist before the first increase
	}
	if r != nil {
		r.MustRegister(m.evicts, m.silent, m.unconfirmed, m.trips, m.errors)
	}
	return m
}

// tripped counts a round trip and the first error in it.
func (m *metrics) tripped(took time.Duration, err error) {
	m.trips.Observe(took.Seconds())
	switch {
	case err == nil || isNoScript(err) || IsRedirect(err):
	case isTimeout(err):
		m.errors.WithLabelValues("timeout").Inc()
	case IsNetwork(err):
		m.errors.WithLabelValues("unreachable").Inc()
	default:
		m.errors.WithLabelValues("refused").Inc()
	}
}
