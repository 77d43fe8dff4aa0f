package store_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// Round trips to Redis are counted, and their errors by kind.
func TestRoundTripsAreCounted(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	registry := prometheus.NewRegistry()
	tr := trackertest.Open(t, tracker.Options{RedisURL: s.URL(), RedisTimeout: 5 * time.Second, Registerer: registry})
	counted := func() (trips uint64, kinds map[string]float64, silent float64) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		kinds = map[string]float64{}
		for _, f := range families {
			switch f.GetName() {
			case "lubdub_redis_round_trip_seconds":
				trips = f.GetMetric()[0].GetHistogram().GetSampleCount()
			case "lubdub_redis_silent":
				silent = f.GetMetric()[0].GetGauge().GetValue()
			case "lubdub_redis_errors_total":
				for _, m := range f.GetMetric() {
					kinds[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
		return trips, kinds, silent
	}
	admin := s.Client()
	t.Cleanup(func() { _ = admin.Close() })
	if err := tr.Beats.Tick(); err != nil {
		t.Fatal(err)
	}
	before, kinds, silent := counted()
	if before == 0 || kinds["timeout"]+kinds["refused"]+kinds["unreachable"] != 0 || silent != 0 {
		t.Fatalf("%d round trips, errors %v, %v silent, before any trouble", before, kinds, silent)
	}
	if err := admin.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if tr.Beats.Tick() == nil {
		t.Fatal("a full Redis took something")
	}
	if err := admin.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Freeze(); err != nil {
		t.Fatal(err)
	}
	if tr.Beats.Tick() == nil {
		t.Fatal("a frozen Redis answered")
	}
	trackertest.Eventually(t, "a frozen Redis is counted as silent", func() bool { _, _, silent := counted(); return silent == 1 })
	if err := s.Thaw(); err != nil {
		t.Fatal(err)
	}
	trackertest.Eventually(t, "a Redis that answers again is not", func() bool { _, _, silent := counted(); return silent == 0 })
	after, kinds, _ := counted()
	if after < before+2 || kinds["refused"] == 0 || kinds["timeout"] == 0 || kinds["unreachable"] != 0 {
		t.Errorf("%d round trips, errors %v", after, kinds)
	}
}
