package sweep_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/sweep"
)

// A sweeper handles a limited number of fires per second, at once or gradually. With an empty budget it checks again soon: a fire
// of another tenant waits a tenth of a second, not a whole one.
func TestASweepersFiresComeBackBitByBit(t *testing.T) {
	t.Parallel()
	b := sweep.NewFireBudget(100)
	now := time.Unix(1000, 0)
	if n := b.Take(now, 70); n != 70 {
		t.Fatalf("%d of 70 at once", n)
	}
	if n := b.Take(now, 70); n != 30 || b.Wait(now) > 100*time.Millisecond || b.Wait(now) == 0 {
		t.Fatalf("%d of the 30 that are left; wait %v", n, b.Wait(now))
	}
	total := 0
	for range 50 {
		now = now.Add(100 * time.Millisecond)
		if wait := b.Wait(now); wait != 0 {
			t.Fatalf("wait %v with some left", wait)
		}
		total += b.Take(now, 1000)
	}
	if total != 500 {
		t.Errorf("%d fires in 5 s, want 500", total)
	}
	if n := b.Take(now.Add(time.Hour), 1000); n != 100 {
		t.Errorf("%d at once after an hour, want 100", n)
	}
	slow := sweep.NewFireBudget(1)
	slow.Take(now, 1)
	if wait := slow.Wait(now); wait != time.Second {
		t.Errorf("one a second: wait %v", wait)
	}
}
