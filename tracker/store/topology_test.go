package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schedules"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

// Schedules fire once at each due time, webhooks receive every event and the numbers are published again after every failover of the
// Redis that stores them.
func TestDeliveriesSurviveAFailoverOfSentinel(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	w := startWatched(t, 1, 1)
	d := startDriven(t, w.url())
	d.wantProgress(t)
	w.kill(t)
	d.wantProgress(t)
	d.wantAll(t, func(int) *redistest.Server { return w.primary(t) })
}

func TestDeliveriesSurviveAFailoverOfACluster(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 1, 2*time.Second)
	d := startDriven(t, cluster.URL())
	c := &clustered{Cluster: cluster, tr: d.Tracker}
	d.wantProgress(t)
	from, to := c.owner(t, 0, c.Servers[0]), (*redistest.Server)(nil)
	for shard := range d.Store.Shards() {
		if to = c.owner(t, shard, c.Servers[0]); to != from {
			break
		}
	}
	if err := c.MoveSlot(c.slotOf(0), from, to, func(int) {}); err != nil {
		t.Fatal(err)
	}
	d.wantProgress(t)
	c.kill(t, 1)
	d.wantProgress(t)
	d.wantAll(t, func(shard int) *redistest.Server { return c.owner(t, shard, c.Servers[0]) })
}

// driven is a deployment in which schedules fire each second and a webhook receives the events of their tasks.
type driven struct {
	*tracker.Tracker
	mu        sync.Mutex
	delivered map[string]bool // IDs of events
}

const drivenSchedules = 6

func (d *driven) Check(string) error { return nil }

func (d *driven) Post(_ context.Context, _ string, header map[string]string, _ []byte) (int, []byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := header["webhook-id"]
	d.delivered[id[:strings.LastIndexByte(id, '_')]] = true
	return 200, nil, nil
}

func startDriven(t *testing.T, url string) *driven {
	t.Helper()
	d := &driven{delivered: map[string]bool{}}
	d.Tracker = trackertest.Open(t, tracker.Options{RedisURL: url, Shards: 12, Durability: store.Replicated, DurableReplicas: 1,
		RedisTimeout: time.Second, WebhookPoster: d})
	ctx, stop := context.WithCancel(t.Context())
	var sweeping sync.WaitGroup
	for range 2 {
		sweeping.Go(func() { _ = sweep.NewSweeper(d.Tracker.Sweeper, sweep.SweeperOptions{}).Run(ctx) })
	}
	t.Cleanup(func() { stop(); sweeping.Wait() })
	// A request that was not confirmed in time is repeated, and finds its work done.
	there := func(err error, exists model.Code) bool { return err == nil || model.CodeOf(err) == exists }
	trackertest.Eventually(t, "a webhook is made", func() bool {
		_, err := d.Webhooks.Create(ctx, webhooks.NewWebhook{Scope: trackertest.Scope, ID: "w", Settings: webhooks.Settings{
			URL: "https://example.com", Enabled: true, Filter: events.Filter{Types: []string{"task.created"}}}})
		return there(err, webhooks.Exists)
	})
	for i := range drivenSchedules {
		spec := schedules.Spec{Scope: trackertest.Scope, ID: fmt.Sprint("s", i), Cron: "* * * * * *", MaxCatchup: 1000,
			Task: model.NewTask{Queue: "q", Labels: map[string]string{"of": fmt.Sprint("s", i)}}}
		if err := spec.Validate(time.Now()); err != nil {
			t.Fatal(err)
		}
		trackertest.Eventually(t, "a schedule is made", func() bool {
			_, err := d.Schedules.Create(ctx, spec)
			return there(err, schedules.Exists)
		})
	}
	return d
}

// wantProgress waits until every schedule has fired twice more, the webhook has received as many tasks, and the numbers are published.
func (d *driven) wantProgress(t *testing.T) {
	t.Helper()
	fires := func(i int) int64 {
		s, err := d.Schedules.Get(t.Context(), trackertest.Scope, fmt.Sprint("s", i))
		if err != nil {
			return 0
		}
		return s.Fires
	}
	delivered := func() int { d.mu.Lock(); defer d.mu.Unlock(); return len(d.delivered) }
	var before [drivenSchedules]int64
	start := delivered()
	for i := range before {
		trackertest.Eventually(t, "a schedule is read", func() bool { before[i] = fires(i); return before[i] > 0 })
	}
	for i, n := range before {
		trackertest.Eventually(t, "a schedule continues", func() bool { return fires(i) >= n+2 })
	}
	trackertest.Eventually(t, "webhook deliveries continue", func() bool { return delivered() >= start+2*drivenSchedules })
	trackertest.Eventually(t, "the counts are available", func() bool {
		stats, err := d.Stats.Get(t.Context(), trackertest.Scope)
		if err != nil {
			return false
		}
		_, err = d.Stats.System(t.Context())
		return err == nil && stats.Counts != nil
	})
}

// wantAll stops the schedules, and compares what was created and delivered with what was due.
func (d *driven) wantAll(t *testing.T, owner func(shard int) *redistest.Server) {
	t.Helper()
	for i := range drivenSchedules {
		id := fmt.Sprint("s", i)
		trackertest.Eventually(t, "a schedule is paused", func() bool {
			_, err := d.Schedules.Pause(t.Context(), trackertest.Scope, id)
			return err == nil
		})
		var s *schedules.Schedule
		trackertest.Eventually(t, "each fire has its task", func() (settled bool) {
			var err error
			s, err = d.Schedules.Get(t.Context(), trackertest.Scope, id)
			return err == nil && s.Waiting == 0
		})
		due := int64(s.Last.Sub(s.CreatedAt.Truncate(time.Second)) / time.Second)
		if tasks := d.tasksOf(t, id); s.Fires != due || s.Skipped != 0 || tasks != due {
			t.Errorf("%s was due %d times, fired %d times, skipped %d, and has %d tasks", id, due, s.Fires, s.Skipped, tasks)
		}
	}
	for shard := range d.Store.Shards() {
		client := owner(shard).Client()
		entries, err := client.XRange(t.Context(), fmt.Sprintf("lubdub:{%d}:events", shard), "-", "+").Result()
		_ = client.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Values["type"] != "task.created" {
				continue
			}
			id := fmt.Sprintf("evt_%03x_%s", shard, strings.ReplaceAll(e.ID, "-", "_"))
			trackertest.Eventually(t, "the webhook receives "+id, func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.delivered[id] })
		}
	}
}

func (d *driven) tasksOf(t *testing.T, schedule string) (n int64) {
	t.Helper()
	for after := ""; ; {
		var page *model.TaskPage
		trackertest.Eventually(t, "its tasks are read", func() (read bool) {
			var err error
			page, err = d.Tasks.List(t.Context(), model.TaskFilter{Scope: trackertest.Scope, PageSize: 100, After: after,
				Labels: map[string]string{"of": schedule}})
			return err == nil
		})
		n += int64(len(page.Tasks))
		if after = page.Next; after == "" {
			return n
		}
	}
}
