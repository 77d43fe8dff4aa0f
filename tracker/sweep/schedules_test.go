package sweep_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/sweep"
)

// A sweeper deals with so many fires a second, all at once or bit by bit. When it has none left it looks again soon: what one
// tenant has used up keeps another's fire waiting for a tenth of a second and not for a whole one.
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
