// Package clock is the clock of the SDK: the system's, or one that a test controls. It does not depend on the rest of the SDK.
package clock

import (
	"math/rand/v2"
	"time"
)

// Clock reads the time and sets timers.
type Clock interface {
	// Now has a monotonic reading if the clock is the system's.
	Now() time.Time
	// AfterFunc calls f in a separate goroutine once d has passed, unless stop is called before; stop reports whether it was.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
	// NewTimer sends on C once, after d.
	NewTimer(d time.Duration) Timer
}

// Timer is a timer of a clock.
type Timer interface {
	C() <-chan time.Time
	// Stop makes sure that nothing more is sent on C; a value that is already in it stays.
	Stop() bool
}

// Real is the system's clock.
var Real Clock = machine{}

type machine struct{}

func (machine) Now() time.Time { return time.Now() }

func (machine) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

func (machine) NewTimer(d time.Duration) Timer { return timer{time.NewTimer(d)} }

type timer struct{ *time.Timer }

func (t timer) C() <-chan time.Time { return t.Timer.C }

// Elapsed is the time from one reading to a later one, including the time while the host slept: then the wall clock advances and the
// monotonic clock does not. A wall clock that was set back is ignored.
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

// FirstPause is the upper bound of the first pause of Backoff.
const FirstPause = 100 * time.Millisecond

// Backoff is the pause before retry n, counted from 0: uniform between 0 and a bound that doubles up to most, so that clients do not retry
// in step.
func Backoff(n int, most time.Duration) time.Duration {
	return rand.N(min(most, FirstPause<<min(n, 20)) + 1)
}
