package trackertest

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// AllTimeouts returns those that a heartbeat timeout may be rounded to, two for each shard of two.
func AllTimeouts() (all []time.Duration) {
	for d := model.MinTimeout; d <= model.MaxTimeout; d = model.RoundTimeout(d + time.Millisecond) {
		all = append(all, d)
		if d == model.MaxTimeout {
			break
		}
	}
	return all
}

// Patience is more than anything that tests wait for takes, on any machine: a Sentinel that was held up does nothing for 30 s. It is
// only waited for when something is broken.
const Patience = 2 * time.Minute

// Until waits for something that does not depend on the test's clock.
func Until(t testing.TB, good func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !good(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it did not come to be within %v", Patience)
		}
	}
}
