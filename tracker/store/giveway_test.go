package store

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever share of the time beats are under way, bulk calls that never pause get what is left, and a fifth at least; rests that are
// too short for a timer add up.
func TestBulkCallsGetTheTimeThatBeatsLeave(t *testing.T) {
	shares := []struct{ beats, bulk float64 }{{0, 1}, {0.02, 0.98}, {0.25, 0.75}, {0.5, 0.5}, {0.75, 0.25}, {0.9, 0.2}, {1, 0.2}, {2, 0.2}}
	for _, trip := range []time.Duration{50 * time.Microsecond, time.Millisecond, 7 * time.Millisecond} {
		for _, c := range shares {
			synctest.Test(t, func(t *testing.T) {
				var n Node
				began, told, used := time.Now(), time.Now(), time.Duration(0)
				for time.Since(began) < 20*time.Second {
					if rested := n.way.await(t.Context(), time.Now().Add(time.Hour)); rested != 0 && rested < leastRest {
						t.Fatalf("a rest of %v", rested)
					}
					start := time.Now()
					time.Sleep(trip)
					used += trip
					n.Beating(time.Duration(c.beats * float64(time.Since(told))))
					told = time.Now()
					n.way.tripped(start, told)
				}
				if got := float64(used) / float64(time.Since(began)); math.Abs(got-c.bulk) > 0.01 {
					t.Errorf("round trips of %v beside beats that are under way for %v of the time got %.3f of it, not %v", trip, c.beats, got, c.bulk)
				}
			})
		}
	}
}

// Beats that have ended hold up nothing: what they were is forgotten with the window.
func TestBulkCallsDoNotRestForWhatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w giveWay
		trip := func() time.Duration {
			rested := w.await(t.Context(), time.Now().Add(time.Hour))
			start := time.Now()
			time.Sleep(time.Millisecond)
			w.tripped(start, time.Now())
			return rested
		}
		trip()
		w.beats.Add(int64(shareWindow))
		time.Sleep(shareWindow)
		trip()
		if trip() == 0 {
			t.Error("bulk calls did not rest beside beats")
		}
		time.Sleep(shareWindow)
		trip()
		if rested := trip(); rested > 0 {
			t.Errorf("bulk calls rested for %v, and no beat was under way any more", rested)
		}
	})
}

// A round trip that hung, and a node that is given up, hold up what waits for no longer than need be.
func TestARestIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := giveWay{since: time.Now()}
		start := time.Now()
		time.Sleep(10 * time.Second)
		w.beats.Add(int64(time.Minute))
		w.tripped(start, time.Now())
		gone, end := context.WithCancel(t.Context())
		end()
		if rested := w.await(gone, time.Now().Add(time.Hour)); rested > 0 {
			t.Errorf("calls of a node that is not in use any more rested for %v", rested)
		}
		if rested := w.await(t.Context(), time.Now().Add(time.Hour)); rested != longestRest {
			t.Errorf("bulk calls rested for %v after a round trip that hung, not %v", rested, longestRest)
		}
	})
}

// Who has waited for a quarter of his time does not give way any more, however much the lane owes; and nothing is owed after it.
func TestWhatMustBeAnsweredSoonDoesNotRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{opts: Options{Timeout: time.Second}}
		w := giveWay{since: time.Now()}
		owe := func() {
			start := time.Now()
			time.Sleep(shareWindow)
			w.beats.Add(int64(time.Hour))
			w.tripped(start, time.Now())
		}
		quarter := s.Patience() / 4
		for _, c := range []struct{ waited, rest time.Duration }{
			{0, longestRest}, {quarter - 10*time.Millisecond, 10 * time.Millisecond}, {quarter, 0}, {s.Patience(), 0},
		} {
			owe()
			call := &Call{Until: time.Now().Add(s.Patience() - c.waited)}
			if rested := w.await(t.Context(), s.restUntil(call)); rested != c.rest {
				t.Errorf("a call that has waited for %v rested for %v more, not %v", c.waited, rested, c.rest)
			}
			if w.owed != 0 {
				t.Errorf("after that %v is owed", w.owed)
			}
		}
	})
}
