package lua_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
)

func key(name string) string { return "lubdub:{7}:" + name }

// tickKeys are the keys of an empty beat, in order.
func tickKeys() (keys []string) {
	for _, name := range []string{"clock", "outages", "progress", "cancels", "replicas", "timeouts", "timers", "due", "ix",
		"events", "sweepers",
		"ready", "held", "outbox", "fences", "paused", "workers", "workerbeats", "workerdue", "recoveries", "braked",
		"schedules", "scheduledue", "eventmarks", "webhooks", "hookdue"} {
		keys = append(keys, key(name))
	}
	return keys
}

// Shard time follows the wall clock in steps of at most 250 ms; it is paused while no heartbeat is stored.
func TestShardTime(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		ctx := context.Background()
		eval := func(name string, keys []string, args ...any) []any {
			t.Helper()
			r, err := s.Eval(ctx, name, keys, args...).Slice()
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		tick := func() int64 { t.Helper(); return eval("tick", tickKeys(), "rep_1", 2000, 1)[1].([]any)[0].(int64) }
		read := func() int64 {
			t.Helper()
			return eval("find", []string{key("clock"), key("timers")}, "L", 0, 0, 0)[1].(int64)
		}
		start := tick()
		for i, step := range []struct {
			wall    time.Duration
			reads   int64 // what a reader computes before the next beat
			written int64 // shard time since the start after that beat
		}{
			{0, 0, 0}, // frozen
			{100 * time.Millisecond, 100, 100},
			{250 * time.Millisecond, 350, 350},
			{251 * time.Millisecond, 600, 600}, // one millisecond is lost
			{time.Hour, 850, 850},              // an outage costs one step
			{-2 * time.Hour, 850, 850},         // a clock that was set back costs nothing
			{10 * time.Millisecond, 860, 860},  // too soon to be written, and the same for every reader
			{39 * time.Millisecond, 899, 899},
			{-20 * time.Millisecond, 879, 879}, // back within what is not written: shard time follows
			{300 * time.Millisecond, 1100, 1100},
		} {
			s.Clock.Advance(step.wall)
			for range 2 { // reading changes nothing
				if got := read() - start; got != step.reads {
					t.Errorf("step %d: a reader computes %d, want %d", i, got, step.reads)
				}
			}
			if got := tick() - start; got != step.written {
				t.Errorf("step %d: shard time %d, want %d", i, got, step.written)
			}
		}
		outages := s.Client.LRange(ctx, key("outages"), 0, -1).Val()
		if len(outages) != 4 { // three gaps and the sentinel
			t.Errorf("outages: %q", outages)
		}
	})
}

// A replica that has died keeps no turn for as long as the clock was set back.
func TestTurnsAfterTheClockWasPutBack(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		tick := func(replica string) any {
			t.Helper()
			r, err := s.Eval(context.Background(), "tick", tickKeys(), replica, 2000, 1).Slice()
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(r[1].([]any)[2])
		}
		tick("rep_2")
		if got := tick("rep_1"); got != "[rep_1 rep_2]" {
			t.Errorf("turns: %v", got)
		}
		s.Clock.Advance(-10 * time.Minute)
		if got := tick("rep_1"); got != "[rep_1]" {
			t.Errorf("turns after the clock was put back: %v", got)
		}
	})
}
