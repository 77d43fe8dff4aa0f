package store_test

import (
	"crypto/rand"
	"strconv"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// clustered is a Cluster under load.
type clustered struct {
	*redistest.Cluster
	tr     *tracker.Tracker
	hearts *Hearts
	load   *Load
}

const nodeTimeout = 2 * time.Second

func startClustered(t *testing.T) *clustered {
	t.Helper()
	c := &clustered{Cluster: redistest.StartCluster(t, 3, 1, nodeTimeout)}
	c.tr = trackertest.Open(t, tracker.Options{RedisURL: c.URL(), Durability: store.Replicated, RedisTimeout: time.Second})
	if c.tr.Store.Shards() != 64 {
		t.Errorf("%d shards on Cluster", c.tr.Store.Shards())
	}
	life(t, trackertest.Open(t, tracker.Options{RedisURL: c.URL()}))
	c.hearts = startHearts(t, c.tr, 192)
	c.load = startLoad(t, c.tr, 8)
	return c
}

func (c *clustered) event(t *testing.T, event func(*testing.T)) {
	t.Helper()
	c.load.More(t, 50)
	event(t)
	c.hearts.AllAgain(t)
	c.load.More(t, 50)
	c.load.Check(t)
}

func (c *clustered) slotOf(shard int) int { return c.Slot(strconv.Itoa(shard)) }

// owner returns the server that has a shard, as seen by a server that the test does not disturb.
func (c *clustered) owner(t *testing.T, shard int, seenBy *redistest.Server) *redistest.Server {
	t.Helper()
	s, err := c.Owner(c.slotOf(shard), seenBy)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// another returns another server than this one.
func (c *clustered) another(s *redistest.Server) *redistest.Server {
	if c.Servers[0] != s {
		return c.Servers[0]
	}
	return c.Servers[1]
}

// move moves a shard to another primary. It calls `meanwhile` twice: when each has a part of it, and when all of it has moved but the
// other is not its primary yet.
func (c *clustered) move(t *testing.T, shard int, meanwhile func(from *redistest.Server)) {
	t.Helper()
	from := c.owner(t, shard, c.Servers[0])
	var to *redistest.Server
	for other := range c.tr.Store.Shards() {
		if to = c.owner(t, other, c.Servers[0]); to != from {
			break
		}
	}
	called := 0
	if err := c.MoveSlot(c.slotOf(shard), from, to, func(left int) {
		if called == 0 || left == 0 {
			called++
			meanwhile(from)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if called < 2 {
		t.Errorf("shard %d was too small to be split", shard)
	}
}

// wantOthersServed checks that, while a shard moves, the other shards of its node create, confirm and find the dead.
func (c *clustered) wantOthersServed(t *testing.T, on *redistest.Server, moving int) {
	t.Helper()
	n := model.NewTask{Scope: trackertest.Scope, HeartbeatInterval: 500 * time.Millisecond, HeartbeatTimeout: time.Second}
	for shard := moving; shard == moving || c.owner(t, shard, c.Servers[0]) != on; shard = c.tr.Store.ShardOf(trackertest.Scope, n.TaskID) {
		n.TaskID = "zombie-" + rand.Text()
	}
	n.IdempotencyKey, n.IdempotencyHash = n.TaskID, n.TaskID // the same shard
	if err := n.Validate(time.Now()); err != nil {
		t.Fatal(err)
	}
	var created *model.Created
	trackertest.Eventually(t, "a creation on a node that a shard is leaving", func() (ok bool) {
		var err error
		created, err = c.tr.Tasks.Create(t.Context(), n)
		return err == nil
	})
	b := &beats.Beat{Attempt: created.Envelope.Attempt}
	trackertest.Eventually(t, "a beat on a node that a shard is leaving", func() bool { c.tr.Beats.Beat(b); return b.Err == nil })
	trackertest.Eventually(t, "a verdict on a node that a shard is leaving", func() bool {
		task, err := c.tr.Tasks.Get(t.Context(), trackertest.Scope, n.TaskID)
		return err == nil && task.Reason == model.HeartbeatTimeout
	})
}

// kill kills the primary of a shard, and restarts it when its replica is promoted.
func (c *clustered) kill(t *testing.T, shard int) {
	t.Helper()
	old := c.owner(t, shard, c.Servers[0])
	old.Kill()
	c.replaced(t, shard, old)
	if err := old.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := old.AwaitSync(); err != nil {
		t.Fatal(err)
	}
}

func (c *clustered) replaced(t *testing.T, shard int, old *redistest.Server) {
	t.Helper()
	trackertest.Eventually(t, "the replica takes the primary's place", func() bool {
		return c.owner(t, shard, c.another(old)) != old
	})
}

// wantConfirmedUnless checks that writes of a primary with a silent replica are not confirmed, and those of others are.
func (c *clustered) wantConfirmedUnless(t *testing.T, silent *redistest.Server) {
	t.Helper()
	for range 12 {
		n := model.NewTask{Scope: trackertest.Scope, TaskID: "late-" + rand.Text()}
		if err := n.Validate(time.Now()); err != nil {
			t.Fatal(err)
		}
		create := func() error { _, err := c.tr.Tasks.Create(t.Context(), n); return err }
		if c.owner(t, c.tr.Store.ShardOf(trackertest.Scope, n.TaskID), c.Servers[0]) != silent {
			n.IdempotencyKey, n.IdempotencyHash = n.TaskID, n.TaskID
			trackertest.Eventually(t, "a creation on another primary", func() bool { return create() == nil })
			continue
		}
		var err error
		trackertest.Eventually(t, "a creation is begun", func() bool { // a busy host may refuse it
			err = create()
			return model.CodeOf(err) != model.Overloaded
		})
		wantNotConfirmed(t, "a creation on the primary of the silent replica", err)
	}
}

// freezeReplica checks that completions on its primary are not confirmed, and those on other primaries are.
func (c *clustered) freezeReplica(t *testing.T, shard int) {
	t.Helper()
	primary := c.owner(t, shard, c.Servers[0])
	replica, err := c.Replica(primary)
	if err != nil {
		t.Fatal(err)
	}
	if err := replica.Freeze(); err != nil {
		t.Fatal(err)
	}
	c.wantConfirmedUnless(t, primary)
	if err := replica.Thaw(); err != nil {
		t.Fatal(err)
	}
	if err := replica.AwaitSync(); err != nil {
		t.Fatal(err)
	}
}

func TestCluster(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	c := startClustered(t)
	c.event(t, func(t *testing.T) {
		shard := c.tr.Store.MarkOf(5)
		c.move(t, shard, func(from *redistest.Server) { c.wantOthersServed(t, from, shard) })
	})
	c.event(t, func(t *testing.T) { c.freezeReplica(t, 6) })
	c.event(t, func(t *testing.T) { c.kill(t, 7) })
	c.load.WantSound(t)
	c.hearts.WantAlive(t)

	found := trackertest.Open(t, tracker.Options{RedisURL: c.Servers[1].URL()}) // the plain URL of a node is enough
	running := model.TaskFilter{Scope: trackertest.Scope, States: []model.State{model.Running}}
	if page, err := found.Tasks.List(t.Context(), running); err != nil ||
		page.Total != 192 {
		t.Fatalf("%+v %v", page, err)
	}
}
