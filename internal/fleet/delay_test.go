package fleet

import (
	"context"
	"os"
	"testing"
	"time"
)

func TestDelays(t *testing.T) {
	var d delays
	at := func(ms int) time.Time {
		return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(ms) * time.Millisecond)
	}
	d.note(at(0), at(1)) // a timer is never exact
	d.note(at(100), at(200))
	d.note(at(300), at(350))
	for _, c := range []struct{ from, until, want int }{
		{0, 100, 0}, {0, 150, 50}, {0, 1000, 150}, {120, 130, 10}, {150, 320, 70}, {200, 300, 0}, {350, 1000, 0}, {400, 300, 0},
	} {
		if got := d.within(at(c.from), at(c.until)); got != time.Duration(c.want)*time.Millisecond {
			t.Errorf("from %d until %d: %v, want %d ms", c.from, c.until, got, c.want)
		}
	}
	if longest, total := d.sum(); longest != 100*time.Millisecond || total != 150*time.Millisecond {
		t.Error(longest, total)
	}
	for i := range 2 * keepHolds {
		d.note(at(1000+10*i), at(1005+10*i))
	}
	if len(d.holds) > keepHolds {
		t.Errorf("%d are kept", len(d.holds))
	}
}

// Threads that are ready and do not run hold up whatever they do, also where a sleeper is woken at once.
func TestDelaysOfThreads(t *testing.T) {
	at := func(ms int) time.Time {
		return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(ms) * time.Millisecond)
	}
	var ran, waited time.Duration
	d := delays{threads: func() (time.Duration, time.Duration, bool) { return ran, waited, true }}
	for _, s := range []struct{ at, ran, waited int }{{0, 0, 0}, {100, 100, 0}, {200, 150, 150}, {300, 160, 240}, {400, 100, 200}} {
		ran, waited = time.Duration(s.ran)*time.Millisecond, time.Duration(s.waited)*time.Millisecond
		d.noteShare(at(s.at))
	}
	for _, c := range []struct{ from, until, want int }{
		{0, 100, 0},     // ran all the time
		{100, 200, 75},  // 50 of 200 thread milliseconds ran
		{120, 160, 30},  // as in the step around it
		{100, 300, 160}, // 60 of 300
		{200, 300, 90},
		{300, 400, 0}, // a thread ended, and nothing is known
		{500, 600, 0}, {-200, -100, 0}, {300, 200, 0},
	} {
		if got := d.within(at(c.from), at(c.until)).Round(time.Microsecond); got != time.Duration(c.want)*time.Millisecond {
			t.Errorf("from %d until %d: %v, want %d ms", c.from, c.until, got, c.want)
		}
	}
	d.note(at(110), at(195)) // a sleeper that was held up for longer counts
	if got := d.within(at(100), at(200)); got != 85*time.Millisecond {
		t.Error(got)
	}
}

func TestThreadTimes(t *testing.T) {
	before, _, ok := threadTimes()
	if _, err := os.Stat("/proc/self/schedstat"); ok != (err == nil) {
		t.Fatalf("known: %v, and %v", ok, err)
	}
	for n := 0; ok && before >= 0; n++ { // until it has run for a while
		if after, _, _ := threadTimes(); after > before {
			return
		}
	}
}

func TestDelaysAreMeasured(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var calls int
	d := delays{threads: func() (time.Duration, time.Duration, bool) {
		if calls++; calls == 3 {
			cancel()
		}
		return 0, 0, calls > 1
	}}
	d.measure(ctx)
	if calls != 3 || len(d.shares) != 2 {
		t.Errorf("%d measurements, %d kept", calls, len(d.shares))
	}
}
