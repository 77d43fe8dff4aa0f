package quotas

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics count refusals by quotas.
type metrics struct {
	quota *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		quota: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_quota_refused_total",
			Help: "Creations and registrations that this replica refused (429) since their tenant has as much as it may, " +
				"by what it has too much of: live_tasks, stored_bytes, workers.",
		}, []string{"of"}),
	}
	if r != nil {
		r.MustRegister(m.quota)
	}
	return m
}
