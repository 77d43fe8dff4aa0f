package store

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics tell how safe Redis keeps what it is given.
type metrics struct {
	evicts      prometheus.Gauge
	unconfirmed prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		evicts: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lubdub_redis_evicts",
			Help: "1 while a Redis server may evict keys, or does not say by INFO whether it does: tasks may be lost; else 0. " +
				"Looked at every minute.",
		}),
		unconfirmed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_unconfirmed_total",
			Help: "Creations, completions, new attempts and cancels that Redis did and did not confirm as durable in time; " +
				"their callers were told 503 and to repeat.",
		}),
	}
	if r != nil {
		r.MustRegister(m.evicts, m.unconfirmed)
	}
	return m
}
