package load

import (
	"context"
	"time"
)

// clock is the time since a run's start.
type clock interface {
	now() time.Duration
	// sleepUntil returns false if the context ended first.
	sleepUntil(ctx context.Context, t time.Duration) bool
	// skip advances a clock that tests control; it returns false for a real clock.
	skip(t time.Duration) bool
}

type wallClock struct{ start time.Time }

func newWallClock() clock { return wallClock{time.Now()} }

func (c wallClock) now() time.Duration { return time.Since(c.start) }

func (wallClock) skip(time.Duration) bool { return false }

// sleepUntil sleeps in pieces, since a plain sleep is cheaper than a timer with a channel and must still end soon.
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
