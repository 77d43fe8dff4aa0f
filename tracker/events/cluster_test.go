package events_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// skewedCluster is a Cluster of three primaries whose clocks differ by 5 s, on which tasks are created all the time, with readers that
// must miss nothing. Each replica's clock is 5 s behind its primary's.
type skewedCluster struct {
	*redistest.Cluster
	tr      *tracker.Tracker
	created atomic.Int64
	stop    context.CancelFunc
	working sync.WaitGroup
	readers []*resuming
}

// resuming reads on from a cursor repeatedly, as a client with a bad connection would, and records the events.
type resuming struct {
	name     string
	cursor   string
	received map[string]int // by ID and content
	gaps     int
}

func (r *resuming) receive(e *events.Event) { r.received[contentID(e)]++ }

// contentID returns an event's ID with its content: a lost event may have had the ID of another.
func contentID(e *events.Event) string { return e.ID() + " " + e.Type + " " + e.Subject }

func startSkewed(t *testing.T) *skewedCluster {
	t.Helper()
	c := &skewedCluster{Cluster: startClusterWithClockSkew(t, 3, 2*time.Second, 5*time.Second)}
	c.tr = trackertest.Open(t, tracker.Options{RedisURL: c.URL(), Shards: 12, RedisTimeout: time.Second})
	trackertest.Eventually(t, "all shards have begun", func() bool { return c.tr.Beats.Tick() == nil }) // which writes an event
	ctx, stop := context.WithCancel(t.Context())
	c.stop = stop
	t.Cleanup(c.end)
	c.working.Go(func() {
		for ctx.Err() == nil {
			_ = c.tr.Beats.Tick() // it ignores a node that is down
			<-time.After(50 * time.Millisecond)
		}
	})
	for w := range 4 {
		c.working.Go(func() { c.create(ctx, w) })
	}
	for _, name := range []string{"pages", "stream"} {
		c.readers = append(c.readers, &resuming{name: name, received: map[string]int{}})
	}
	c.working.Go(func() { c.pages(ctx, c.readers[0]) })
	c.working.Go(func() { c.stream(ctx, c.readers[1]) })
	return c
}

func (c *skewedCluster) end() {
	c.stop()
	c.working.Wait()
}

func (c *skewedCluster) create(ctx context.Context, worker int) {
	for i := 0; ctx.Err() == nil; i++ {
		n := model.NewTask{Scope: trackertest.Scope, TaskID: fmt.Sprintf("t%d-%d", worker, i), Queue: "q", Type: "x"}
		if err := n.Validate(time.Now()); err != nil {
			panic(err)
		}
		if _, err := c.tr.Tasks.Create(ctx, n); err == nil {
			c.created.Add(1)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// pages reads page after page, each with the cursor of the previous one.
func (c *skewedCluster) pages(ctx context.Context, r *resuming) {
	for ctx.Err() == nil {
		p, err := c.tr.Events.List(ctx, events.Query{After: r.cursor, Size: 37})
		if err != nil {
			<-time.After(20 * time.Millisecond)
			continue
		}
		for _, e := range p.Events {
			r.receive(e)
		}
		if r.cursor = p.Next; p.Gap != nil {
			r.gaps++
		}
		if len(p.Events) == 0 {
			<-time.After(5 * time.Millisecond)
		}
	}
}

// stream receives some events, disconnects, and continues from the cursor of the last one.
func (c *skewedCluster) stream(ctx context.Context, r *resuming) {
	if r.cursor == "" {
		r.cursor = "2020-01-01T00:00:00Z"
	}
	for ctx.Err() == nil {
		l, err := c.tr.Events.Follow(ctx, events.Filter{}, "after", r.cursor)
		if err != nil {
			<-time.After(20 * time.Millisecond)
			continue
		}
		for received := 0; received < 200 && ctx.Err() == nil; {
			messages, err := l.Next(ctx)
			for _, g := range messages {
				if r.cursor = g.Cursor; g.Event == nil {
					r.gaps++
					continue
				}
				r.receive(g.Event)
				received++
			}
			if errors.Is(err, events.ErrLagged) {
				break
			}
			if len(messages) == 0 {
				select {
				case <-l.Woken():
				case <-time.After(20 * time.Millisecond):
				}
			}
		}
		l.Close()
	}
}

// more waits until n more tasks are created.
func (c *skewedCluster) more(t *testing.T, n int64) {
	t.Helper()
	from := c.created.Load()
	trackertest.Eventually(t, "tasks are created", func() bool { return c.created.Load() >= from+n })
}

func (c *skewedCluster) owner(t *testing.T, shard int, seenBy *redistest.Server) *redistest.Server {
	t.Helper()
	s, err := c.Owner(c.Slot(strconv.Itoa(shard)), seenBy)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// move moves a shard to another primary.
func (c *skewedCluster) move(t *testing.T, shard int) {
	t.Helper()
	from := c.owner(t, shard, c.Servers[0])
	to := from
	for other := range c.tr.Store.Shards() {
		if to = c.owner(t, other, c.Servers[0]); to != from {
			break
		}
	}
	if err := c.MoveSlot(c.Slot(strconv.Itoa(shard)), from, to, func(int) {}); err != nil {
		t.Fatal(err)
	}
	c.more(t, 200)
}

// failOver kills the primary of a shard whose replica has not received the last writes: they are lost, and the clock goes back.
func (c *skewedCluster) failOver(t *testing.T, shard int) {
	t.Helper()
	old := c.owner(t, shard, c.Servers[0])
	replica, err := c.Replica(old)
	if err != nil {
		t.Fatal(err)
	}
	if err := replica.Freeze(); err != nil {
		t.Fatal(err)
	}
	primary := old.Client()
	err = primary.Do(t.Context(), "client", "kill", "type", "replica").Err() // or it would still find them on its connection
	_ = primary.Close()
	if err != nil {
		t.Fatal(err)
	}
	c.more(t, 300) // they are acknowledged, and read
	old.Kill()
	if err := replica.Thaw(); err != nil {
		t.Fatal(err)
	}
	other := c.Servers[0]
	if other == old {
		other = c.Servers[1]
	}
	trackertest.Eventually(t, "the replica takes the primary's place", func() bool { return c.owner(t, shard, other) != old })
	c.more(t, 200)
	if err := old.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := old.AwaitSync(); err != nil {
		t.Fatal(err)
	}
	c.more(t, 200)
}

// stored returns all events in the streams, read by XRANGE from each shard's primary, in the format of resuming.
func (c *skewedCluster) stored(t *testing.T) (all []string) {
	t.Helper()
	for shard := range c.tr.Store.Shards() {
		client := c.owner(t, shard, c.Servers[0]).Client()
		entries, err := client.XRange(t.Context(), stream(shard), "-", "+").Result()
		_ = client.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			ms, seq := uint64(0), uint64(0)
			if _, err := fmt.Sscanf(e.ID, "%d-%d", &ms, &seq); err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprintf("evt_%03x_%d_%d %v %v", shard, ms, seq, e.Values["type"], e.Values["subject"]))
		}
	}
	return all
}

// wantAll compares what readers received with what the streams contain.
func (c *skewedCluster) wantAll(t *testing.T) {
	t.Helper()
	c.end()
	all := c.stored(t)
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Second) // to the end of the streams
	defer stop()
	var last sync.WaitGroup
	last.Go(func() { c.pages(ctx, c.readers[0]) })
	last.Go(func() { c.stream(ctx, c.readers[1]) })
	last.Wait()
	for _, r := range c.readers {
		missed, twice := 0, 0
		for _, id := range all {
			switch n := r.received[id]; {
			case n == 0:
				missed++
				if missed < 5 {
					t.Errorf("%s: did not receive %s", r.name, id)
				}
			case n > 1:
				twice++
			}
		}
		if missed > 0 || r.gaps > 0 {
			t.Errorf("%s: %d of %d events missed, %d gaps reported", r.name, missed, len(all), r.gaps)
		}
		lost := len(r.received) - len(all)
		if lost == 0 {
			t.Errorf("%s: the store has lost no delivered event: it should have", r.name)
		}
		t.Logf("%s: %d events, %d delivered more than once, %d that the store has lost since", r.name, len(all), twice, lost)
	}
}

// Readers that continue from cursors miss nothing on nodes whose clocks differ by 5 s, while a shard moves to another node, and when a
// node fails with unreplicated writes and is replaced by one whose clock is behind.
func TestNothingIsMissedOnAClusterWithSkewedClocks(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	c := startSkewed(t)
	c.more(t, 200)
	c.move(t, 3)
	c.failOver(t, 5)
	c.wantAll(t)
}
