package stats

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/queues"
)

// The counts of the whole deployment, as the metrics of one replica at a time show them, so that the sum over all replicas is
// right. mu protects the fields.
type publishedCounts struct {
	mu     sync.Mutex
	counts *Counts
	queues []queues.ScopedQueue
	fleet  *fleetCounts
	until  time.Time // the end of the lease; nothing is shown after it

	tasks, workers, liveness, machines, overdue *prometheus.Desc
	depth, wait, running, unrunnable, paused    *prometheus.Desc
	queueWorkers, flapping                      *prometheus.Desc
}

func newPublishedCounts() *publishedCounts {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help+" Counted every 10 s and shown by one replica at a time.", labels, nil)
	}
	queue := func(name, help string) *prometheus.Desc {
		return desc(name, help+" Of the 100 deepest queues of all scopes.", "tenant", "workspace", "queue")
	}
	return &publishedCounts{
		tasks:    desc("lubdub_tasks", "Tasks by state, in all scopes.", "state"),
		workers:  desc("lubdub_workers", "Workers by status, in all scopes.", "status"),
		liveness: desc("lubdub_workers_by_liveness", "Workers that are not OFFLINE by liveness, in all scopes.", "liveness"),
		machines: desc("lubdub_machines", "Machines by status, in all scopes.", "status"),
		overdue:  desc("lubdub_oldest_overdue_seconds", "By how much that is overdue which is so most; 0: nothing is."),

		queueWorkers: desc("lubdub_queue_workers", "Workers that are not OFFLINE by queue and status, those of the 100 queues with most workers "+
			"one by one and all others as (other).", "tenant", "workspace", "queue", "status"),
		flapping: desc("lubdub_flapping", "Workers and machines that have gone stale 3 times or more within a day, by kind: worker, "+
			"machine. A worker is its name on its machine and queue.", "kind"),

		depth:   queue("lubdub_queue_depth", "Tasks that wait to be claimed."),
		wait:    queue("lubdub_queue_oldest_wait_seconds", "How long the oldest of them has waited."),
		running: queue("lubdub_queue_running", "Attempts that the queue's workers hold."),
		unrunnable: queue("lubdub_queue_unrunnable", "Tasks without an eligible worker: no worker that is ONLINE and takes new work "+
			"has their type, runtime and labels."),
		paused: queue("lubdub_queue_paused", "1 while the queue is paused, so that its tasks wait; else 0."),
	}
}

// maxQueuesPublished bounds the series: each queue has five.
const maxQueuesPublished = 100

// leaseMargin allows for clocks that run at different speeds.
const leaseMargin = time.Second

// publish shows counts until the end of the lease that was requested at sent.
func (t *publishedCounts) publish(counts *Counts, deepest []queues.ScopedQueue, fleet *fleetCounts, sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts, t.queues, t.fleet, t.until = counts, deepest, fleet, sent.Add(publisherLease-leaseMargin)
}

// StopPublishing makes this replica's metrics stop showing the counts, as when the lease has expired. It is for tests, whose clock is
// independent.
func (s *Service) StopPublishing() { s.published.publish(nil, nil, nil, time.Time{}) }

// Describe implements prometheus.Collector.
func (t *publishedCounts) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{t.tasks, t.workers, t.liveness, t.machines, t.overdue, t.depth, t.wait, t.running, t.unrunnable,
		t.paused, t.queueWorkers, t.flapping} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (t *publishedCounts) Collect(to chan<- prometheus.Metric) {
	t.mu.Lock()
	c, deepest, fleet, over := t.counts, t.queues, t.fleet, time.Now().After(t.until)
	t.mu.Unlock()
	if over {
		return
	}
	to <- prometheus.MustNewConstMetric(t.overdue, prometheus.GaugeValue, c.OldestOverdue.Seconds())
	gauges(to, t.tasks, c.Tasks)
	gauges(to, t.workers, c.Workers)
	gauges(to, t.liveness, c.Liveness)
	gauges(to, t.machines, c.Machines)
	gauges(to, t.flapping, fleet.flapping)
	for _, q := range fleet.queues {
		for status, n := range q.count {
			to <- prometheus.MustNewConstMetric(t.queueWorkers, prometheus.GaugeValue, float64(n), q.scope.Tenant, q.scope.Workspace, q.queue,
				string(status))
		}
	}
	for _, q := range deepest {
		of := func(d *prometheus.Desc, n float64) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, q.Scope.Tenant, q.Scope.Workspace, q.Name)
		}
		of(t.depth, float64(q.Depth()))
		of(t.wait, q.OldestWait().Seconds())
		of(t.running, float64(q.Running))
		of(t.unrunnable, float64(q.Unrunnable()))
		paused := 0.0
		if q.Paused {
			paused = 1
		}
		of(t.paused, paused)
	}
}

func gauges[K ~string](to chan<- prometheus.Metric, d *prometheus.Desc, counts map[K]int) {
	for label, n := range counts {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), string(label))
	}
}
