package api

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of the front end. Labels are route patterns, statuses and codes, never ids. What the hot path
// counts is looked up once, here.
type metrics struct {
	requests *prometheus.CounterVec

	routes    []routeMetrics // by route.index
	heartbeat *routeMetrics  // that of the hot path
	unrouted  routeMetrics   // what matches no route, and what is refused before routing

	accepted prometheus.Counter
	refused  *prometheus.CounterVec

	lateResults, badTokens, cacheHits, cacheMisses, panics, unparsed, rejectedConns prometheus.Counter
}

type routeMetrics struct {
	route    string // the pattern
	method   string
	ok       prometheus.Counter // status 200
	seconds  prometheus.Observer
	requests *prometheus.CounterVec
}

func (m *routeMetrics) observe(status int, start time.Time) {
	if status == 200 {
		m.ok.Inc()
	} else {
		m.requests.WithLabelValues(m.method, m.route, strconv.Itoa(status)).Inc()
	}
	m.seconds.Observe(time.Since(start).Seconds())
}

// beat counts the fate of one beat.
func (m *metrics) beat(status int, code string) {
	if status == 200 {
		m.accepted.Inc()
		return
	}
	m.refused.WithLabelValues(code).Inc()
}

func newMetrics(reg prometheus.Registerer, s *Server) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_http_requests_total", Help: "Requests by method, route pattern and status.",
		}, []string{"method", "route", "status"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_http_beats_refused_total", Help: "Beats refused, alone or in batches, by error code.",
		}, []string{"code"}),
		accepted:      counter("lubdub_http_beats_accepted_total", "Beats answered 200, alone or in batches."),
		lateResults:   counter("lubdub_http_late_results_total", "Completions that came too late and changed nothing."),
		badTokens:     counter("lubdub_http_tokens_refused_total", "Tokens that do not hold: malformed, expired, wrongly signed or missing."),
		cacheHits:     counter("lubdub_http_token_cache_hits_total", "Task tokens that the cache knew."),
		cacheMisses:   counter("lubdub_http_token_cache_misses_total", "Task tokens that held and had to be verified, since the cache did not know them."),
		panics:        counter("lubdub_http_panics_total", "Panics in handlers, answered 500. Each is a bug."),
		unparsed:      counter("lubdub_http_unparsed_requests_total", "What came and was no HTTP request that could be read whole."),
		rejectedConns: counter("lubdub_http_connections_rejected_total", "Connections answered 503 because too many were open."),
	}
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "lubdub_http_request_seconds", Help: "Time from a request's arrival to its answer, by route pattern.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8),
	}, []string{"method", "route"})

	of := func(method, pattern string) routeMetrics {
		return routeMetrics{
			route: pattern, method: method, requests: m.requests,
			ok:      m.requests.WithLabelValues(method, pattern, "200"),
			seconds: seconds.WithLabelValues(method, pattern),
		}
	}
	m.unrouted = of("other", "other")
	m.routes = make([]routeMetrics, len(routes))
	for i, r := range routes {
		m.routes[i] = of(r.method, r.pattern)
		if r.op == opHeartbeat {
			m.heartbeat = &m.routes[i]
		}
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{
		m.requests, seconds, m.refused, m.accepted, m.lateResults, m.badTokens, m.cacheHits, m.cacheMisses, m.panics, m.unparsed, m.rejectedConns,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "lubdub_http_requests_in_flight", Help: "Requests that wait for their answer.",
		}, func() float64 { return float64(s.inFlight.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "lubdub_http_connections_open", Help: "Open connections of the API.",
		}, func() float64 { return float64(max(s.http.GetOpenConnectionsCount(), 0)) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "lubdub_http_token_cache_entries", Help: "Verified task tokens in the cache, expired ones included until their place is taken.",
		}, func() float64 { return float64(s.tokens.size.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "lubdub_http_token_cache_evictions_total", Help: "Tokens that lost their place in the cache while they still held: it is too small.",
		}, func() float64 { return float64(s.tokens.evictions.Load()) }),
	} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
