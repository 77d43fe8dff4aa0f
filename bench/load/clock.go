package load

import (
	"context"
	"time"
)

// clock is time since a run's start.
type clock interface {
	now() time.Duration
	// sleepUntil says false when the context ended first.
	sleepUntil(ctx context.Context, t time.Duration) bool
	// skip lets a clock that does not go by itself jump; false: it goes.
	skip(t time.Duration) bool
}

type wallClock struct{ start time.Time }

func newWallClock() clock { return wallClock{time.Now()} }

func (c wallClock) now() time.Duration { return time.Since(c.start) }

func (wallClock) skip(time.Duration) bool { return false }

// sleepUntil sleeps in pieces, since a plain sleep is cheaper than a timer beside a channel and must still end soon.
func (c wallClock) sleepUntil(ctx context.Context, t time.Duration) bool {
	const piece = 200 * time.Millisecond
	for {
		d := t - c.now()
		if d <= 0 {
			return true
		}
		if d > piece {
			if ctx.Err() != nil {
				return false
			}
			d = piece
		}
		time.Sleep(d)
	}
}
