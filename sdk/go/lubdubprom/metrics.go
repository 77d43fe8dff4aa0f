// Package lubdubprom exports the metrics of Lubdub's clients and workers to Prometheus.
package lubdubprom

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/sdk/go/client"
)

// seconds are the buckets of durations.
var seconds = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200}

// Metrics registers the metrics of a client with reg and returns them for client.Measure. The workers of the client are included. It fails
// if metrics with these names are registered already: use one client, or registries with different labels.
func Metrics(reg prometheus.Registerer) (client.Metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "lubdub", Subsystem: "worker", Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "lubdub", Subsystem: "worker", Name: name, Help: help,
			Buckets: buckets}, labels)
	}
	var (
		attempts = counter("attempts_total", "Attempts that ended, by the task's type and by outcome: of the completion, LOST or RETURNED.",
			"type", "outcome")
		retries  = counter("retries_total", "Those of them that were not the first attempt of their task.", "type")
		duration = histogram("attempt_duration_seconds", "Time from the start of the handler until the attempt ended.", seconds,
			"type", "outcome")
		wait = histogram("queue_wait_seconds", "How long the task could be claimed before it was.", seconds, "type")
		beat = histogram("first_heartbeat_seconds",
			"Time from the start of the handler until a server first accepted a heartbeat of the attempt.", seconds, "type")
		running = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "lubdub", Subsystem: "worker", Name: "running_tasks",
			Help: "Tasks that the worker runs."})
		claims     = counter("claims_total", "Claims by result: ok, refused or unanswered.", "result")
		claimed    = counter("claimed_tasks_total", "Tasks that were claimed.")
		heartbeats = counter("heartbeats_total", "Heartbeat requests by result: ok, refused or unanswered.", "result")
		took       = histogram("heartbeat_duration_seconds", "Time from a heartbeat request to its answer.", seconds)
		refusals   = counter("refusals_total", "Heartbeats and completions that were refused, by the code of the error.", "code")
		lease      = histogram("lease_left_ratio",
			"Share of the heartbeat timeout that was left when a heartbeat was accepted: 1 is all, 0 nothing.",
			prometheus.LinearBuckets(0.1, 0.1, 10))
	)
	all := []prometheus.Collector{
		attempts, retries, duration, wait, beat, running, claims, claimed, heartbeats, took, refusals, lease,
	}
	for i, c := range all {
		if err := reg.Register(c); err != nil {
			for _, registered := range all[:i] {
				reg.Unregister(registered)
			}
			return client.Metrics{}, fmt.Errorf("lubdubprom: %w", err)
		}
	}
	return client.Metrics{
		Beat: func(result string, _ int, d time.Duration) {
			heartbeats.WithLabelValues(result).Inc()
			took.WithLabelValues().Observe(d.Seconds())
		},
		Refused:   func(code string) { refusals.WithLabelValues(code).Inc() },
		LeaseLeft: func(ratio float64) { lease.WithLabelValues().Observe(ratio) },
		Claimed: func(result string, tasks int) {
			claims.WithLabelValues(result).Inc()
			claimed.WithLabelValues().Add(float64(tasks))
		},
		Running: func(n int) { running.Set(float64(n)) },
		Ended: func(e client.AttemptEnd) {
			attempts.WithLabelValues(e.Type, string(e.Outcome)).Inc()
			duration.WithLabelValues(e.Type, string(e.Outcome)).Observe(e.Duration.Seconds())
			if e.Attempt > 1 {
				retries.WithLabelValues(e.Type).Inc()
			}
			if e.QueueWait != nil {
				wait.WithLabelValues(e.Type).Observe(e.QueueWait.Seconds())
			}
			if e.FirstHeartbeat != nil {
				beat.WithLabelValues(e.Type).Observe(e.FirstHeartbeat.Seconds())
			}
		},
	}, nil
}
