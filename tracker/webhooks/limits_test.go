package webhooks_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

// No tenant can have all the webhooks that the limits allow: neither in one workspace, nor over many, nor together with others.
func TestWebhooksAreLimitedByTenant(t *testing.T) {
	t.Parallel()
	contract(t, func(h *hooked) {
		stored := func(count int, tenant, workspace string) { // in the lists, by which they are counted
			all := make([]redis.Z, count)
			for i := range all {
				all[i].Member = fmt.Sprintf("%s/%s/w%d", tenant, workspace, i)
			}
			if err := h.Store.Client.ZAdd(h.Ctx, "lubdub:{0}:webhooks", all...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		create := func(tenant, workspace string) error {
			_, err := h.Webhooks.Create(h.Ctx, webhooks.NewWebhook{Scope: model.Scope{Tenant: tenant, Workspace: workspace},
				Settings: settings("new", "task.created")})
			return err
		}
		want := func(tenant, workspace string, code model.Code) {
			t.Helper()
			if err := create(tenant, workspace); model.CodeOf(err) != code {
				t.Errorf("in %s/%s: %v, want code %q", tenant, workspace, err, code)
			}
		}
		stored(100, "a", "1")
		want("a", "1", model.Overloaded) // the workspace's limit
		want("a", "2", "")
		stored(99, "a", "3")
		stored(50, "a", "4")
		want("a", "5", model.Overloaded) // the tenant's limit, over its workspaces
		want("b", "5", "")
		h.WantCode(h.Webhooks.Manage(h.Ctx, []webhooks.NewWebhook{{Scope: model.Scope{Tenant: "a", Workspace: "5"}, ID: "listed",
			Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=", Settings: settings("listed", "task.created")}}), "")
		for _, tenant := range []string{"c", "d"} {
			for _, workspace := range []string{"1", "2", "3"} {
				stored(80, tenant, workspace)
			}
		}
		want("e", "1", "")
		stored(99, "e", "2")
		stored(34, "e", "3")
		want("e", "4", model.Overloaded) // more than are left for all others
		want("f", "1", "")
	})
}

// Concurrent creations do not exceed a limit together.
func TestCreationsAtOncePassNoLimit(t *testing.T) {
	t.Parallel()
	contract(t, func(h *hooked) {
		for i := range 90 {
			name := fmt.Sprintf("acme/prod/w%d", i)
			if err := h.Store.Client.ZAdd(h.Ctx, "lubdub:{0}:webhooks", redis.Z{Member: name}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				_, _ = h.Webhooks.Create(h.Ctx, webhooks.NewWebhook{Scope: model.Scope{Tenant: "acme", Workspace: "prod"},
					Settings: settings("new", "task.created")})
			})
		}
		all.Wait()
		var stored int64
		for shard := range h.Tracker.Store.Shards() {
			stored += h.Store.Client.ZLexCount(h.Ctx, fmt.Sprintf("lubdub:{%d}:webhooks", shard), "[acme/", "(acme0").Val()
		}
		if stored > 100 {
			t.Errorf("%d webhooks in one workspace", stored)
		}
	})
}
