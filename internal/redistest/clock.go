package redistest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// clockKey contains {seconds, microseconds} on a real server: the scripts of a test read it instead of TIME.
// Production scripts have no such line (lua.LoadWithClock).
const clockKey = "lubdub:redistest:clock" // with the prefix of the keys that scripts may read

// clockExpr is the Lua expression that replaces TIME in the scripts of a test.
const clockExpr = "redis.call('LRANGE', '" + clockKey + "', 0, -1)"

// setClock sets that key and ages every key with an expiry by ARGV[3] ms, as on miniredis: a real server's own clock has not moved.
// ARGV[4] is the database, which is not scanned if no key has an expiry.
var setClock = redis.NewScript(`
redis.call('DEL', KEYS[1])
redis.call('RPUSH', KEYS[1], ARGV[1], ARGV[2])
local expires = string.match(redis.call('INFO', 'keyspace'), 'db' .. ARGV[4] .. ':keys=%d+,expires=(%d+)')
if tonumber(ARGV[3]) > 0 and expires ~= '0' then
  for _, key in ipairs(redis.call('KEYS', '*')) do
    local left = redis.call('PTTL', key)
    if left >= 0 then redis.call('PEXPIRE', key, left - ARGV[3]) end
  end
end`)

// Clock is the wall time that a store's scripts see; keys expire by it too. It begins at 2026-01-15T10:00:00Z and advances only when the
// test moves it. With WallClock it is the real time, and moving it panics.
type Clock struct {
	mu  sync.Mutex
	now time.Time
	set func(now time.Time, forward time.Duration) // nil: the real time; forward is 0 when it is set back
}

func newClock(set func(time.Time, time.Duration)) *Clock {
	c := &Clock{now: time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC), set: set}
	c.set(c.now, 0)
	return c
}

func newMiniredisClock(m *miniredis.Miniredis) *Clock {
	return newClock(func(now time.Time, forward time.Duration) {
		m.SetTime(now)
		m.FastForward(forward)
	})
}

func newRealClock(t testing.TB, client *redis.Client) *Clock {
	return newClock(func(now time.Time, forward time.Duration) { setRealClock(t, client, now, forward) })
}

func setRealClock(t testing.TB, client *redis.Client, now time.Time, forward time.Duration) {
	err := setClock.Run(context.Background(), client, []string{clockKey},
		now.Unix(), now.Nanosecond()/1000, forward.Milliseconds(), client.Options().DB).Err()
	if err != nil && err != redis.Nil {
		t.Errorf("setting the test clock: %v", err)
	}
}

// Now returns the time that the store's scripts see.
func (c *Clock) Now() time.Time {
	if c.set == nil {
		return time.Now()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set sets the clock to any time, also back; expired keys stay expired.
func (c *Clock) Set(now time.Time) {
	c.move(func(time.Time) time.Time { return now })
}

// Advance moves the clock forward by d, or back if d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.move(func(now time.Time) time.Time { return now.Add(d) })
}

func (c *Clock) move(next func(time.Time) time.Time) {
	if c.set == nil {
		panic("redistest: a store WallClock has the true time, which a test cannot move")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := next(c.now).Truncate(time.Microsecond) // the precision of TIME
	forward := max(0, now.Sub(c.now))
	c.now = now
	c.set(now, forward)
}
