package store

import (
	"context"
	"math/rand/v2"
	"time"
)

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func Jittered(d time.Duration) time.Duration { return d/2 + rand.N(d) }
