package beats_test

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// Some flushes measure how close their tasks came to their timeouts: each its silence by its timeout, in whatever group of a flush, and
// not for attempts that have ended.
func TestHowCloseTasksComeToTheirTimeouts(t *testing.T) {
	t.Parallel()
	var registry *prometheus.Registry
	trackertest.Contract(t, func(h *trackertest.Harness) {
		short := h.Running(func(n *model.NewTask) { n.TaskID = "short" })
		long := h.Running(func(n *model.NewTask) { n.TaskID, n.HeartbeatTimeout = "long", 8*time.Second })
		over := h.Running(func(n *model.NewTask) { n.TaskID = "over" })
		if _, err := h.Beats.Complete(h.Ctx, over, model.Completion{Outcome: model.Succeeded}); err != nil {
			h.Fatal(err)
		}
		report := string(schema.AppendReport(nil, 0, []byte("w"), []byte("45"), []byte(`"half"`)))
		for range 100 { // at least one of these flushes is sampled
			h.Advance(400 * time.Millisecond)
			h.Beats.BeatMany([]*beats.Beat{{Attempt: over}, {Attempt: long, Report: report}, {Attempt: short}})
		}
		ratios := gapRatios(t, registry)
		buckets := map[float64]uint64{}
		for _, b := range ratios.GetBucket() {
			buckets[b.GetUpperBound()] = b.GetCumulativeCount()
		}
		// 400 ms are a fifth of 2 s and a twentieth of 8 s; at most two flushes are those of the start.
		twentieth, fifth := buckets[0.1], buckets[0.2]-buckets[0.1]
		want := float64(twentieth)*0.05 + float64(fifth)*0.2
		if twentieth < 2 || fifth < 2 || ratios.GetSampleCount() != twentieth+fifth || ratios.GetSampleCount() > 16 ||
			math.Abs(ratios.GetSampleSum()-want) > 0.001 {
			h.Errorf("it reports %v, want %d fifths and %d twentieths", ratios, fifth, twentieth)
		}
	}, func(o *tracker.Options) {
		registry = prometheus.NewRegistry()
		o.Registerer = registry
	})
}

// gapRatios returns the histogram that a replica exports.
func gapRatios(t testing.TB, from *prometheus.Registry) *dto.Histogram {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "lubdub_beat_gap_ratio" {
			return f.GetMetric()[0].GetHistogram() // of tasks, which sort first by name
		}
	}
	t.Fatal("it is not shown")
	return nil
}
