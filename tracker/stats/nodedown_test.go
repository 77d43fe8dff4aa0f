package stats_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A node of a Cluster that does not respond is named, and the data of the others is shown; without the data that all replicas
// store in one place the request fails.
func TestANodeThatDoesNotAnswerIsNamed(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0, time.Hour)
	tr := trackertest.Open(t, tracker.Options{RedisURL: c.URL(), RedisTimeout: 2 * time.Second, Shards: 12})
	first, err := c.Owner(c.Slot("0"), c.Servers[0])
	if err != nil {
		t.Fatal(err)
	}
	other := c.Servers[0]
	if other == first {
		other = c.Servers[1]
	}
	trackertest.Eventually(t, "all is shown", func() bool {
		is, err := tr.Stats.System(t.Context())
		return err == nil && len(is.Shards) == 12 && len(is.Nodes) == 3
	})
	if err := other.Freeze(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Thaw() }()
	trackertest.Eventually(t, "the frozen node is named", func() bool {
		_ = tr.Beats.Tick() // as replicas do all the time, which shows that it does not respond
		is, err := tr.Stats.System(t.Context())
		if err != nil || len(is.Shards) == 0 || len(is.Shards) == 12 {
			return false
		}
		silent := 0
		for _, n := range is.Nodes {
			if n.Err != nil {
				silent++
			}
		}
		return silent == 1 && len(is.Nodes) == 3
	})
	if err := first.Freeze(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Thaw() }()
	trackertest.Eventually(t, "nothing is known", func() bool {
		_, err := tr.Stats.System(t.Context())
		code := model.CodeOf(err)
		return err != nil && (code == model.Unavailable || code == model.Overloaded)
	})
}
