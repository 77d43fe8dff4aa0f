package webhooks

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{Method: "POST", Pattern: "/v1/webhooks", Op: "createWebhook", Access: httpapi.ForControl, Needs: httpapi.MayOperate, Handle: h.create},
		{
			Method: "GET", Pattern: "/v1/webhooks", Op: "listWebhooks", Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Handle: h.list,
			Query:  []string{"order", "pageSize", "pageToken"},
		},
		{
			Method: "GET", Pattern: "/v1/webhooks/{webhookId}", Op: "getWebhook", Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Handle: h.get,
		},
		{
			Method: "PUT", Pattern: "/v1/webhooks/{webhookId}", Op: "updateWebhook", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.update,
		},
		{
			Method: "DELETE", Pattern: "/v1/webhooks/{webhookId}", Op: "deleteWebhook", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.remove,
		},
		{
			Method: "POST", Pattern: "/v1/webhooks/{webhookId}/rotate-secret", Op: "rotateSecret",
			Access: httpapi.ForControl, Needs: httpapi.MayOperate, Handle: h.rotateSecret,
		},
		{
			Method: "POST", Pattern: "/v1/webhooks/{webhookId}/test", Op: "testWebhook", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.test,
		},
		{
			Method: "GET", Pattern: "/v1/webhooks/{webhookId}/deliveries", Op: "listDeliveries", Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Handle: h.listDeliveries,
			Query:  []string{"status", "order", "pageSize", "pageToken"},
		},
		{
			Method: "POST", Pattern: "/v1/webhooks/{webhookId}/redeliver", Op: "redeliver", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.redeliver,
		},
	}
}
