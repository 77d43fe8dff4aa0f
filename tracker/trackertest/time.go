package trackertest

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// AllTimeouts returns those that a heartbeat timeout may be rounded to, two for each shard of two.
func AllTimeouts() (all []time.Duration) {
	for d := tracker.MinTimeout; d <= tracker.MaxTimeout; d = model.RoundTimeout(d + time.Millisecond) {
		all = append(all, d)
		if d == tracker.MaxTimeout {
			break
		}
	}
	return all
}

// Until waits for something that does not depend on the test's clock.
func Until(t testing.TB, good func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !good(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never came to be")
		}
	}
}
