package schedules

import "github.com/prometheus/client_golang/prometheus"

// metrics count the outcomes of fires that this process handled.
type metrics struct {
	fires    *prometheus.CounterVec
	missed   prometheus.Counter
	deferred prometheus.Counter
	lag      prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		fires: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_schedule_fires_total",
			Help: "Fires of schedules by what became of them: created, overlap (the task before still ran), refused.",
		}, []string{"outcome"}),
		missed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_schedule_skipped_fires_total",
			Help: "Fires of schedules that were missed and are more than maxCatchup lets be caught up.",
		}),
		deferred: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_schedule_deferred_fires_total",
			Help: "Refusals after which a fire waits and is tried again: a quota of its tenant is used up, no worker can take a placed " +
				"task, or Redis is away.",
		}),
		lag: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lubdub_schedule_lag_seconds",
			Help: "How long the schedule that this sweeper found due longest had been due, " +
				"but for those of tenants that have had the fires of a second.",
		}),
	}
	for _, outcome := range []string{"created", "overlap", "refused"} {
		m.fires.WithLabelValues(outcome) // rate() needs the series to exist before the first event
	}
	if r != nil {
		r.MustRegister(m.fires, m.missed, m.deferred, m.lag)
	}
	return m
}
