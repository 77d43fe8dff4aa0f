package sweep

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics count what a sweeper does.
type metrics struct {
	removed      prometheus.Counter
	detectionLag prometheus.Histogram
	sweepLag     prometheus.Gauge
	sweepTime    prometheus.Histogram
	sweepErrors  prometheus.Counter
	staleWorkers prometheus.Counter
	probes       *prometheus.CounterVec
	repairs      *prometheus.CounterVec
	reconciled   prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		removed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_tasks_removed_total", Help: "Finished tasks removed at the end of their retention.",
		}),
		detectionLag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "lubdub_detection_lag_seconds", Help: "How long after it was due a verdict fell.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
		sweepLag: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lubdub_sweep_lag_seconds", Help: "Age of the oldest overdue entry at the last look; 0 when nothing is overdue.",
		}),
		sweepTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "lubdub_sweep_seconds", Help: "Time of one sweep over the shards of one node.", Buckets: prometheus.ExponentialBuckets(0.0005, 3, 10),
		}),
		sweepErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_sweep_errors_total", Help: "Sweeps that Redis's trouble cut short.",
		}),
		staleWorkers: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_stale_workers_total", Help: "Workers that this sweeper declared OFFLINE for their silence.",
		}),
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_worker_probes_total", Help: "Probes of late workers by result: answered, failed.",
		}, []string{"result"}),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_repairs_total", Help: "What the reconciler repaired, by what it was. Anything but 0 means that the store lost writes, that something else wrote to it, or a bug.",
		}, []string{"what"}),
		reconciled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_reconciled_entries_total", Help: "Entries that the reconciler held against their records.",
		}),
	}
	if r != nil {
		r.MustRegister(m.removed, m.detectionLag, m.sweepLag, m.sweepTime, m.sweepErrors, m.staleWorkers, m.probes, m.repairs, m.reconciled)
	}
	return m
}
