package tracker_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

// outside is the target of tests' webhooks: it counts what each URL was sent, and responds as the URL states.
type outside struct {
	mu   sync.Mutex
	sent map[string]map[string]int // by URL and webhook-id
}

func (*outside) Check(string) error { return nil }

func (o *outside) Post(_ context.Context, url string, header map[string]string, _ []byte) (int, []byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sent == nil {
		o.sent = map[string]map[string]int{}
	}
	if o.sent[url] == nil {
		o.sent[url] = map[string]int{}
	}
	o.sent[url][header["webhook-id"]]++
	if url == "https://gone" {
		return 410, bytes.Repeat([]byte{1}, 1024), nil // six bytes of JSON each
	}
	return 200, bytes.Repeat([]byte{1}, 1024), nil
}

// messages returns how many different messages a URL was sent.
func (o *outside) messages(url string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.sent[url])
}

// hook creates a webhook, unless a call with a lost response has already created it.
func (c *story) hook(id, url string, filter events.Filter) {
	c.Helper()
	c.sure("create webhook "+id, func() error {
		_, err := c.Webhooks.Create(c.Ctx, webhooks.NewWebhook{Scope: trackertest.Scope, ID: id,
			Settings: webhooks.Settings{URL: url, Enabled: true, Filter: filter}})
		if model.CodeOf(err) == webhooks.Exists {
			return nil
		}
		return err
	})
}

// delivers runs a courier that continues after an error.
func (c *story) delivers() {
	c.Helper()
	for range 3 {
		c.sure("deliver", func() error { return c.Sweeper.Deliver(c.Ctx) })
	}
}

// webhooks sends events of tasks to webhooks; one is gone and is disabled, one is deleted.
func (c *story) webhooks() {
	created := events.Filter{Types: []string{"task.created"}, Queue: "hooked"}
	c.hook("received", "https://received", created)
	c.hook("gone", "https://gone", events.Filter{Types: []string{"task.*"}, Queue: "hooked"})
	c.hook("leaves", "https://leaves", created)
	for shard := range c.Tracker.Store.Shards() { // as if the process that created the first one had died before it had notified every shard
		if err := c.Store.Client.HDel(c.Ctx, fmt.Sprintf("lubdub:{%d}:eventmarks", shard), "taken", "mark").Err(); err != nil {
			c.Fatal(err)
		}
	}
	since := c.Store.Clock.Now()
	c.goOn(250 * time.Millisecond)
	for i := range 3 {
		c.queued(fmt.Sprint("hooked-", i), "hooked")
	}
	c.sure("cancel", func() error {
		_, err := c.Tasks.Cancel(c.Ctx, trackertest.Scope, "hooked-0", model.CancelRequest{})
		return err
	})
	c.delivers()
	if n := c.outside.messages("https://received"); n != 3 {
		c.Fatalf("%s: %d messages of 3", c.what, n)
	}
	c.queued("hooked-3", "hooked")
	c.delivers()
	c.sure("test", func() error { _, err := c.Webhooks.Test(c.Ctx, trackertest.Scope, "received"); return err })
	c.sure("rotate", func() error {
		_, err := c.Webhooks.RotateSecret(c.Ctx, trackertest.Scope, "received", "", false)
		return err
	})
	c.sure("update", func() error {
		_, err := c.Webhooks.Update(c.Ctx, trackertest.Scope, "received",
			webhooks.Settings{URL: "https://received", Enabled: true, Filter: created}, false)
		return err
	})
	var page *webhooks.DeliveryPage
	c.sure("deliveries", func() (err error) {
		page, err = c.Webhooks.Deliveries(c.Ctx, webhooks.DeliveryFilter{Scope: trackertest.Scope, WebhookID: "received",
			Status: "DELIVERED", PageSize: 10})
		return err
	})
	c.sure("redeliver", func() error { return c.Webhooks.Redeliver(c.Ctx, trackertest.Scope, "received", page.Deliveries[0].ID) })
	c.sure("redeliver since", func() error {
		_, err := c.Webhooks.RedeliverSince(c.Ctx, trackertest.Scope, "received", since.Format(time.RFC3339))
		return err
	})
	c.delivers()
	c.sure("delete", func() error {
		err := c.Webhooks.Delete(c.Ctx, trackertest.Scope, "leaves", false)
		if model.CodeOf(err) == webhooks.NotFound {
			return nil
		}
		return err
	})
}

// observeHooks adds the final state of webhooks.
func (c *story) observeHooks(end map[string]string) {
	c.Helper()
	var all []*webhooks.Webhook
	c.sure("webhooks", func() (err error) { all, err = c.Webhooks.List(c.Ctx, trackertest.Scope); return err })
	for _, w := range all {
		end["webhook "+w.ID] = fmt.Sprintf("on %v %s, %d wait, since failing %v", w.Settings.Enabled, w.DisabledReason, w.Pending, w.FailingSince)
	}
}

// largeWebhooks receive events of the largest size, and have as many pending deliveries as possible.
func (b *bounds) largeWebhooks() {
	b.Helper()
	for _, url := range []string{"https://received", "https://gone"} {
		settings := webhooks.Settings{URL: url, Enabled: true, Filter: events.Filter{Types: []string{"task.*"}}}
		w, err := b.Webhooks.Create(b.Ctx, webhooks.NewWebhook{Scope: big, ID: longest("hook"+url[8:], 0), Settings: settings})
		b.check("create webhook", err)
		b.events()
		b.check("deliver", b.Sweeper.Deliver(b.Ctx))
		for _, status := range append(webhooks.Statuses, "") {
			_, err = b.Webhooks.Deliveries(b.Ctx, webhooks.DeliveryFilter{Scope: big, WebhookID: w.ID, Status: status, PageSize: 100})
			b.check("deliveries", err)
		}
	}
	for i := range 60 {
		_, err := b.Webhooks.Create(b.Ctx, webhooks.NewWebhook{Scope: big, ID: longest("many", i), Settings: webhooks.Settings{
			URL: "https://received/" + longest("path", i), Filter: events.Filter{Types: []string{"task.*"}, Subject: longest("task", i)}}})
		b.check("create webhook", err)
	}
	_, err := b.Webhooks.List(b.Ctx, big)
	b.check("webhooks", err)
	lost := fmt.Sprintf("lubdub:{%d}:hookdead:%s/%s", b.Tracker.Store.ShardOf(big, longest("hookgone", 0)), big, longest("hookgone", 0))
	if n, err := b.Store.Client.Del(b.Ctx, lost).Result(); err != nil || n != 1 {
		b.Fatalf("%s: %d, %v", lost, n, err)
	}
	if repairs := b.Reconcile(); repairs["missing_delivery"] == 0 {
		b.Errorf("repaired %v", repairs)
	}
	b.check("delete", b.Webhooks.Delete(b.Ctx, big, longest("hookreceived", 0), false))
}
