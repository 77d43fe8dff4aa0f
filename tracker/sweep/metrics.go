package sweep

import "github.com/prometheus/client_golang/prometheus"

// metrics are the counters of a sweeper.
type metrics struct {
	removed      prometheus.Counter
	detectionLag prometheus.Histogram
	sweepLag     prometheus.Gauge
	sweepTime    prometheus.Histogram
	sweepErrors  prometheus.Counter
	staleWorkers *queueCounter
	flapping     *prometheus.CounterVec
	probes       *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		removed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_tasks_removed_total", Help: "Finished tasks removed at the end of their retention.",
		}),
		detectionLag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "lubdub_detection_lag_seconds", Help: "Time from the deadline of an attempt or a worker to its verdict.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
		sweepLag: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lubdub_sweep_lag_seconds", Help: "Age of the oldest overdue entry at the last look; 0 when nothing is overdue.",
		}),
		sweepTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "lubdub_sweep_seconds", Help: "Time of one sweep over the shards of one node that was finished.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 3, 10),
		}),
		sweepErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_sweep_errors_total", Help: "Sweeps, and trims of events, that an error of Redis cut short.",
		}),
		staleWorkers: newQueueCounter("lubdub_stale_workers_total", "Workers that this sweeper declared OFFLINE because they were silent, by "+
			"queue: the first 100 queues that have late workers one by one and all others as (other)."),
		flapping: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_flapping_total",
			Help: "Times that a worker or machine went stale which had done so 3 times or more within a day, this one included, " +
				"by kind: worker, machine.",
		}, []string{"kind"}),
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_worker_probes_total", Help: "Probes of late workers by result: answered, failed.",
		}, []string{"result"}),
	}
	for _, kind := range []string{"worker", "machine"} {
		m.flapping.WithLabelValues(kind) // rate() needs the series to exist before the first event
	}
	if r != nil {
		r.MustRegister(m.removed, m.detectionLag, m.sweepLag, m.sweepTime, m.sweepErrors, m.staleWorkers.counts, m.flapping,
			m.probes)
	}
	return m
}

// flap counts a worker or machine that flaps.
func (m *metrics) flap(is expired) {
	if is.workerFlaps {
		m.flapping.WithLabelValues("worker").Inc()
	}
	if is.machineFlaps {
		m.flapping.WithLabelValues("machine").Inc()
	}
}
