package webhooks

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/webhooks", Op: "createWebhook", Handle: h.create, NotIdempotent: true,
			Tag: "webhooks", Body: v1.CreateWebhookRequest{}, Answers: map[int]any{201: v1.Webhook{}}, Errors: []int{409},
			Examples: map[string]string{"failures": `{"webhookId":"alerts","url":"https://example.com/hook","events":["task.failed",` +
				`"worker.offline"],"queue":"default"}`},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Create a webhook",
			Description: "Messages are posted as Standard Webhooks 1.0 specifies, at least once each, and those about one subject in " +
				"order while the receiver keeps up. The answer has the secret, which is never shown again. An address that is not " +
				"public is rejected, unless webhook-allow-cidrs includes it; the address of a name is checked at each delivery, and " +
				"not when the webhook is created. A webhook receives the events of its workspace. Events that belong to no workspace, " +
				"such as system.outage_credited, are in the list of events for tokens of tenant *. A workspace may have 100 webhooks, a " +
				"tenant 250, and a tenant no more than are left for all others of 1,000.",
		},
		{
			Method: "GET", Pattern: "/v1/webhooks", Op: "listWebhooks", Handle: h.list,
			Query: []httpapi.Param{httpapi.ParamOrder, httpapi.ParamPageSize, httpapi.ParamPageToken},
			Tag:   "webhooks", Answers: map[int]any{200: v1.WebhookList{}},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary:     "List webhooks",
			Description: "Webhooks are in the order of their ids.",
		},
		{
			Method: "GET", Pattern: "/v1/webhooks/{webhookId}", Op: "getWebhook", Handle: h.get,
			Tag: "webhooks", Answers: map[int]any{200: v1.Webhook{}}, Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary:     "Read a webhook",
			Description: "Its secret is not in the answer.",
		},
		{
			Method: "PUT", Pattern: "/v1/webhooks/{webhookId}", Op: "updateWebhook", Handle: h.update,
			Tag: "webhooks", Body: v1.UpdateWebhookRequest{}, Answers: map[int]any{200: v1.Webhook{}}, Errors: []int{404, 409},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Replace a webhook's definition",
			Description: "The body replaces the whole definition; the secret stays. A webhook that was disabled is enabled, unless " +
				"enabled is false.",
		},
		{
			Method: "DELETE", Pattern: "/v1/webhooks/{webhookId}", Op: "deleteWebhook", Handle: h.remove,
			Tag: "webhooks", Answers: map[int]any{200: v1.DeleteWebhookResponse{}}, Errors: []int{404, 409},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Delete a webhook",
			Description: "Its pending deliveries are deleted, and requests to it that are under way are stopped.",
		},
		{
			Method: "POST", Pattern: "/v1/webhooks/{webhookId}/rotate-secret", Op: "rotateSecret", Handle: h.rotateSecret, NotIdempotent: true,
			Tag: "webhooks", Body: v1.RotateSecretRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.Webhook{}},
			Errors: []int{404, 409},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Replace a webhook's secret",
			Description: "The answer has the new secret, which is never shown again. For 24 hours messages are also signed with the old " +
				"one.",
		},
		{
			Method: "POST", Pattern: "/v1/webhooks/{webhookId}/test", Op: "testWebhook", Handle: h.test, NotIdempotent: true,
			Tag: "webhooks", Body: struct{}{}, OptionalBody: true, Answers: map[int]any{202: v1.WebhookDelivery{}},
			Errors: []int{404, 409},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Send a test message to a webhook",
			Description: "The message has the type webhook.test. Its delivery shows the result.",
		},
		{
			Method: "GET", Pattern: "/v1/webhooks/{webhookId}/deliveries", Op: "listDeliveries", Handle: h.listDeliveries,
			Query: []httpapi.Param{deliveryStatus, newestFirst, httpapi.ParamPageSize, httpapi.ParamPageToken},
			Tag:   "webhooks", Answers: map[int]any{200: v1.WebhookDeliveryList{}}, Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "List a webhook's deliveries",
			Description: "All pending deliveries, the newest 500 delivered and the newest 500 dead ones, newest first unless order is asc. " +
				"A page may be short: continue while there is a nextPageToken.",
		},
		{
			Method: "POST", Pattern: "/v1/webhooks/{webhookId}/redeliver", Op: "redeliver", Handle: h.redeliver, NotIdempotent: true,
			Tag: "webhooks", Body: v1.RedeliverRequest{}, Answers: map[int]any{202: v1.RedeliverResponse{}}, Errors: []int{404, 409},
			Examples: map[string]string{"one": `{"deliveryId":"dlv_0000000000042"}`, "since": `{"since":"2025-01-15T10:00:00Z"}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Send deliveries again",
			Description: "One delivery, or all events since a time that are still kept; these keep their webhook-id. A call with since " +
				"may stop early: continue with its nextPageToken.",
		},
	}
}

// The parameters of these routes.
var (
	deliveryStatus = httpapi.Param{
		Name: "status", Schema: httpapi.OneOf("PENDING", "DELIVERED", "DEAD"), Description: "Only deliveries of this status.",
	}
	newestFirst = httpapi.Param{
		Name: "order", Schema: httpapi.OneOf("asc", "desc").With("default", "desc"), Description: "Oldest or newest first.",
	}
)
