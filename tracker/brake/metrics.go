package brake

import "github.com/prometheus/client_golang/prometheus"

// metrics count what the brake does.
type metrics struct {
	heldTasks, heldWorkers prometheus.Counter
	released               *prometheus.CounterVec
	censuses               prometheus.Counter
	engaged                prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) metrics {
	held := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lubdub_mass_expiry_held_total", Help: "Tasks and workers that the mass-expiry brake gave a second timeout period, by kind.",
	}, []string{"kind"})
	m := metrics{
		heldTasks: held.WithLabelValues("task"), heldWorkers: held.WithLabelValues("worker"),
		released: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_mass_expiry_released_total", Help: "Held tasks and workers that operators let go before their time, by kind.",
		}, []string{"kind"}),
		censuses: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_mass_expiry_censuses_total",
			Help: "Counts of the silent over all shards that this sweeper took for the mass-expiry brake.",
		}),
		engaged: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lubdub_mass_expiry_engaged", Help: "Scopes in which the mass-expiry brake held when this sweeper last looked; 0 when none.",
		}),
	}
	if r != nil {
		r.MustRegister(held, m.released, m.censuses, m.engaged)
	}
	return m
}
