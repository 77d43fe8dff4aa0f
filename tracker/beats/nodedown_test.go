package beats_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// While a node of a Cluster is silent, beats on other nodes are stored, with details and without, whatever else is sent with them.
func TestASilentNodeDelaysOnlyItsOwnBeats(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0, time.Hour)
	tr := trackertest.Open(t, tracker.Options{RedisURL: c.URL(), RedisTimeout: 2 * time.Second, Shards: 12})
	silent, err := c.Owner(c.Slot("0"), c.Servers[0])
	if err != nil {
		t.Fatal(err)
	}
	var many []*beats.Beat
	var there []bool // on the silent node
	for i := range 12 {
		a := trackertest.NewTask(t, tr, fmt.Sprint("t", i))
		tr.Beats.Beat(&beats.Beat{Attempt: a}) // which starts it
		owner, err := c.Owner(c.Slot(strconv.Itoa(a.Shard)), c.Servers[0])
		if err != nil {
			t.Fatal(err)
		}
		many = append(many, &beats.Beat{Attempt: a}, &beats.Beat{Attempt: a, Details: "1"})
		there = append(there, owner == silent, owner == silent)
	}
	if err := silent.Freeze(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Thaw() }()
	tr.Beats.BeatMany(many)
	for i, b := range many {
		if (b.Err != nil) != there[i] {
			t.Errorf("beat %d, details %q, on the silent node %v: %v", i, b.Details, there[i], b.Err)
		}
	}
}
