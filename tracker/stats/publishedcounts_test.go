package stats_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// One of two replicas shows the counts, so that their sum is right; when it has not reported for its lease, the other one shows
// them, and by its own clock the first one has stopped before.
func TestOneReplicaPublishesTheCounts(t *testing.T) {
	t.Parallel()
	var registries []*prometheus.Registry
	trackertest.Contract(t, func(h *trackertest.Harness) {
		registries = registries[len(registries)-1:]
		other := trackertest.OpenOn(h, h.Store, func(o *tracker.Options) { o.Shards, o.Registerer = 2, registry(&registries) })
		for range 3 {
			h.MustCreate(func(n *model.NewTask) { n.Queue = "q" })
		}
		h.MustRegister()
		leave := func(trs ...*tracker.Tracker) {
			h.Helper()
			for _, tr := range trs {
				if _, err := tr.Stats.Leave(h.Ctx); err != nil {
					h.Fatal(err)
				}
			}
		}
		paused := 0
		want := func(first, second int) {
			h.Helper()
			for i, want := range []int{first, second} {
				tasks, shown := metricValue(h, registries[i], "lubdub_tasks", "QUEUED")
				workers, _ := metricValue(h, registries[i], "lubdub_workers", "ONLINE")
				depth, _ := metricValue(h, registries[i], "lubdub_queue_depth", "q")
				unrunnable, _ := metricValue(h, registries[i], "lubdub_queue_unrunnable", "q")
				if is, _ := metricValue(h, registries[i], "lubdub_queue_paused", "q"); shown && is != paused {
					h.Errorf("replica %d shows %d paused queues, not %d", i, is, paused)
				}
				if shown != (want > 0) || tasks != want || depth != want || unrunnable != want || shown && workers != 1 {
					h.Errorf("replica %d shows %d tasks, %d workers, %d that wait and %d that no worker can run", i, tasks, workers, depth, unrunnable)
				}
			}
		}
		leave(h.Tracker, other)
		want(3, 0)
		h.Advance(10 * time.Second)
		h.MustCreate(func(n *model.NewTask) { n.Queue = "q" })
		if _, err := h.Queues.Pause(h.Ctx, trackertest.Scope, "q", ""); err != nil {
			h.Fatal(err)
		}
		paused = 1
		leave(other, h.Tracker)
		want(4, 0)
		h.Advance(26 * time.Second)
		h.Stats.StopPublishing()
		want(0, 0)
		leave(other, h.Tracker)
		want(0, 4)
	}, func(o *tracker.Options) { o.Registerer = registry(&registries) })
}

func registry(all *[]*prometheus.Registry) *prometheus.Registry {
	*all = append(*all, prometheus.NewRegistry())
	return (*all)[len(*all)-1]
}

// Returns the value that a replica shows for a metric and a label's value.
func metricValue(t testing.TB, from *prometheus.Registry, name, label string) (n int, shown bool) {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == label { // labels are sorted by name, so queue is the first
				return int(m.GetGauge().GetValue()), true
			}
		}
	}
	return 0, false
}
