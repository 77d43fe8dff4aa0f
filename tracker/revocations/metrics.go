package revocations

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	standing prometheus.Gauge
	failures prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		standing: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lubdub_token_revocations", Help: "Revocations of tokens that this replica enforces.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_token_revocations_unread_total",
			Help: "Times that this replica could not read the list of revoked tokens; it uses its last copy.",
		}),
	}
	if r != nil {
		r.MustRegister(m.standing, m.failures)
	}
	return m
}
