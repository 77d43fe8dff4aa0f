package redistest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// clockKey holds {seconds, microseconds} on a real server: the scripts of a test read it instead of TIME.
// Production scripts have no such line (lua.LoadWithClock).
const clockKey = "redistest:clock"

// Clock is wall time as a store's scripts see it. It stands still unless the test moves it.
type Clock struct {
	mu  sync.Mutex
	now time.Time
	set func(time.Time)
}

func newClock(set func(time.Time)) *Clock {
	c := &Clock{set: set}
	c.Set(time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC))
	return c
}

func newRealClock(t testing.TB, client *redis.Client) *Clock {
	return newClock(func(now time.Time) {
		pipe := client.TxPipeline()
		pipe.Del(context.Background(), clockKey)
		pipe.RPush(context.Background(), clockKey, now.Unix(), now.Nanosecond()/1000)
		if _, err := pipe.Exec(context.Background()); err != nil {
			t.Errorf("setting the test clock: %v", err)
		}
	})
}

// Now is what the store's scripts see now.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set moves the clock anywhere, also back.
func (c *Clock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
	c.set(now)
}

// Advance moves the clock forward by d.
func (c *Clock) Advance(d time.Duration) { c.Set(c.Now().Add(d)) }
