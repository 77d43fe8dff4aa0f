package beats

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics count the results of beats, and measure shard time.
type metrics struct {
	beats     *prometheus.CounterVec
	flushes   prometheus.Counter
	batchSize prometheus.Histogram
	flushTime prometheus.Histogram
	gaps      prometheus.Counter
	holds     prometheus.Counter
	completed *prometheus.CounterVec

	taskGaps, workerGaps prometheus.Observer // as fractions of the timeouts

	beatsApplied, beatsSlow, beatsDetailed, beatsUnavailable, beatsOverloaded prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		beats: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_beats_total",
			Help: "Beats by result in the batcher: applied, slow (not live: explained one by one), unavailable, overloaded; and details: " +
				"beats with details, which are stored one by one outside the batcher.",
		}, []string{"fate"}),
		flushes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_beat_flushes_total",
			Help: "Round trips that sent beats to Redis.",
		}),
		batchSize: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "lubdub_beat_flush_beats",
			Help:    "Beats in one flush.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 8),
		}),
		flushTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "lubdub_beat_flush_seconds",
			Help:    "Time of one flush, from its start to Redis's reply.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 3, 10),
		}),
		gaps: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_shard_time_stopped_seconds_total",
			Help: "Wall time for which this replica saw shard time paused, summed over shards: what outages would have " +
				"cost the workers.",
		}),
		holds: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_shard_time_holds_total",
			Help: "How often this replica held a shard's time back for a moment, since beats were refused " +
				"there: by Redis, or by this replica being full.",
		}),
		completed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_completions_total",
			Help: "Attempts that workers reported as ended, by outcome: SUCCEEDED, FAILED, CANCELLED, SNOOZED.",
		}, []string{"outcome"}),
	}
	gapRatio := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "lubdub_beat_gap_ratio",
		Help: "How close live tasks and workers came to their timeouts: time between two heartbeats of one, divided by its timeout, " +
			"by kind (task: one flush in 64 is sampled; worker: every heartbeat).",
		Buckets: []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1},
	}, []string{"kind"})
	m.taskGaps, m.workerGaps = gapRatio.WithLabelValues("task"), gapRatio.WithLabelValues("worker")
	m.beatsApplied = m.beats.WithLabelValues("applied")
	m.beatsSlow = m.beats.WithLabelValues("slow")
	m.beatsDetailed = m.beats.WithLabelValues("details")
	m.beatsUnavailable = m.beats.WithLabelValues("unavailable")
	m.beatsOverloaded = m.beats.WithLabelValues("overloaded")
	if r != nil {
		r.MustRegister(m.beats, m.flushes, m.batchSize, m.flushTime, gapRatio, m.gaps, m.holds, m.completed)
	}
	return m
}
