package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

// mailbox is the receiver of webhooks in tests: it stores the subjects of their messages.
type mailbox struct {
	mu       sync.Mutex
	status   int
	received []string
}

func (*mailbox) Check(string) error { return nil }

func (m *mailbox) Post(_ context.Context, _ string, header map[string]string, _ []byte) (int, []byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.received = append(m.received, header["webhook-id"])
	return m.status, nil, nil
}

// take returns how many different messages came since the last call.
func (m *mailbox) take() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.Sort(m.received)
	n := len(slices.Compact(m.received))
	m.received = nil
	return n
}

func (m *mailbox) answer(status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status = status
}

// Whatever is lost of a webhook, in the end its list, its look and its deliveries are consistent, and its waiting messages arrive.
// Before a test three deliveries have arrived, two are dead, and four wait for their next try.
func TestReconcilerRepairsWebhooks(t *testing.T) {
	t.Parallel()
	const name = "acme/prod/w"
	type fixture struct {
		*trackertest.Fleet
		*mailbox
		key func(string) string
	}
	lost := func(set string, arrives int, want ...string) func(g fixture) {
		return func(g fixture) {
			if n := g.Store.Client.Del(g.Ctx, g.key(set+":"+name)).Val(); n != 1 {
				g.Fatalf("%s is not there", set)
			}
			g.WantRepairs(want...)
			g.WantRepairs()
			g.arrive(t, g.Fleet, arrives)
		}
	}
	for what, test := range map[string]func(g fixture){
		"entries without a record": func(g fixture) {
			g.Plant(g.Key("ghost", "webhooks"), "acme/prod/ghost")
			g.Plant(g.Key("ghost", "hookdue"), "acme/prod/ghost")
			g.Plant(g.Key("ghost", "hookqueue:acme/prod/ghost"), "0000000000001")
			g.WantRepairs("stray_webhook", "stray_look", "stray_deliveries")
		},
		"a lost record": func(g fixture) {
			g.Store.Client.Del(g.Ctx, g.key("webhook:"+name))
			g.WantRepairs("stray_webhook", "stray_look", "stray_deliveries")
			if left := g.Store.Client.Keys(g.Ctx, "*hook*:"+name).Val(); len(left) > 0 {
				g.Errorf("%v are left", left)
			}
		},
		"a webhook that no list has": func(g fixture) {
			g.Remove(g.key("webhooks"), name)
			g.WantRepairs("missing_webhook")
			g.arrive(t, g.Fleet, 4)
		},
		"a webhook with nothing to send that no list has": func(g fixture) {
			g.arrive(t, g.Fleet, 4)
			g.Remove(g.key("webhooks"), name)
			g.WantRepairs("missing_webhook")
		},
		"a webhook that is looked at no more": func(g fixture) {
			g.Remove(g.key("hookdue"), name)
			g.WantRepairs("missing_look")
			g.arrive(t, g.Fleet, 4)
		},
		"one that is looked at too late": func(g fixture) {
			g.Remove(g.key("hookdue"), name)
			g.Plant(g.key("hookdue"), name)
			g.WantRepairs("missing_look")
			g.arrive(t, g.Fleet, 4)
		},
		"lost queue":        lost("hookqueue", 4, "missing_delivery"),
		"lost list":         lost("hookkept", 4, "missing_delivery"),
		"lost delivered":    lost("hookdelivered", 4, "missing_delivery"),
		"lost dead":         lost("hookdead", 4, "missing_delivery"),
		"lost messages":     lost("hookbodies", 0, "stray_delivery"),
		"lost words":        lost("hookabout", 0, "stray_delivery"),
		"what was put last": lost("hookseen", 4),
		"lost marks": func(g fixture) {
			for shard := range g.Tracker.Store.Shards() {
				g.Store.Client.HDel(g.Ctx, fmt.Sprintf("lubdub:{%d}:eventmarks", shard), "taken", "mark")
			}
			g.MustCreate()
			g.Store.Clock.Advance(5 * time.Second)                               // no replica has the shards then
			again := sweep.NewSweeper(g.Tracker.Sweeper, sweep.SweeperOptions{}) // a process counts webhooks when it starts, and each minute
			g.answer(200)
			if err := again.Deliver(g.Ctx); err != nil {
				g.Fatal(err)
			}
			if g.take() == 0 {
				g.Error("events are not delivered any more")
			}
			if n := g.Events("")["system.repaired"]; n != g.Tracker.Store.Shards() {
				g.Errorf("%d events about %d repairs", n, g.Tracker.Store.Shards())
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var boxes []*mailbox
			trackertest.Contract(t, func(h *trackertest.Harness) {
				mu.Lock()
				m := boxes[len(boxes)-1]
				mu.Unlock()
				c := trackertest.NewFleet(h)
				on := webhooks.Settings{URL: "https://example.com", Enabled: true, Filter: events.Filter{Types: []string{"task.created"}}}
				if _, err := h.Webhooks.Create(h.Ctx, webhooks.NewWebhook{Scope: trackertest.Scope, ID: "w", Settings: on}); err != nil {
					h.Fatal(err)
				}
				for _, part := range []struct{ status, tasks int }{{200, 3}, {410, 2}, {500, 4}} {
					if part.status == 500 { // it was switched off
						if _, err := h.Webhooks.Update(h.Ctx, trackertest.Scope, "w", on, false); err != nil {
							h.Fatal(err)
						}
						h.Store.Clock.Advance(time.Minute)
					}
					for range part.tasks {
						h.MustCreate()
					}
					m.answer(part.status)
					if err := h.Sweeper.Deliver(h.Ctx); err != nil {
						h.Fatal(err)
					}
				}
				m.take()
				h.WantRepairs()
				test(fixture{c, m, func(set string) string { return c.Key("w", set) }})
			}, func(o *tracker.Options) {
				mu.Lock()
				defer mu.Unlock()
				boxes = append(boxes, &mailbox{})
				o.WebhookPoster = boxes[len(boxes)-1]
			})
		})
	}
}

// arrive delivers the waiting messages to a receiver that works again, and checks how many come.
func (m *mailbox) arrive(t *testing.T, c *trackertest.Fleet, want int) {
	t.Helper()
	c.Store.Clock.Advance(time.Hour)
	m.answer(200)
	if err := c.Sweeper.Deliver(c.Ctx); err != nil {
		t.Fatal(err)
	}
	if got := m.take(); got != want {
		t.Errorf("%d messages arrive, want %d", got, want)
	}
	c.WantRepairs()
}
