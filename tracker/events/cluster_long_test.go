//go:build long

package events_test

import "testing"

// TestLongNothingIsMissed repeats the test with every shard.
func TestLongNothingIsMissed(t *testing.T) {
	c := startSkewed(t)
	for round := range 6 {
		c.move(t, round)
		c.failOver(t, (5*round)%c.tr.Store.Shards())
	}
	c.wantAll(t)
}
