package webhooks

import "github.com/prometheus/client_golang/prometheus"

// metrics count deliveries and their results.
type metrics struct {
	tries     *prometheus.CounterVec
	took      prometheus.Histogram
	taken     prometheus.Counter
	dropped   prometheus.Counter
	pending   prometheus.Gauge
	gaps      prometheus.Counter
	underWay  prometheus.Gauge
	waits     *prometheus.CounterVec
	disabled  prometheus.Counter
	heldUp    prometheus.Counter
	collected prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		tries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_webhook_tries_total", Help: "Tries to deliver to webhooks by what came of them: delivered, retry, dead.",
		}, []string{"result"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "lubdub_webhook_duration_seconds", Help: "How long webhooks took to answer.", Buckets: prometheus.ExponentialBuckets(.001, 3, 10),
		}),
		taken: counter("lubdub_webhook_messages_total", "Messages put into queues of webhooks."),
		dropped: counter("lubdub_webhook_dropped_total",
			"Pending deliveries that were dropped since those of their tenant took too many bytes."),
		pending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lubdub_webhook_stored_bytes", Help: "Bytes of Redis that deliveries of all webhooks take, as this sweeper has read last.",
		}),
		gaps: counter("lubdub_webhook_gaps_total", "Times that events were dropped by a shard before webhooks had taken them."),
		underWay: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lubdub_webhook_requests", Help: "Requests to webhooks that are under way.",
		}),
		waits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_webhook_waits_total",
			Help: "Deliveries that had to wait for others to end, by whose share of the requests under way was used up: webhook, tenant, total.",
		}, []string{"level"}),
		disabled: counter("lubdub_webhook_disabled_total", "Webhooks that were switched off since they are gone, or only failed."),
		heldUp:   counter("lubdub_webhook_errors_total", "Rounds over webhooks that were cut short by the store."),
		collected: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lubdub_webhook_lag_seconds", Help: "How old the event was that was taken for webhooks last.",
		}),
	}
	for _, result := range []string{"delivered", "retry", "dead"} {
		m.tries.WithLabelValues(result) // a rate needs the series to exist before the first increase
	}
	for _, level := range slotLevels {
		m.waits.WithLabelValues(level)
	}
	if r != nil {
		r.MustRegister(m.tries, m.took, m.taken, m.dropped, m.pending, m.gaps, m.underWay, m.waits, m.disabled, m.heldUp, m.collected)
	}
	return m
}
