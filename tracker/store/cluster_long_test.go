//go:build long

package store_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// TestLongCluster runs with `make test-cluster`.
func TestLongCluster(t *testing.T) {
	c := startClustered(t)
	c.wantEvenSpread(t)
	c.measure(t, "at rest", nil, func() { c.load.More(t, 2000) })
	for shard := range 16 {
		c.event(t, func(t *testing.T) {
			c.move(t, shard, func(from *redistest.Server) { c.wantOthersServed(t, from, shard) })
		})
	}
	for i := range 6 {
		c.event(t, func(t *testing.T) { c.kill(t, 20+i) })
	}
	for i := range 3 {
		c.event(t, func(t *testing.T) { c.freeze(t, 30+i) })
	}
	for i := range 3 {
		c.event(t, func(t *testing.T) { c.freezeReplica(t, 40+i) })
	}
	c.load.WantSound(t)
	c.hearts.WantAlive(t)
}

// wantEvenSpread checks that the 64 shards are spread evenly: redis-cli's ranges of slots give three primaries 21 or 22 each.
func (c *clustered) wantEvenSpread(t *testing.T) {
	t.Helper()
	counts := map[string]int{}
	for shard := range c.tr.Store.Shards() {
		counts[c.owner(t, shard, c.Servers[0]).Addr]++
	}
	t.Logf("shards on each primary: %v", counts)
	for _, n := range counts {
		if n < 21 || n > 22 {
			t.Errorf("uneven: %v", counts)
		}
	}
}

// freeze freezes the primary of a shard until its replica is promoted, and a while longer. The beats of other shards must keep their
// latency.
func (c *clustered) freeze(t *testing.T, shard int) {
	t.Helper()
	old := c.owner(t, shard, c.Servers[0])
	healthy := func(a *model.Attempt) bool {
		return c.owner(t, c.tr.Store.ShardOf(a.Scope, a.TaskID), c.another(old)) != old
	}
	on := map[string]bool{}
	for _, a := range c.hearts.Tasks {
		on[a.TaskID] = healthy(a)
	}
	others := func(a *model.Attempt) bool { return on[a.TaskID] }
	before := c.measure(t, "the healthy nodes before", others, func() { c.load.More(t, 200); c.hearts.AllAgain(t) })
	if err := old.Freeze(); err != nil {
		t.Fatal(err)
	}
	during := c.measure(t, "the healthy nodes while one is frozen", others, func() { c.replaced(t, shard, old) })
	// If they waited for the frozen node, it would be a second.
	if during.p50 > max(5*before.p50, 50*time.Millisecond) || during.p99 > max(3*before.p99, 100*time.Millisecond) {
		t.Errorf("the healthy nodes' beats: p50 from %v to %v, p99 from %v to %v", before.p50, during.p50, before.p99, during.p99)
	}
	if err := old.Thaw(); err != nil {
		t.Fatal(err)
	}
	if err := old.AwaitSync(); err != nil {
		t.Fatal(err)
	}
}

// percentiles are those of the latency of beats.
type percentiles struct{ p50, p99 time.Duration }

// measure returns the latency of beats while `do` runs.
func (c *clustered) measure(t *testing.T, what string, of func(*model.Attempt) bool, do func()) percentiles {
	t.Helper()
	if of == nil {
		of = func(*model.Attempt) bool { return true }
	}
	from := time.Now()
	do()
	p50, p99, slowest, n, failed := c.hearts.Latency(from, time.Now(), of)
	t.Logf("%s: %d beats in %v, p50 %v, p99 %v, slowest %v, %d failed", what, n, time.Since(from).Round(time.Millisecond),
		p50.Round(10*time.Microsecond), p99.Round(10*time.Microsecond), slowest.Round(10*time.Microsecond), failed)
	return percentiles{p50, p99}
}
