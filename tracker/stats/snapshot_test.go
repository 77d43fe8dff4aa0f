package stats

import (
	"errors"
	"sync"
	"testing"
	"time"
)

// A hundred who ask at once cost what one does; what failed is asked for again, and what is known is not.
func TestOneAsksForAll(t *testing.T) {
	known := newSnapshots(10)
	begun, goOn := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	asked := 0
	ask := func() (int, error) {
		mu.Lock()
		defer mu.Unlock()
		if asked++; asked == 1 {
			close(begun)
			<-goOn
		}
		return asked, nil
	}
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if i > 0 {
				<-begun
			}
			if got, err := answer(t.Context(), known, "a", ask); err != nil || got != 1 {
				t.Errorf("answered %d (%v)", got, err)
			}
		}()
	}
	<-begun
	close(goOn)
	wg.Wait()
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	failure := errors.New("no")
	if _, err := answer(t.Context(), known, "b", func() (int, error) { return 0, failure }); err != failure {
		t.Errorf("%v", err)
	}
	if got, err := answer(t.Context(), known, "b", func() (int, error) { return 7, nil }); got != 7 || err != nil {
		t.Errorf("%d (%v)", got, err)
	}
}

// A percentile lies where that share of the requests ends.
func TestPercentiles(t *testing.T) {
	inf := 1e300
	for _, c := range []struct {
		took map[float64]int64
		want time.Duration
	}{
		{map[float64]int64{}, 0},
		{map[float64]int64{0.001: 100, 0.01: 0, inf: 0}, 990 * time.Microsecond},
		{map[float64]int64{0.001: 50, 0.01: 50, inf: 0}, 9820 * time.Microsecond},
		{map[float64]int64{0.001: 10, 0.01: 0, inf: 90}, 10 * time.Millisecond},
	} {
		if got := percentile(c.took, 0.99); got.Round(time.Microsecond) != c.want {
			t.Errorf("%v: %v, want %v", c.took, got, c.want)
		}
	}
}
