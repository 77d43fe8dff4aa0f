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
					if rested := n.way.await(t.Context()); rested != 0 && rested < leastRest {
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
			rested := w.await(t.Context())
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
		if rested := w.await(gone); rested > 0 {
			t.Errorf("calls of a node that is not in use any more rested for %v", rested)
		}
		if rested := w.await(t.Context()); rested != longestRest {
			t.Errorf("bulk calls rested for %v after a round trip that hung, not %v", rested, longestRest)
		}
	})
}
