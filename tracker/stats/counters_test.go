package stats

import (
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Empty buckets are reported too: slower heartbeats are between two bounds, no matter how few they are.
func TestBoundsWithoutBeatsCount(t *testing.T) {
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: requestSeconds, Buckets: []float64{0.0005, 0.002, 0.008, 0.032, 0.128, 0.512},
	}, []string{"route"})
	all := prometheus.NewRegistry()
	all.MustRegister(took)
	p99 := func(before map[string]int64) (time.Duration, map[string]int64) {
		is, err := gather(all)
		if err != nil {
			t.Fatal(err)
		}
		fields := map[string]string{"r:1": "1"}
		for name, n := range is.since(before).counts {
			fields[name] = strconv.FormatInt(n, 10)
		}
		return newStep(1, fields).BeatP99, is.counts
	}
	beats := took.WithLabelValues("/v1/tasks/{taskId}/heartbeat")
	for range 989 {
		beats.Observe(0.0001)
	}
	for range 11 {
		beats.Observe(0.2)
	}
	got, before := p99(nil)
	if got < 128*time.Millisecond || got > 512*time.Millisecond {
		t.Errorf("11 of 1,000 beats took 0.2 s, and the p99 is %v", got)
	}
	if got, _ := p99(before); got != 0 {
		t.Errorf("without beats the p99 is %v", got)
	}
	beats.Observe(0.2)
	if got, _ := p99(before); got < 128*time.Millisecond || got > 512*time.Millisecond {
		t.Errorf("of one beat in the highest bucket the p99 is %v", got)
	}
}
