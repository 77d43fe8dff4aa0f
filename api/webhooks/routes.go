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
			Summary: "Tell a URL what happens",
			Description: "Messages are posted as Standard Webhooks 1.0 has it, at least once each, those about one subject in " +
				"order while it keeps up. The answer has the secret, which is never shown again. An address that is not public is " +
				"refused, unless the deployment opens its range with webhook-allow-cidrs; that of a name is judged whenever it is " +
				"called, and is not looked up before. It is told of its workspace; what belongs to none, such as " +
				"system.outage_credited, GET /v1/events tells tokens of tenant *. At most 100 a workspace and 250 a tenant, and no " +
				"more of a tenant than are left for all others of 1,000.",
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
			Summary: "One webhook",
		},
		{
			Method: "PUT", Pattern: "/v1/webhooks/{webhookId}", Op: "updateWebhook", Handle: h.update,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Change a webhook",
			Description: "The body is all that it says from now on; its secret stays. One that was switched off is switched on, " +
				"unless enabled is false.",
		},
		{
			Method: "DELETE", Pattern: "/v1/webhooks/{webhookId}", Op: "deleteWebhook", Handle: h.remove,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Forget a webhook",
			Description: "With all that it was still to be sent. Requests to it that are under way end.",
		},
		{
			Method: "POST", Pattern: "/v1/webhooks/{webhookId}/rotate-secret", Op: "rotateSecret", Handle: h.rotateSecret,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Give a webhook another secret",
			Description: "The answer has it, and never again. For 24 hours messages are signed with the one before, too.",
		},
		{
			Method: "POST", Pattern: "/v1/webhooks/{webhookId}/test", Op: "testWebhook", Handle: h.test,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Send a webhook a test",
			Description: "A message of type webhook.test. Its delivery shows the result.",
		},
		{
			Method: "GET", Pattern: "/v1/webhooks/{webhookId}/deliveries", Op: "listDeliveries", Handle: h.listDeliveries,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query:   []string{"status", "order", "pageSize", "pageToken"},
			Summary: "List what a webhook is sent",
			Description: "Newest first, or oldest with order=asc: all that waits, and of what is over the newest 500 delivered and " +
				"as many dead. Pages may be short: go on while there is a nextPageToken.",
		},
		{
			Method: "POST", Pattern: "/v1/webhooks/{webhookId}/redeliver", Op: "redeliver", Handle: h.redeliver,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Send a webhook something again",
			Description: "One delivery, or all events since a time that are still kept; these keep their webhook-id. A call by " +
				"since may end early: go on with its nextPageToken.",
		},
	}
}
