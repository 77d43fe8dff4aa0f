package webhooks_test

import (
	"testing"

	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

// Webhooks in the configuration exist, follow its changes, and cannot be changed by the API.
func TestManagedWebhooks(t *testing.T) {
	t.Parallel()
	contract(t, func(h *hooked) {
		h.create("own", "task.failed")
		listed := func(id string, types ...string) webhooks.NewWebhook {
			return webhooks.NewWebhook{Scope: trackertest.Scope, ID: id, Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
				Settings: settings(id, types...)}
		}
		manage := func(list ...webhooks.NewWebhook) {
			h.Helper()
			if err := h.Webhooks.Manage(h.Ctx, list); err != nil {
				h.Fatal(err)
			}
		}
		for range 2 { // each process does this
			manage(listed("a", "task.created"), listed("b", "task.created"))
		}
		if w := h.hook("a"); !w.Managed || w.Settings.Filter.Types[0] != "task.created" {
			t.Errorf("%+v", w)
		}
		_, err := h.Webhooks.Update(h.Ctx, trackertest.Scope, "a", settings("a", "task.failed"), false)
		h.WantCode(err, webhooks.Managed)
		h.WantCode(h.Webhooks.Delete(h.Ctx, trackertest.Scope, "a", false), webhooks.Managed)
		_, err = h.Webhooks.RotateSecret(h.Ctx, trackertest.Scope, "a", "", false)
		h.WantCode(err, webhooks.Managed)
		h.MustCreate(named("t1"))
		if got := h.deliver(); len(got) != 2 || !got[0].signedBy(t, listed("a").Secret) {
			t.Errorf("delivered: %v", kinds(got))
		}
		manage(listed("b", "task.failed"))
		_, err = h.Webhooks.Get(h.Ctx, trackertest.Scope, "a")
		h.WantCode(err, webhooks.NotFound)
		if w := h.hook("b"); w.Settings.Filter.Types[0] != "task.failed" {
			t.Errorf("%+v", w)
		}
		if w := h.hook("own"); w.Managed {
			t.Errorf("%+v", w)
		}
		if h.Webhooks.Manage(h.Ctx, []webhooks.NewWebhook{listed("own", "task.failed")}) == nil {
			t.Error("a webhook of the API was taken over")
		}
	})
}
