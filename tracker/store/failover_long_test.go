//go:build long

package store_test

import (
	"testing"
)

// TestLongFailover runs with `make test-failover`: kills, freezes and hand-overs of a primary with two replicas and three Sentinels.
func TestLongFailover(t *testing.T) {
	w := startWatched(t, 2, 3)
	var events []failover
	for range 10 {
		events = append(events, failover{"kill", w.kill}, failover{"hand-over", w.forceFailover})
	}
	for range 3 {
		events = append(events, failover{"freeze", w.freeze})
	}
	failovers(t, w, 2, events...)
}

// freeze freezes the primary until another server is promoted, and then lets it continue, unaware of that.
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
