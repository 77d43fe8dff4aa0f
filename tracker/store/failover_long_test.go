//go:build long

package store_test

import (
	"testing"
)

// TestLongFailover is `make test-failover`: kills, freezes and hand-overs of a primary with two replicas and three
// Sentinels.
func TestLongFailover(t *testing.T) {
	w := startWatched(t, 2, 3)
	var events []failover
	for range 10 {
		events = append(events, failover{"kill", w.kill}, failover{"hand-over", w.handOver})
	}
	for range 3 {
		events = append(events, failover{"freeze", w.freeze})
	}
	failovers(t, w, 2, events...)
}

// freeze freezes the primary until another one has taken its place, and lets it go on, as one that does not know.
func (w *watched) freeze(t *testing.T) {
	t.Helper()
	old := w.primary(t)
	if err := old.Freeze(); err != nil {
		t.Fatal(err)
	}
	w.promoted(t, old)
	if err := old.Thaw(); err != nil {
		t.Fatal(err)
	}
	if err := old.AwaitSync(); err != nil {
		t.Fatal(err)
	}
}
