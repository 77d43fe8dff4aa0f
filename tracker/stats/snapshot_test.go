package stats

import (
	"errors"
	"math"
	"sync"
	"testing"
	"time"
)

// A hundred concurrent callers cost what one does; a failed result is computed again, and a known one is not.
func TestConcurrentCallersShareOneResult(t *testing.T) {
	known := newSnapshots(10)
	begun, goOn := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	calls := 0
	compute := func() (int, error) {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls == 1 {
			close(begun)
			<-goOn
		}
		return calls, nil
	}
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if i > 0 {
				<-begun
			}
			if got, err := answer(t.Context(), known, "a", compute); err != nil || got != 1 {
				t.Errorf("answered %d (%v)", got, err)
			}
		}()
	}
	<-begun
	close(goOn)
	wg.Wait()
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
	failure := errors.New("no")
	if _, err := answer(t.Context(), known, "b", func() (int, error) { return 0, failure }); err != failure {
		t.Errorf("%v", err)
	}
	if got, err := answer(t.Context(), known, "b", func() (int, error) { return 7, nil }); got != 7 || err != nil {
		t.Errorf("%d (%v)", got, err)
	}
}

// A percentile is where that share of the requests ends.
func TestPercentiles(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		took map[float64]int64
		want time.Duration
	}{
		{map[float64]int64{}, 0},
		{map[float64]int64{0.001: 100, 0.01: 0, inf: 0}, 990 * time.Microsecond},
		{map[float64]int64{0.001: 50, 0.01: 50, inf: 0}, 9820 * time.Microsecond},
		{map[float64]int64{0.001: 10, 0.01: 0, inf: 90}, 10 * time.Millisecond},
	} {
		if got := time.Duration(quantile(c.took, 0.99) * float64(time.Second)); got.Round(time.Microsecond) != c.want {
			t.Errorf("%v: %v, want %v", c.took, got, c.want)
		}
	}
}

// The gaps are summarized over all steps, and no live task or worker was silent for longer than the maximum.
func TestGapsOfAllStepsAreOne(t *testing.T) {
	of := func(kind string, gaps map[float64]int64) *Step {
		return &Step{gaps: map[string]map[float64]int64{kind: gaps}}
	}
	if g := gapsOf([]*Step{{}, of(KindTask, map[float64]int64{0.1: 0})}); g != (Gaps{}) {
		t.Errorf("of nothing: %+v", g)
	}
	g := gapsOf([]*Step{of(KindTask, map[float64]int64{0.4: 90}), of(KindTask, map[float64]int64{0.4: 6, 0.9: 4})})
	if g.Samples != 100 || g.Most != 0.9 || g.P50 < 0.3 || g.P50 > 0.4 || g.P99 < 0.8 || g.P99 > 0.9 {
		t.Errorf("%+v", g)
	}
	if g := gapsOf([]*Step{of(KindTask, map[float64]int64{0.5: 1, math.Inf(1): 1})}); g.Most != 1 || g.Samples != 2 {
		t.Errorf("%+v", g)
	}
	// The kind that comes closer counts, whatever the other one does, unless it has too few samples.
	for _, c := range []struct {
		task, worker map[float64]int64
		want         string
	}{
		{nil, map[float64]int64{0.4: 1}, KindWorker},
		{map[float64]int64{0.4: 1}, nil, KindTask},
		{map[float64]int64{0.9: 200}, map[float64]int64{0.4: 1_000_000}, KindTask},
		{map[float64]int64{0.4: 1_000_000}, map[float64]int64{0.9: 200}, KindWorker},
		{map[float64]int64{0.9: 3}, map[float64]int64{0.8: 200}, KindWorker},
		{map[float64]int64{0.4: 200}, map[float64]int64{0.9: 3}, KindTask},
	} {
		if g := gapsOf([]*Step{of(KindTask, c.task), of(KindWorker, c.worker)}); g.Kind != c.want {
			t.Errorf("tasks %v, workers %v: %+v, want those of the %ss", c.task, c.worker, g, c.want)
		}
	}
}
