//go:build long

package webhooks_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

// usedMemory returns the memory that Redis reports as used, in bytes.
func usedMemory(t testing.TB, c *redis.Client) int64 {
	t.Helper()
	for line := range strings.Lines(c.Info(t.Context(), "memory").Val()) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
			n, _ := strconv.ParseInt(text, 10, 64)
			return n
		}
	}
	t.Fatal("Redis does not report its memory")
	return 0
}

// One tenant has 100 webhooks at an address where nothing responds, creates 4,000 tasks and cancels them. Redis must not reach its
// maxmemory, and another tenant's webhook receives everything.
func TestLongWebhooksAtADeadAddressDoNotFillRedis(t *testing.T) {
	const hooks, tasks, others = 100, 4000, 200
	server := redistest.StartServer(t)
	client := server.Client()
	t.Cleanup(func() { _ = client.Close() })
	out := &receiver{}
	out.answers(func(url string, _ post) (int, error) {
		if strings.HasSuffix(url, "/well") {
			return 200, nil
		}
		<-time.After(time.Second) // as long as it takes to notice that nothing responds
		return 0, errors.New("no route to host")
	})
	tr := trackertest.Open(t, tracker.Options{RedisURL: server.URL(), Shards: 4, RedisTimeout: 10 * time.Second, WebhookPoster: out})
	other := model.Scope{Tenant: "other", Workspace: "prod"}
	hook := func(scope model.Scope, id, url string) {
		if _, err := tr.Webhooks.Create(t.Context(), webhooks.NewWebhook{Scope: scope, ID: id, Settings: settings(url, "task.*")}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range hooks {
		hook(trackertest.Scope, fmt.Sprint("w", i), "dead")
	}
	hook(other, "w", "well")
	before := usedMemory(t, client)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = sweep.NewSweeper(tr.Sweeper, sweep.SweeperOptions{ID: "swp_attack"}).Run(ctx)
	}()
	task := func(scope model.Scope, id string) {
		n := model.NewTask{Scope: scope, TaskID: id, Queue: "default", Type: "x"}
		if err := n.Validate(time.Now()); err != nil {
			t.Error(err)
		}
		if _, err := tr.Tasks.Create(t.Context(), n); err != nil {
			t.Errorf("a creation of %s was refused: %v", scope, err)
		}
	}
	side := func(act func(i int)) {
		var running sync.WaitGroup
		for from := range 8 {
			running.Go(func() {
				for i := from; i < tasks; i += 8 {
					act(i)
				}
			})
		}
		running.Wait()
	}
	side(func(i int) {
		task(trackertest.Scope, fmt.Sprint("t", i))
		if i%(tasks/others) == 0 {
			task(other, fmt.Sprint("o", i))
		}
	})
	side(func(i int) {
		if _, err := tr.Tasks.Cancel(t.Context(), trackertest.Scope, fmt.Sprint("t", i), model.CancelRequest{}); err != nil {
			t.Error(err)
		}
	})
	most := int64(0)
	defer func() {
		t.Logf("Redis used %.1f MB before and %.1f MB at most", float64(before)/1e6, float64(most)/1e6)
	}()
	trackertest.Eventually(t, "all events are taken", func() bool {
		most = max(most, usedMemory(t, client))
		for shard := range tr.Store.Shards() {
			taken := client.HGet(t.Context(), fmt.Sprintf("lubdub:{%d}:eventmarks", shard), "taken").Val()
			last := client.XRevRangeN(t.Context(), fmt.Sprintf("lubdub:{%d}:events", shard), "+", "-", 1).Val()
			if len(last) == 0 || taken != last[0].ID {
				return false
			}
		}
		return true
	})
	stop()
	<-ended
	most = max(most, usedMemory(t, client))
	got := map[string]bool{}
	for _, p := range out.take() {
		if strings.HasSuffix(p.url, "/well") {
			got[p.message.Data.Subject+" "+p.message.Type] = true
		}
	}
	if len(got) != others {
		t.Errorf("the other tenant received %d messages, want %d", len(got), others)
	}
	if most-before > 100e6 {
		t.Errorf("one tenant's webhooks took %.1f MB", float64(most-before)/1e6)
	}
}
