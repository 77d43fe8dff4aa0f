package httpapi

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Metrics are the metrics of the routes. Labels are route patterns, statuses and codes, never ids. The counters of the hot path are looked
// up once, here.
type Metrics struct {
	requests *prometheus.CounterVec

	routes    []routeMetrics // by route.index
	hot       hotMetrics     // of single beats
	heartbeat *routeMetrics  // of single heartbeats too: what hot does not count
	unrouted  routeMetrics   // requests that match no route, or are refused before routing

	accepted   prometheus.Counter     // heartbeats of workers
	refused    *prometheus.CounterVec // beats, by kind and code
	overloaded *prometheus.CounterVec

	badTokens, cacheMisses, Panics prometheus.Counter

	seconds *prometheus.HistogramVec
}

type routeMetrics struct {
	route    string // the pattern
	method   string
	ok       prometheus.Counter // status 200
	seconds  prometheus.Observer
	requests *prometheus.CounterVec
}

func (m *routeMetrics) observe(status int, start time.Time) {
	if m.ok == nil {
		return // single heartbeats are counted by hotMetrics
	}
	if status == 200 {
		m.ok.Inc()
	} else {
		m.refuse(status)
	}
	m.seconds.Observe(time.Since(start).Seconds())
}

// refuse counts a request that was not answered 200.
func (m *routeMetrics) refuse(status int) {
	m.requests.WithLabelValues(m.method, m.route, strconv.Itoa(status)).Inc()
}

// Kinds of heartbeats, the label kind of lubdub_http_beats_accepted_total and lubdub_http_beats_refused_total.
const (
	KindTask   = "task"
	KindWorker = "worker"
)

// RefusedBeat counts a single heartbeat that was not answered 200.
func (m *Metrics) RefusedBeat(r *Refusal) {
	m.heartbeat.refuse(r.Status)
	m.RefusedBeatOf(KindTask, r)
}

// refuseOther counts a refusal outside the path of single heartbeats; kind is that of the heartbeat, or "" for other requests.
func (m *Metrics) refuseOther(kind string, r *Refusal) {
	if kind != "" {
		m.RefusedBeatOf(kind, r)
	}
}

func acceptedBeats(kind string) prometheus.CounterOpts {
	return prometheus.CounterOpts{
		Name: "lubdub_http_beats_accepted_total", Help: "Heartbeats answered 200, by kind (task: alone or in batches; worker).",
		ConstLabels: prometheus.Labels{"kind": kind},
	}
}

func newMetrics(reg prometheus.Registerer, a *API) (*Metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_http_requests_total", Help: "Requests by method, route pattern and status.",
		}, []string{"method", "route", "status"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_http_beats_refused_total",
			Help: "Heartbeats refused, by kind (task: alone or in batches, where a batch that is refused whole counts as one; worker) " +
				"and error code.",
		}, []string{"kind", "code"}),
		accepted: prometheus.NewCounter(acceptedBeats(KindWorker)),
		overloaded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_http_overloaded_total",
			Help: "Requests, or beats of batches, refused at a bound of this replica: control_requests, event_streams, waiting_claims, " +
				"awaited_tasks (503 when all is in use, 429 when the tenant or the token has its share), body_bytes (503), " +
				"tenant_beats, tenant_calls (429).",
		}, []string{"bound"}),
		badTokens: counter("lubdub_http_tokens_refused_total", "Tokens that do not hold: malformed, expired, wrongly signed or missing."),
		cacheMisses: counter("lubdub_http_token_cache_misses_total",
			"Tokens that held and had to be verified, since the cache did not know them."),
		Panics: counter("lubdub_http_panics_total", "Panics in handlers, answered 500. Each is a bug."),
	}
	for _, code := range []string{v1.CodeOverloaded, v1.CodeStoreUnavailable} {
		for _, kind := range []string{KindTask, KindWorker} {
			m.refused.WithLabelValues(kind, code) // created now, because a rate ignores a series' first value
		}
	}
	m.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "lubdub_http_request_seconds", Help: "Time from a request's arrival to its answer, by route pattern.",
		Buckets: requestSeconds(),
	}, []string{"method", "route"})

	m.hot.requests, m.hot.seconds = describe(m.requests), describe(m.seconds)
	m.hot.skew = prometheus.NewDesc("lubdub_worker_clock_skew_seconds",
		"How far the times that workers say in callbacks (startedAt, heartbeatAt, completedAt) are from the store's when these are received, "+
			"either way; a day at most.", nil, nil)
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{
		m.requests, m.seconds, m.refused, m.overloaded, m.badTokens, m.cacheMisses, m.Panics,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "lubdub_http_requests_in_flight", Help: "Requests that wait for their answer.",
		}, func() float64 { return float64(a.InFlight()) }),
		prometheus.NewCounterFunc(acceptedBeats(KindTask), m.AcceptedBeats),
		m.accepted,
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "lubdub_http_token_cache_hits_total", Help: "Tokens that the cache knew.",
		}, m.hot.cacheHits),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "lubdub_clock_skew_seconds", Help: "How far Redis's clock, on which tokens and deadlines depend, is ahead of this process's.",
		}, func() float64 { return a.cfg.Attempts.Skew().Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "lubdub_http_token_cache_entries", Help: "Verified tokens in the cache, expired ones included until their place is taken.",
		}, func() float64 { return float64(a.CachedTokens()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "lubdub_http_token_cache_evictions_total",
			Help: "Tokens that lost their place in the cache while they still held: it is too small.",
		}, func() float64 { return float64(a.tokens.Evictions()) }),
	} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// mount creates the metrics of the routes, and registers those that need a route's labels.
func (m *Metrics) mount(reg prometheus.Registerer, routes []*Route) error {
	of := func(method, pattern string) routeMetrics {
		return routeMetrics{
			route: pattern, method: method, requests: m.requests,
			ok:      m.requests.WithLabelValues(method, pattern, "200"),
			seconds: m.seconds.WithLabelValues(method, pattern),
		}
	}
	m.unrouted = of("other", "other")
	m.routes = make([]routeMetrics, len(routes))
	for i, r := range routes {
		if r.Access != ForBeat {
			m.routes[i] = of(r.Method, r.Pattern)
			continue
		}
		m.heartbeat = &m.routes[i]
		*m.heartbeat = routeMetrics{route: r.Pattern, method: r.Method, requests: m.requests}
		m.hot.labels = []string{r.Method, r.Pattern}
	}
	if reg == nil {
		return nil
	}
	return reg.Register(&m.hot)
}

// Overloaded returns a function that counts a refusal at a limit.
func (m *Metrics) Overloaded(bound string) func() { return m.overloaded.WithLabelValues(bound).Inc }

// RefusedBeatOf counts a heartbeat that was refused within a batch.
func (m *Metrics) RefusedBeatOf(kind string, r *Refusal) {
	m.refused.WithLabelValues(kind, r.Body.Error).Inc()
}

// AcceptedWorkerBeat counts a heartbeat of a worker that was accepted.
func (m *Metrics) AcceptedWorkerBeat() { m.accepted.Inc() }

// AcceptedBeats returns how many heartbeats of tasks were accepted.
func (m *Metrics) AcceptedBeats() float64 { return m.hot.accepted() }

// Stripe returns the counters for one user.
func (m *Metrics) Stripe() *Stripe { return m.hot.stripe() }

// Shared returns the counters for requests outside the path of single heartbeats.
func (m *Metrics) Shared() *Stripe { return &m.hot.stripes[0] }

// describe returns a collector's description.
func describe(c prometheus.Collector) *prometheus.Desc {
	ch := make(chan *prometheus.Desc, 1)
	c.Describe(ch)
	return <-ch
}

func requestSeconds() (bounds []float64) {
	for _, b := range requestBuckets {
		bounds = append(bounds, b.Seconds())
	}
	return bounds
}
