// Package clock is time as the SDK sees it: the machine's, or one in the hand of a test. It knows nothing of Lubdub.
package clock

import (
	"math/rand/v2"
	"time"
)

// Clock tells the time and wakes.
type Clock interface {
	// Now has a monotonic reading where the clock is the machine's.
	Now() time.Time
	// AfterFunc calls f in a goroutine of its own once d has passed, unless stop is called before; stop reports whether it was.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
	// NewTimer wakes whoever reads C, once, after d.
	NewTimer(d time.Duration) Timer
}

// Timer is one of a clock's.
type Timer interface {
	C() <-chan time.Time
	// Stop makes sure that C stays silent; what was in it already is not taken out.
	Stop() bool
}

// Real is the machine's clock.
var Real Clock = machine{}

type machine struct{}

func (machine) Now() time.Time { return time.Now() }

func (machine) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

func (machine) NewTimer(d time.Duration) Timer { return timer{time.NewTimer(d)} }

type timer struct{ *time.Timer }

func (t timer) C() <-chan time.Time { return t.Timer.C }

// Elapsed is how much time has passed from one reading to a later one, time in which the machine slept included: there the
// monotonic clock stands still and the wall clock does not. A wall clock that was put back does not count.
func Elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// Sleep waits until d has passed, or done is closed or sends; it reports whether d has passed.
func Sleep(c Clock, d time.Duration, done <-chan struct{}) bool {
	if d <= 0 {
		select {
		case <-done:
			return false
		default:
			return true
		}
	}
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return true
	case <-done:
		return false
	}
}

// FirstPause bounds the first pause of Backoff.
const FirstPause = 100 * time.Millisecond

// Backoff is how long to wait before repeat n, counted from 0: evenly from nothing to a bound that doubles up to most, so that a
// crowd does not come back as one.
func Backoff(n int, most time.Duration) time.Duration {
	return rand.N(min(most, FirstPause<<min(n, 20)) + 1)
}
