package webhooks_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

// entryBytes is what lua/lib/webhook.lua counts for a delivery in addition to its strings.
const entryBytes = 460

// storedBytes returns the bytes of the deliveries of a tenant's webhooks: as the scripts count them, as counted here from the stored
// data, and as Redis reports them (0 on miniredis).
func (h *hooked) storedBytes(tenant string) (recorded, counted, used int64) {
	h.Helper()
	c := h.Store.Client
	for _, key := range c.Keys(h.Ctx, "*:hook*:"+tenant+"/*").Val() {
		if strings.Contains(key, ":hookseen:") {
			continue
		}
		n, err := c.MemoryUsage(h.Ctx, key, 0).Result()
		if err == nil && h.Store.Kind == "redis" {
			used += n
		}
		switch {
		case strings.Contains(key, ":hookkept:"):
			counted += entryBytes * c.ZCard(h.Ctx, key).Val()
		case strings.Contains(key, ":hookabout:"), strings.Contains(key, ":hookbodies:"):
			for _, text := range c.HVals(h.Ctx, key).Val() {
				counted += int64(len(text))
			}
		}
	}
	for _, key := range c.Keys(h.Ctx, "*:webhook:"+tenant+"/*").Val() {
		var count, bytes int64
		if text, err := c.HGet(h.Ctx, key, "b").Result(); err != redis.Nil {
			if _, err := fmt.Sscan(text, &count, &bytes); err != nil {
				h.Fatalf("%s has %q", key, text)
			}
		}
		recorded += bytes
	}
	return recorded, counted, used
}

// A tenant's deliveries never exceed their bytes, whatever the tenant does: many webhooks in many workspaces, some of them created and
// deleted meanwhile; long names; receivers that fail with long responses, are gone, or work; redeliveries and tests. The scripts' counts
// equal what is stored, and another tenant receives everything.
func TestATenantsDeliveriesStayWithinTheirBytes(t *testing.T) {
	t.Parallel()
	const most, steps = 96 << 10, 80
	const tables = 8 << 10 // of a webhook's keys, which Redis doubles as they grow
	contract(t, func(h *hooked) {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 1))
		t.Logf("seed %d", seed)
		other := model.Scope{Tenant: "other", Workspace: "prod"}
		h.hookIn(other, "w", "https://example.com/other")
		answers := map[string]int{}
		h.answers(func(url string, _ post) (int, error) {
			if status := answers[url]; status != 0 {
				return status, nil
			}
			if strings.HasSuffix(url, "other") {
				return 200, nil
			}
			return 0, errors.New(strings.Repeat("\x01", 1<<10)) // stored as six times as many bytes
		})
		var hooks []*webhooks.Webhook
		wanted, got := 0, map[string]bool{}
		peak, tasks := int64(0), 0
		for step := range steps {
			scope := model.Scope{Tenant: "acme", Workspace: []string{"prod", "test", "dev"}[r.IntN(3)]}
			what := r.IntN(10)
			switch {
			case len(hooks) == 0 || what == 0 && len(hooks) < 8:
				id := fmt.Sprint("w", step)
				hooks = append(hooks, h.hookIn(scope, id, "https://example.com/"+id))
				if len(hooks) > 1 { // the first receiver fails, so that much is stored
					answers["https://example.com/"+id] = []int{0, 0, 500, 200, 410}[r.IntN(5)]
				}
			case what == 1 && len(hooks) > 3:
				i := r.IntN(len(hooks))
				if err := h.Webhooks.Delete(h.Ctx, hooks[i].Scope, hooks[i].ID, false); err != nil {
					t.Fatal(err)
				}
				hooks = append(hooks[:i], hooks[i+1:]...)
			case what == 2:
				w := hooks[r.IntN(len(hooks))]
				_, _ = h.Webhooks.RedeliverSince(h.Ctx, w.Scope, w.ID, h.Store.Clock.Now().Add(-time.Minute).Format(time.RFC3339)) // may be full
			case what == 3:
				w := hooks[r.IntN(len(hooks))]
				_, _ = h.Webhooks.Test(h.Ctx, w.Scope, w.ID)
			case what == 4:
				w := hooks[r.IntN(len(hooks))]
				if page, err := h.Webhooks.Deliveries(h.Ctx, webhooks.DeliveryFilter{Scope: w.Scope, WebhookID: w.ID, PageSize: 1}); err == nil {
					for _, d := range page.Deliveries {
						_ = h.Webhooks.Redeliver(h.Ctx, w.Scope, w.ID, d.ID) // may be off
					}
				}
			default:
				long := strings.Repeat("x", r.IntN(2)*100)
				for range 1 + r.IntN(20) {
					tasks++
					id := fmt.Sprint("t", tasks, long)
					h.MustCreate(named(id), func(n *model.NewTask) { n.Scope = scope })
				}
				h.MustCreate(named(fmt.Sprint("o", wanted)), func(n *model.NewTask) { n.Scope = other })
				wanted++
			}
			h.Store.Clock.Advance(time.Duration(r.IntN(7)) * time.Second)
			if recorded, _, _ := h.storedBytes("acme"); recorded > 2*most {
				t.Fatalf("step %d: %d bytes before anything was delivered", step, recorded)
			}
			for _, p := range h.deliver() {
				if strings.HasSuffix(p.url, "other") {
					got[p.message.Data.Subject] = true
				}
			}
			recorded, counted, used := h.storedBytes("acme")
			peak = max(peak, recorded)
			if recorded != counted || recorded > most || used > most+int64(len(hooks))*tables {
				t.Fatalf("step %d, %d webhooks: %d bytes are recorded, %d stored, %d in Redis; want at most %d", step, len(hooks), recorded,
					counted, used, most)
			}
		}
		t.Logf("%d tasks, up to %d bytes", tasks, peak)
		if peak < most/2 {
			t.Errorf("no more than %d bytes of %d were ever taken: this shows nothing", peak, most)
		}
		if len(got) != wanted {
			t.Errorf("the other tenant received %d of %d", len(got), wanted)
		}
		if dropped := h.Events("")["webhook.dropped"]; dropped == 0 {
			t.Error("nothing was ever dropped: this shows nothing")
		}
	}, func(o *tracker.Options) { o.TenantWebhookBytes = most })
}

func (h *hooked) hookIn(scope model.Scope, id, url string) *webhooks.Webhook {
	h.Helper()
	w, err := h.Webhooks.Create(h.Ctx, webhooks.NewWebhook{Scope: scope, ID: id, Settings: webhooks.Settings{
		URL: url, Enabled: true, Filter: events.Filter{Types: []string{"task.created"}}}})
	if err != nil {
		h.Fatal(err)
	}
	return w
}
