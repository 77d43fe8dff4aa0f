package tracker

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	beats     *prometheus.CounterVec
	flushes   prometheus.Counter
	batchSize prometheus.Histogram
	flushTime prometheus.Histogram
	gaps      prometheus.Counter
	holds     prometheus.Counter
	evicts    prometheus.Gauge

	beatsApplied, beatsSlow, beatsUnavailable, beatsOverloaded prometheus.Counter

	verdicts     *prometheus.CounterVec
	requeued     prometheus.Counter
	removed      prometheus.Counter
	detectionLag prometheus.Histogram
	sweepLag     prometheus.Gauge
	sweepTime    prometheus.Histogram
	sweepErrors  prometheus.Counter

	staleWorkers prometheus.Counter
	recovered    prometheus.Counter
	probes       *prometheus.CounterVec
	unconfirmed  prometheus.Counter
	claims       *claimMetrics
	brake        *brakeMetrics
	repairs      *prometheus.CounterVec
	reconciled   prometheus.Counter
	quota        *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		beats: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_beats_total", Help: "Beats by fate in the batcher: applied, slow (not live: explained one by one), unavailable, overloaded.",
		}, []string{"fate"}),
		flushes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_beat_flushes_total", Help: "Round trips that carried beats to Redis.",
		}),
		batchSize: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "lubdub_beat_flush_beats", Help: "Beats carried by one flush.", Buckets: prometheus.ExponentialBuckets(1, 4, 8),
		}),
		flushTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "lubdub_beat_flush_seconds", Help: "Time of one flush, from its start to Redis's reply.", Buckets: prometheus.ExponentialBuckets(0.0001, 3, 10),
		}),
		gaps: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_shard_time_stopped_seconds_total", Help: "Wall time that this replica saw shard time stand still, summed over shards: what outages would have cost the workers.",
		}),
		holds: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_shard_time_holds_total", Help: "How often this replica held a shard's time back for a moment, since beats were refused there: by Redis, or by this replica being full.",
		}),
		evicts: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lubdub_redis_evicts", Help: "1 while a Redis server may evict keys, or does not say by INFO whether it does: tasks may be lost; else 0. Looked at every minute.",
		}),
		verdicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_verdicts_total", Help: "Attempts ended by this sweeper, by reason.",
		}, []string{"reason"}),
		requeued: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_requeued_total", Help: "Attempts ended by this sweeper whose task went back to its queue.",
		}),
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
		recovered: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_recovered_attempts_total", Help: "Attempts of ended workers that this process took from them.",
		}),
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_worker_probes_total", Help: "Probes of late workers by result: answered, failed.",
		}, []string{"result"}),
		unconfirmed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_unconfirmed_total", Help: "Creations, completions, new attempts and cancels that Redis did and did not confirm as durable in time; their callers were told 503 and to repeat.",
		}),
	}
	m.repairs = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lubdub_repairs_total", Help: "What the reconciler repaired, by what it was. Anything but 0 means that the store lost writes, that something else wrote to it, or a bug.",
	}, []string{"what"})
	m.reconciled = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "lubdub_reconciled_entries_total", Help: "Entries that the reconciler held against their records.",
	})
	m.quota = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lubdub_quota_refused_total", Help: "Creations and registrations that this replica refused (429) since their tenant has as much as it may, by what it has too much of: live_tasks, stored_bytes, workers.",
	}, []string{"of"})
	m.claims = newClaimMetrics(r)
	m.brake = newBrakeMetrics(r)
	m.beatsApplied = m.beats.WithLabelValues("applied")
	m.beatsSlow = m.beats.WithLabelValues("slow")
	m.beatsUnavailable = m.beats.WithLabelValues("unavailable")
	m.beatsOverloaded = m.beats.WithLabelValues("overloaded")
	if r != nil {
		r.MustRegister(m.beats, m.flushes, m.batchSize, m.flushTime, m.gaps, m.holds, m.evicts, m.verdicts, m.requeued, m.removed,
			m.detectionLag, m.sweepLag, m.sweepTime, m.sweepErrors, m.staleWorkers, m.recovered, m.probes, m.unconfirmed, m.repairs,
			m.reconciled, m.quota)
	}
	return m
}
