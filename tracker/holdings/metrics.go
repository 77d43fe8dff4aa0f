package holdings

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Ends count the attempts that this process ended.
type Ends struct {
	Verdicts  *prometheus.CounterVec
	Requeued  prometheus.Counter
	recovered prometheus.Counter
}

func newEnds(r prometheus.Registerer) *Ends {
	m := &Ends{
		Verdicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_verdicts_total", Help: "Attempts ended by this sweeper, by reason.",
		}, []string{"reason"}),
		Requeued: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_requeued_total", Help: "Attempts ended by this sweeper whose task went back to its queue.",
		}),
		recovered: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_recovered_attempts_total", Help: "Attempts of ended workers that this process took from them.",
		}),
	}
	if r != nil {
		r.MustRegister(m.Verdicts, m.Requeued, m.recovered)
	}
	return m
}
