package lua_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
)

// shardClock is a shard whose time some replicas advance in turns of 100 ms.
type shardClock struct {
	*testing.T
	store *redistest.Store
	start int64
}

const period = 1000 // ms, of health checks

// run lets 100 ms pass after each empty beat, which the replicas send in turn; those that are cut off report it.
func (k *shardClock) run(d time.Duration, replicas ...string) {
	k.Helper()
	for i := 0; d > 0; i++ {
		k.tick(replicas[i%len(replicas)])
		k.store.Clock.Advance(100 * time.Millisecond)
		d -= 100 * time.Millisecond
	}
}

// tick is an empty beat of a replica; one whose name ends in ! is cut off.
func (k *shardClock) tick(replica string) int64 {
	k.Helper()
	cutOff := 0
	if n := len(replica) - 1; replica[n] == '!' {
		replica, cutOff = replica[:n], period
	}
	r, err := k.store.Eval(context.Background(), "tick", tickKeys(), replica, 2000, 1, period, 0, cutOff).Slice()
	if err != nil {
		k.Fatal(err)
	}
	return r[1].([]any)[0].(int64)
}

// uses adds an attempt with a timeout to the shard.
func (k *shardClock) uses(timeoutMs int) {
	k.Helper()
	if err := k.store.Client.SAdd(context.Background(), key("timeouts"), timeoutMs).Err(); err != nil {
		k.Fatal(err)
	}
}

func (k *shardClock) read() int64 {
	k.Helper()
	r, err := k.store.Eval(context.Background(), "find", []string{key("clock"), key("timers")}, "L", 0, 0, 0).Slice()
	if err != nil {
		k.Fatal(err)
	}
	return r[1].(int64)
}

// ran returns by how much shard time has advanced since the last call.
func (k *shardClock) ran() time.Duration {
	k.Helper()
	now := k.read()
	d := time.Duration(now-k.start) * time.Millisecond
	k.start = now
	return d
}

// Shard time is paused while balancers may keep the clients from all replicas; one replica that clients reach, or may reach, is
// enough for it to run.
func TestTimePausesWhileEveryReplicaIsCutOff(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		k := &shardClock{T: t, store: s}
		k.run(time.Second, "a", "b")
		k.uses(4000)
		k.ran()
		for _, step := range []struct {
			what     string
			wall     time.Duration
			replicas []string
			least    time.Duration
			most     time.Duration
		}{
			{"both receive beats", time.Second, []string{"a", "b"}, time.Second, time.Second},
			{"one drains, the other serves", time.Second, []string{"a!", "b"}, time.Second, time.Second},
			{"both are cut off", time.Second, []string{"a!", "b!"}, 0, 200 * time.Millisecond},
			{"both are still", time.Second, []string{"a!", "b!"}, 0, 100 * time.Millisecond},
			{"one receives beats again", 2 * time.Second, []string{"a!", "b"}, 1500 * time.Millisecond, 2 * time.Second}, // the report expires
			{"it drains", 3 * time.Second, []string{"b!", "a!"}, 0, 400 * time.Millisecond},
			{"the last one is gone", 100 * time.Millisecond, []string{"b"}, 0, 100 * time.Millisecond},
			{"and receives beats again", 2 * time.Second, []string{"b"}, 1500 * time.Millisecond, 2 * time.Second},
			{"it is cut off", time.Second, []string{"b!"}, 0, 100 * time.Millisecond},
		} {
			k.run(step.wall, step.replicas...)
			if got := k.ran(); got < step.least || got > step.most {
				t.Errorf("%s: time ran %v in %v, want %v to %v", step.what, got, step.wall, step.least, step.most)
			}
		}
	})
}

// Replicas that are cut off forever, or repeatedly, hold time for four periods; after that it runs at half speed, also with
// replicas that have just started, until nothing was held for a period.
func TestTimeIsNotHeldForEver(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		k := &shardClock{T: t, store: s}
		k.run(time.Second, "a")
		k.uses(4000)
		k.ran()
		k.run(4*period*time.Millisecond, "a!")
		if got := k.ran(); got > 500*time.Millisecond {
			t.Errorf("time ran %v in the first four periods", got)
		}
		for _, replica := range []string{"a!", "restarted!"} {
			k.run(2*time.Second, replica)
			if got := k.ran(); got < 700*time.Millisecond || got > 1400*time.Millisecond {
				t.Errorf("time ran %v in 2 s after them, want about the half", got)
			}
		}
		k.run(3*time.Second, "restarted") // until the previous one has expired, and a period more
		k.ran()
		k.run(2*time.Second, "restarted!")
		if got := k.ran(); got > 300*time.Millisecond {
			t.Errorf("time ran %v after a period in which nothing was held", got)
		}
	})
}

// Time is held no longer than the longest timeout in use: with short timeouts, or without attempts, nothing may be found late
// because of the balancers.
func TestTimeIsHeldForOneTimeoutAtMost(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		k := &shardClock{T: t, store: s}
		cutOffFor := func(ms int) {
			t.Helper()
			_, err := s.Eval(context.Background(), "tick", tickKeys(), "a", 2000, 1, period, 700, ms).Slice()
			if err != nil {
				t.Fatal(err)
			}
			s.Clock.Advance(100 * time.Millisecond)
		}
		k.tick("a")
		for _, step := range []struct {
			what   string
			before func()
			left   int // ms, of the period
			held   bool
		}{
			{"nothing lives here", func() {}, period, false},
			{"a timeout of 300 ms, and the trouble is over since 200", func() { k.uses(300) }, period - 200, true},
			{"since 300", func() {}, period - 300, false},
			{"and one of 500", func() { k.uses(500) }, period - 499, true},
			{"since 500", func() {}, period - 500, false},
			{"a worker, of 700", func() {
				s.Client.ZAdd(context.Background(), key("workerbeats"), redis.Z{Score: 1e15, Member: "a/b/w"})
			}, period - 699, true},
			{"since 700", func() {}, period - 700, false},
		} {
			step.before()
			s.Clock.Advance(time.Second) // the previous report has expired
			k.tick("a")
			k.ran()
			if cutOffFor(step.left); (k.ran() < 50*time.Millisecond) != step.held {
				t.Errorf("%s: held %v, want %v", step.what, !step.held, step.held)
			}
		}
	})
}
