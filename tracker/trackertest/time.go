package trackertest

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// AllTimeouts returns all values to which a heartbeat timeout may be rounded.
func AllTimeouts() (all []time.Duration) {
	for d := model.MinTimeout; d <= model.MaxTimeout; d = model.RoundTimeout(d + time.Millisecond) {
		all = append(all, d)
		if d == model.MaxTimeout {
			break
		}
	}
	return all
}

// Patience is longer than anything that tests wait for, on any host: a Sentinel that was delayed does nothing for 30 s. It passes only
// after a failure.
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

func Eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !is(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", Patience, what)
		}
	}
}
