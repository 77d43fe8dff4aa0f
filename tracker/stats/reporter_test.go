package stats_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// The counters of a replica count once even if the store's response is lost, and a silent replica is no longer shown.
func TestAReportCountsOnce(t *testing.T) {
	t.Parallel()
	var claimed prometheus.Counter
	trackertest.Contract(t, func(h *trackertest.Harness) {
		leave := func() error { _, err := h.Stats.Leave(h.Ctx); return err }
		if err := leave(); err != nil {
			h.Fatal(err)
		}
		claimed.Add(5)
		h.Advance(10 * time.Second)
		trackertest.FailCalls(h.Tracker, "report", true, func(i int) bool { return i == 1 }) // 0 is the first report
		if err := leave(); model.CodeOf(err) != model.Unavailable {
			h.Fatalf("the answer is not lost: %v", err)
		}
		if err := leave(); err != nil {
			h.Fatal(err)
		}
		h.Advance(10 * time.Second)
		claimed.Add(2)
		if err := leave(); err != nil {
			h.Fatal(err)
		}
		is, err := h.Stats.Get(h.Ctx, trackertest.Scope)
		if err != nil {
			h.Fatal(err)
		}
		sum := int64(0)
		for _, step := range is.Steps {
			sum += step.Claimed
		}
		if sum != 7 {
			h.Errorf("%d are counted, want 7", sum)
		}
		there := func(want int) {
			h.Helper()
			h.Stats.ForgetSnapshots()
			is, err := h.Stats.System(h.Ctx)
			if err != nil || len(is.Replicas) != want {
				h.Fatalf("%d replicas, want %d (%v)", len(is.Replicas), want, err)
			}
		}
		there(1)
		h.Advance(31 * time.Second)
		there(0)
	}, func(o *tracker.Options) {
		r := prometheus.NewRegistry()
		claimed = prometheus.NewCounter(prometheus.CounterOpts{Name: "lubdub_claimed_tasks_total"})
		r.MustRegister(claimed)
		o.Gatherer = r
	})
}
