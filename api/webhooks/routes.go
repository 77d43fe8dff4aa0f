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
		},
		{
			Method: "GET", Pattern: "/v1/webhooks", Op: "listWebhooks", Handle: h.list,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query: []string{"order", "pageSize", "pageToken"},
		},
		{
			Method: "GET", Pattern: "/v1/webhooks/{webhookId}", Op: "getWebhook", Handle: h.get,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
		},
		{
			Method: "PUT", Pattern: "/v1/webhooks/{webhookId}", Op: "updateWebhook", Handle: h.update,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "DELETE", Pattern: "/v1/webhooks/{webhookId}", Op: "deleteWebhook", Handle: h.remove,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/webhooks/{webhookId}/rotate-secret", Op: "rotateSecret", Handle: h.rotateSecret,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/webhooks/{webhookId}/test", Op: "testWebhook", Handle: h.test,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "GET", Pattern: "/v1/webhooks/{webhookId}/deliveries", Op: "listDeliveries", Handle: h.listDeliveries,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query: []string{"status", "order", "pageSize", "pageToken"},
		},
		{
			Method: "POST", Pattern: "/v1/webhooks/{webhookId}/redeliver", Op: "redeliver", Handle: h.redeliver,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
	}
}
