package events

import "github.com/prometheus/client_golang/prometheus"

// metrics count events and their listeners.
type metrics struct {
	listeners  prometheus.Gauge
	lagged     prometheus.Counter
	read       prometheus.Counter
	readErrors prometheus.Counter
	dropped    prometheus.Counter
	paced      prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		listeners: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lubdub_event_listeners", Help: "Streams of events that this replica serves.",
		}),
		lagged: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_event_listeners_lagged_total", Help: "Streams of events that ended since their clients did not keep up.",
		}),
		read: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_events_read_total", Help: "Events that this replica has read for its streams, each once however many listen.",
		}),
		readErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_event_read_errors_total", Help: "Reads of events for streams that an error of Redis cut short; the next one continues.",
		}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_events_dropped_total", Help: "Events that this sweeper has dropped: too many, or too old.",
		}),
		paced: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_event_reads_paced_total",
			Help: "Reads of stored events, for pages and for streams from an old cursor, that had to wait since their tenant reads its share.",
		}),
	}
	if r != nil {
		r.MustRegister(m.listeners, m.lagged, m.read, m.readErrors, m.dropped, m.paced)
	}
	return m
}
