package tracker_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// outside is where the webhooks of tests lead: it counts what each URL was sent, and answers as the URL says.
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

// messages is how many different ones a URL was sent.
func (o *outside) messages(url string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.sent[url])
}

// hook makes a webhook, or has made it already when the answer was lost.
func (c *story) hook(id, url string, filter tracker.EventFilter) {
	c.Helper()
	c.sure("create webhook "+id, func() error {
		_, err := c.CreateWebhook(c.Ctx, tracker.NewWebhook{Scope: trackertest.Scope, ID: id,
			Settings: tracker.HookSettings{URL: url, Enabled: true, Filter: filter}})
		if tracker.CodeOf(err) == tracker.WebhookExists {
			return nil
		}
		return err
	})
}

// delivers collects and delivers as a sweeper does that goes on after an error.
func (c *story) delivers() {
	c.Helper()
	for range 3 {
		c.sure("deliver", func() error { return c.Sweeper.Deliver(c.Ctx) })
	}
}

// webhooks are told of tasks; one is gone and switched off, one is deleted.
func (c *story) webhooks() {
	created := tracker.EventFilter{Types: []string{"task.created"}, Queue: "hooked"}
	c.hook("told", "https://told", created)
	c.hook("gone", "https://gone", tracker.EventFilter{Types: []string{"task.*"}, Queue: "hooked"})
	c.hook("leaves", "https://leaves", created)
	for shard := range c.Shards() { // as if who made the first one had died before it was told everywhere
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
		_, err := c.Cancel(c.Ctx, trackertest.Scope, "hooked-0", tracker.CancelRequest{})
		return err
	})
	c.delivers()
	if n := c.outside.messages("https://told"); n != 3 {
		c.Fatalf("%s: %d messages of 3", c.what, n)
	}
	c.queued("hooked-3", "hooked")
	c.delivers()
	c.sure("test", func() error { _, err := c.Test(c.Ctx, trackertest.Scope, "told"); return err })
	c.sure("rotate", func() error { _, err := c.RotateSecret(c.Ctx, trackertest.Scope, "told", "", false); return err })
	c.sure("update", func() error {
		_, err := c.UpdateWebhook(c.Ctx, trackertest.Scope, "told",
			tracker.HookSettings{URL: "https://told", Enabled: true, Filter: created}, false)
		return err
	})
	var page *tracker.DeliveryPage
	c.sure("deliveries", func() (err error) {
		page, err = c.Deliveries(c.Ctx, tracker.DeliveryFilter{Scope: trackertest.Scope, WebhookID: "told", Status: "DELIVERED", PageSize: 10})
		return err
	})
	c.sure("redeliver", func() error { return c.Redeliver(c.Ctx, trackertest.Scope, "told", page.Deliveries[0].ID) })
	c.sure("redeliver since", func() error {
		_, err := c.RedeliverSince(c.Ctx, trackertest.Scope, "told", since.Format(time.RFC3339))
		return err
	})
	c.delivers()
	c.sure("delete", func() error {
		err := c.DeleteWebhook(c.Ctx, trackertest.Scope, "leaves", false)
		if tracker.CodeOf(err) == tracker.WebhookNotFound {
			return nil
		}
		return err
	})
}

// observeHooks tells what became of webhooks.
func (c *story) observeHooks(end map[string]string) {
	c.Helper()
	var all []*tracker.Webhook
	c.sure("webhooks", func() (err error) { all, err = c.Webhooks(c.Ctx, trackertest.Scope); return err })
	for _, w := range all {
		end["webhook "+w.ID] = fmt.Sprintf("on %v %s, %d wait, since failing %v", w.Settings.Enabled, w.DisabledReason, w.Pending, w.FailingSince)
	}
}

// largeWebhooks are told of events that are as large as may be, and have as much to be sent as there may be.
func (b *bounds) largeWebhooks() {
	b.Helper()
	for _, url := range []string{"https://told", "https://gone"} {
		settings := tracker.HookSettings{URL: url, Enabled: true, Filter: tracker.EventFilter{Types: []string{"task.*"}}}
		w, err := b.CreateWebhook(b.Ctx, tracker.NewWebhook{Scope: big, ID: longest("hook"+url[8:], 0), Settings: settings})
		b.check("create webhook", err)
		b.events()
		b.check("deliver", b.Sweeper.Deliver(b.Ctx))
		for _, status := range append(tracker.DeliveryStatuses, "") {
			_, err = b.Deliveries(b.Ctx, tracker.DeliveryFilter{Scope: big, WebhookID: w.ID, Status: status, PageSize: 100})
			b.check("deliveries", err)
		}
	}
	for i := range 60 {
		_, err := b.CreateWebhook(b.Ctx, tracker.NewWebhook{Scope: big, ID: longest("many", i), Settings: tracker.HookSettings{
			URL: "https://told/" + longest("path", i), Filter: tracker.EventFilter{Types: []string{"task.*"}, Subject: longest("task", i)}}})
		b.check("create webhook", err)
	}
	_, err := b.Webhooks(b.Ctx, big)
	b.check("webhooks", err)
	lost := fmt.Sprintf("lubdub:{%d}:hookdead:%s/%s", b.ShardOf(big, longest("hookgone", 0)), big, longest("hookgone", 0))
	if n, err := b.Store.Client.Del(b.Ctx, lost).Result(); err != nil || n != 1 {
		b.Fatalf("%s: %d, %v", lost, n, err)
	}
	if repairs := b.Reconcile(); repairs["missing_delivery"] == 0 {
		b.Errorf("repaired %v", repairs)
	}
	b.check("delete", b.DeleteWebhook(b.Ctx, big, longest("hooktold", 0), false))
}
