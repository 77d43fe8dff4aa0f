package api

// Routes returns the routes of the package.
func (h *webhookHandlers) Routes() []*route {
	return []*route{
		{method: "POST", pattern: "/v1/webhooks", op: "createWebhook", access: forControl, needs: mayOperate, handle: h.createWebhook},
		{
			method: "GET", pattern: "/v1/webhooks", op: "listWebhooks", access: forControl, needs: mayRead,
			handle: h.listWebhooks,
			query:  []string{"order", "pageSize", "pageToken"},
		},
		{
			method: "GET", pattern: "/v1/webhooks/{webhookId}", op: "getWebhook", access: forControl, needs: mayRead,
			handle: h.getWebhook,
		},
		{
			method: "PUT", pattern: "/v1/webhooks/{webhookId}", op: "updateWebhook", access: forControl, needs: mayOperate,
			handle: h.updateWebhook,
		},
		{
			method: "DELETE", pattern: "/v1/webhooks/{webhookId}", op: "deleteWebhook", access: forControl, needs: mayOperate,
			handle: h.deleteWebhook,
		},
		{
			method: "POST", pattern: "/v1/webhooks/{webhookId}/rotate-secret", op: "rotateSecret",
			access: forControl, needs: mayOperate, handle: h.rotateSecret,
		},
		{
			method: "POST", pattern: "/v1/webhooks/{webhookId}/test", op: "testWebhook", access: forControl, needs: mayOperate,
			handle: h.testWebhook,
		},
		{
			method: "GET", pattern: "/v1/webhooks/{webhookId}/deliveries", op: "listDeliveries", access: forControl, needs: mayRead,
			handle: h.listDeliveries,
			query:  []string{"status", "order", "pageSize", "pageToken"},
		},
		{
			method: "POST", pattern: "/v1/webhooks/{webhookId}/redeliver", op: "redeliver", access: forControl, needs: mayOperate,
			handle: h.redeliver,
		},
	}
}
