package lua_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
)

// While heartbeats of a shard are refused its time is held, for no longer than that; the lost time is one outage, reported when it
// is over, and the time that readers compute never falls.
func TestHold(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		ctx := context.Background()
		eval := func(name string, keys []string, args ...any) any {
			t.Helper()
			r, err := s.Eval(ctx, name, keys, args...).Result()
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		tick := func() int64 {
			t.Helper()
			return eval("tick", tickKeys(), "rep_1", 2000, 1).([]any)[1].([]any)[0].(int64)
		}
		read := func() int64 {
			t.Helper()
			return eval("find", []string{key("clock"), key("timers")}, "L", 0, 0, 0).([]any)[1].(int64)
		}
		hold := func(still, half int) {
			t.Helper()
			eval("slowclock", []string{key("clock"), key("outages")}, still, half)
		}
		start := tick()
		for i, step := range []struct {
			still, half int // a hold, before everything else
			wall        time.Duration
			time        int64 // shard time since the start after that
		}{
			{0, 0, 100 * time.Millisecond, 100},
			{200, 0, 100 * time.Millisecond, 100},   // it is paused
			{200, 0, 100 * time.Millisecond, 100},   // still
			{0, 0, 200 * time.Millisecond, 200},     // and runs from halfway on
			{0, 200, 100 * time.Millisecond, 250},   // half speed
			{0, 200, 31 * time.Millisecond, 265},    // still, too soon to be written
			{0, 0, 100 * time.Millisecond, 315},     // still
			{0, 0, 100 * time.Millisecond, 381},     // and runs again after 69 ms
			{200, 200, 100 * time.Millisecond, 381}, // both: it is paused
			{0, 0, 10 * time.Minute, 531},           // a gap in the middle of a hold, which had 100 ms left
			{0, 0, -20 * time.Minute, 531},
			{200, 0, -20 * time.Minute, 531},    // a hold that was set before the clock was set back
			{0, 0, 100 * time.Millisecond, 631}, // holds nothing
		} {
			before := read()
			if step.still+step.half > 0 {
				hold(step.still, step.half)
				if got := read(); got != before {
					t.Errorf("step %d: the hold moved time by %d", i, got-before)
				}
			}
			s.Clock.Advance(step.wall)
			if got := read() - start; got != step.time {
				t.Errorf("step %d: a reader computes %d, want %d", i, got, step.time)
			}
			if read() < before {
				t.Errorf("step %d: time fell from %d to %d", i, before, read())
			}
			if got := tick() - start; got != step.time {
				t.Errorf("step %d: shard time %d, want %d", i, got, step.time)
			}
		}
		var credited []string
		for _, e := range s.Client.XRange(ctx, key("events"), "-", "+").Val() {
			if e.Values["type"] == "system.outage_credited" {
				credited = append(credited, e.Values["data"].(string))
			}
		}
		// Wall time and shard time start equal. The hold's part of the gap is the hold's outage.
		var want []string
		for _, o := range []struct{ from, lost int64 }{{100, 300}, {500, 150}, {831, 200}, {931, 599_750}} {
			want = append(want, fmt.Sprintf(`{"shard":7,"fromMs":%d,"outageCreditMs":%d}`, start+o.from, o.lost))
		}
		if !slices.Equal(credited, want) {
			t.Errorf("reported:\n%q, want\n%q", credited, want)
		}
	})
}
