package holdings

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// metrics count the attempts that this process has ended.
type metrics struct {
	verdicts  *prometheus.CounterVec
	requeued  prometheus.Counter
	recovered prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		verdicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_verdicts_total", Help: "Attempts ended by this sweeper, by reason.",
		}, []string{"reason"}),
		requeued: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_requeued_total", Help: "Attempts ended by this sweeper whose task went back to its queue.",
		}),
		recovered: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_recovered_attempts_total", Help: "Attempts of ended workers that this process took from them.",
		}),
	}
	for _, reason := range model.Reasons {
		m.verdicts.WithLabelValues(string(reason)) // a rate needs the series to exist before the first increase
	}
	if r != nil {
		r.MustRegister(m.verdicts, m.requeued, m.recovered)
	}
	return m
}

// CountEnd counts an attempt that this process has ended, and whether its task was requeued.
func (s *Service) CountEnd(why model.Reason, requeued bool) {
	s.metrics.verdicts.WithLabelValues(string(why)).Inc()
	if requeued {
		s.metrics.requeued.Inc()
	}
}
