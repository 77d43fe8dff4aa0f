package webhooks

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/webhooks", Op: "createWebhook", Handle: h.create,
			Tag: "webhooks", Body: v1.CreateWebhookRequest{}, Answers: map[int]any{201: v1.Webhook{}}, Errors: []int{409},
			Examples: map[string]string{"failures": `{"webhookId":"alerts","url":"https://example.com/hook","events":["task.failed",` +
				`"worker.offline"],"queue":"default"}`},
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
			Query: []httpapi.Param{httpapi.ParamOrder, httpapi.ParamPageSize, httpapi.ParamPageToken},
			Tag:   "webhooks", Answers: map[int]any{200: v1.WebhookList{}},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary:     "List webhooks",
			Description: "In the order of their ids.",
		},
		{
			Method: "GET", Pattern: "/v1/webhooks/{webhookId}", Op: "getWebhook", Handle: h.get,
			Tag: "webhooks", Answers: map[int]any{200: v1.Webhook{}}, Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "One webhook",
		},
		{
			Method: "PUT", Pattern: "/v1/webhooks/{webhookId}", Op: "updateWebhook", Handle: h.update,
			Tag: "webhooks", Body: v1.UpdateWebhookRequest{}, Answers: map[int]any{200: v1.Webhook{}}, Errors: []int{404, 409},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Change a webhook",
			Description: "The body is all that it says from now on; its secret stays. One that was switched off is switched on, " +
				"unless enabled is false.",
		},
		{
			Method: "DELETE", Pattern: "/v1/webhooks/{webhookId}", Op: "deleteWebhook", Handle: h.remove,
			Tag: "webhooks", Answers: map[int]any{200: v1.DeleteWebhookResponse{}}, Errors: []int{404, 409},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Forget a webhook",
			Description: "With all that it was still to be sent. Requests to it that are under way end.",
		},
		{
			Method: "POST", Pattern: "/v1/webhooks/{webhookId}/rotate-secret", Op: "rotateSecret", Handle: h.rotateSecret,
			Tag: "webhooks", Body: v1.RotateSecretRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.Webhook{}},
			Errors: []int{404, 409},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Give a webhook another secret",
			Description: "The answer has it, and never again. For 24 hours messages are signed with the one before, too.",
		},
		{
			Method: "POST", Pattern: "/v1/webhooks/{webhookId}/test", Op: "testWebhook", Handle: h.test,
			Tag: "webhooks", Body: struct{}{}, OptionalBody: true, Answers: map[int]any{202: v1.WebhookDelivery{}},
			Errors: []int{404, 409},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Send a webhook a test",
			Description: "A message of type webhook.test. Its delivery shows the result.",
		},
		{
			Method: "GET", Pattern: "/v1/webhooks/{webhookId}/deliveries", Op: "listDeliveries", Handle: h.listDeliveries,
			Query: []httpapi.Param{deliveryStatus, newestFirst, httpapi.ParamPageSize, httpapi.ParamPageToken},
			Tag:   "webhooks", Answers: map[int]any{200: v1.WebhookDeliveryList{}}, Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "List what a webhook is sent",
			Description: "Newest first, or oldest with order=asc: all that waits, and of what is over the newest 500 delivered and " +
				"as many dead. Pages may be short: go on while there is a nextPageToken.",
		},
		{
			Method: "POST", Pattern: "/v1/webhooks/{webhookId}/redeliver", Op: "redeliver", Handle: h.redeliver,
			Tag: "webhooks", Body: v1.RedeliverRequest{}, Answers: map[int]any{202: v1.RedeliverResponse{}}, Errors: []int{404, 409},
			Examples: map[string]string{"one": `{"deliveryId":"dlv_0000000000042"}`, "since": `{"since":"2025-01-15T10:00:00Z"}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Send a webhook something again",
			Description: "One delivery, or all events since a time that are still kept; these keep their webhook-id. A call by " +
				"since may end early: go on with its nextPageToken.",
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
