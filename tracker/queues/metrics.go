package queues

import "github.com/prometheus/client_golang/prometheus"

// metrics are the counters of claims.
type metrics struct {
	results *prometheus.CounterVec
	tasks   prometheus.Counter
	reads   prometheus.Counter // of what is ready in one shard
	waiting prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_claims_total", Help: "Claims by what they got: tasks, nothing, refused.",
		}, []string{"result"}),
		tasks: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_claimed_tasks_total", Help: "Tasks handed to workers by claims.",
		}),
		reads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_claim_looks_total", Help: "Looks at what is ready in one shard of a queue.",
		}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lubdub_claims_waiting", Help: "Claims that wait for a task on this replica.",
		}),
	}
	if r != nil {
		r.MustRegister(m.results, m.tasks, m.reads, m.waiting)
	}
	return m
}

func (m *metrics) done(tasks int, err error) {
	switch {
	case err != nil:
		m.results.WithLabelValues("refused").Inc()
	case tasks == 0:
		m.results.WithLabelValues("nothing").Inc()
	default:
		m.results.WithLabelValues("tasks").Inc()
		m.tasks.Add(float64(tasks))
	}
}
