package api

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/api/internal/conn"
)

// connMetrics count what happens on connections before a request is parsed.
type connMetrics struct{ unparsed, rejectedConns, starved prometheus.Counter }

func newConnMetrics(reg prometheus.Registerer, watch *conn.Watch) (*connMetrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &connMetrics{
		unparsed:      counter("lubdub_http_unparsed_requests_total", "What came and was no HTTP request that could be read whole."),
		rejectedConns: counter("lubdub_http_connections_rejected_total", "Connections answered 503 because too many were open."),
		starved: counter("lubdub_http_accepts_starved_total",
			"Tries to take a connection for which there was no file descriptor left. Each is tried again."),
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{
		m.unparsed, m.rejectedConns, m.starved,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "lubdub_http_connections_open", Help: "Open connections of the API.",
		}, func() float64 { open, _ := watch.Count(); return float64(open) }),
	} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
