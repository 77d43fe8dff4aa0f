package webhooks

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/webhooks", Op: "createWebhook", Handle: h.create,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Create a webhook",
			Description: "Messages are posted as Standard Webhooks 1.0 specifies, at least once each, and those about one subject in " +
				"order while the receiver keeps up. The answer has the secret, which is never shown again. An address that is not " +
				"public is rejected, unless webhook-allow-cidrs includes it; the address of a name is checked at each delivery, and " +
				"not when the webhook is created. A webhook receives the events of its workspace. Events that belong to no workspace, " +
				"such as system.outage_credited, are in GET /v1/events for tokens of tenant *. A workspace may have 100 webhooks, a " +
				"tenant 250, and a tenant no more than are left for all others of 1,000.",
		},
		{
			Method: "GET", Pattern: "/v1/webhooks", Op: "listWebhooks", Handle: h.list,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query:       []string{"order", "pageSize", "pageToken"},
			Summary:     "List webhooks",
			Description: "In the order of their ids.",
		},
		{
			Method: "GET", Pattern: "/v1/webhooks/{webhookId}", Op: "getWebhook", Handle: h.get,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "Read a webhook",
		},
		{
			Method: "PUT", Pattern: "/v1/webhooks/{webhookId}", Op: "updateWebhook", Handle: h.update,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Replace a webhook's definition",
			Description: "The body replaces the whole definition; the secret stays. A webhook that was disabled is enabled, unless " +
				"enabled is false.",
		},
		{
			Method: "DELETE", Pattern: "/v1/webhooks/{webhookId}", Op: "deleteWebhook", Handle: h.remove,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Delete a webhook",
			Description: "Its pending deliveries are deleted, and requests to it that are under way are stopped.",
		},
		{
			Method: "POST", Pattern: "/v1/webhooks/{webhookId}/rotate-secret", Op: "rotateSecret", Handle: h.rotateSecret,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Replace a webhook's secret",
			Description: "The answer has the new secret, which is never shown again. For 24 hours messages are also signed with the old " +
				"one.",
		},
		{
			Method: "POST", Pattern: "/v1/webhooks/{webhookId}/test", Op: "testWebhook", Handle: h.test,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Send a test message to a webhook",
			Description: "Sends a message of type webhook.test. Its delivery shows the result.",
		},
		{
			Method: "GET", Pattern: "/v1/webhooks/{webhookId}/deliveries", Op: "listDeliveries", Handle: h.listDeliveries,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query:   []string{"status", "order", "pageSize", "pageToken"},
			Summary: "List a webhook's deliveries",
			Description: "Newest first, or oldest first with order=asc: all pending deliveries, the newest 500 delivered and the newest " +
				"500 dead ones. A page may be short: continue while there is a nextPageToken.",
		},
		{
			Method: "POST", Pattern: "/v1/webhooks/{webhookId}/redeliver", Op: "redeliver", Handle: h.redeliver,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Send deliveries again",
			Description: "One delivery, or all events since a time that are still kept; these keep their webhook-id. A call with since " +
				"may stop early: continue with its nextPageToken.",
		},
	}
}
