package workers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// Metrics show workers by queue, those declared stale and those online, with a bounded number of series for any number of queues.
func TestWorkersAreCountedByQueue(t *testing.T) {
	t.Parallel()
	var registry *prometheus.Registry
	trackertest.Contract(t, func(h *trackertest.Harness) {
		const queues, shown = 103, 100
		for i := range queues {
			h.MustRegister(func(n *model.NewWorker) { n.Queue = fmt.Sprint("q", i) })
		}
		h.MustRegister(func(n *model.NewWorker) { n.Queue = "q102" }) // the largest is never among the others
		want := func(name string, sum float64) {
			h.Helper()
			series, all, others := 0, 0.0, 0.0
			families, err := registry.Gather()
			if err != nil {
				h.Fatal(err)
			}
			for _, f := range families {
				for _, m := range f.GetMetric() {
					if f.GetName() != name {
						continue
					}
					labels := map[string]string{}
					for _, l := range m.GetLabel() {
						labels[l.GetName()] = l.GetValue()
					}
					if labels["status"] == string(model.Draining) {
						continue
					}
					n := m.GetGauge().GetValue() + m.GetCounter().GetValue()
					series++
					if all += n; labels["queue"] == "(other)" {
						others += n
					}
				}
			}
			if series != shown+1 || all != sum || sum > 0 && others < queues-shown {
				h.Errorf("%s: %d series, %v in all, %v of them others", name, series, all, others)
			}
		}
		if _, err := h.Stats.Leave(h.Ctx); err != nil {
			h.Fatal(err)
		}
		want("lubdub_queue_workers", queues+1)
		h.Advance(15 * time.Second)
		h.MustSweep()
		want("lubdub_stale_workers_total", 0) // the series exist before anything is counted
		h.Advance(15 * time.Second)
		h.MustSweep()
		want("lubdub_stale_workers_total", queues+1)
	}, func(o *tracker.Options) {
		registry = prometheus.NewRegistry()
		o.Registerer = registry
	})
}
