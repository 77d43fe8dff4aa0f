package client

import (
	"context"
	"iter"
	"net/http"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// WebhookQuery is the query of lists of webhooks and deliveries.
type WebhookQuery struct {
	Status    v1.DeliveryStatus `url:"status"`   // of deliveries only
	PageSize  int               `url:"pageSize"` // 1 to 100; 0: 100
	PageToken string            `url:"pageToken"`
}

// CreateWebhook creates a webhook. Only this answer includes its secret.
func (c *Client) CreateWebhook(ctx context.Context, r v1.CreateWebhookRequest) (*v1.Webhook, error) {
	return postOnce[v1.Webhook](ctx, c, "/v1/webhooks", r)
}

// ListWebhooks returns one page of webhooks.
func (c *Client) ListWebhooks(ctx context.Context, q WebhookQuery) (*v1.WebhookList, error) {
	return get[v1.WebhookList](ctx, c, "/v1/webhooks", values(q))
}

// Webhooks yields all webhooks, page by page. An error is the last value.
func (c *Client) Webhooks(ctx context.Context, q WebhookQuery) iter.Seq2[v1.Webhook, error] {
	return pages(q.PageToken, func(token string) ([]v1.Webhook, string, error) {
		q.PageToken = token
		page, err := c.ListWebhooks(ctx, q)
		if err != nil {
			return nil, "", err
		}
		return page.Webhooks, page.NextPageToken, nil
	})
}

// GetWebhook returns a webhook, without its secret.
func (c *Client) GetWebhook(ctx context.Context, webhookID string) (*v1.Webhook, error) {
	return get[v1.Webhook](ctx, c, "/v1/webhooks/"+seg(webhookID), nil)
}

// UpdateWebhook replaces a webhook's definition.
func (c *Client) UpdateWebhook(ctx context.Context, webhookID string, r v1.UpdateWebhookRequest) (*v1.Webhook, error) {
	k := &call{method: http.MethodPut, path: "/v1/webhooks/" + seg(webhookID), query: c.scoped(nil), in: r}
	return invoke[v1.Webhook](ctx, c, k)
}

// DeleteWebhook deletes a webhook.
func (c *Client) DeleteWebhook(ctx context.Context, webhookID string) (*v1.DeleteWebhookResponse, error) {
	k := &call{method: http.MethodDelete, path: "/v1/webhooks/" + seg(webhookID), query: c.scoped(nil)}
	return invoke[v1.DeleteWebhookResponse](ctx, c, k)
}

// RotateSecret gives a webhook a new secret, which only this answer includes. It is not retried after a lost answer.
func (c *Client) RotateSecret(ctx context.Context, webhookID string, r v1.RotateSecretRequest) (*v1.Webhook, error) {
	return postOnce[v1.Webhook](ctx, c, "/v1/webhooks/"+seg(webhookID)+"/rotate-secret", r)
}

// TestWebhook sends a message of type webhook.test.
func (c *Client) TestWebhook(ctx context.Context, webhookID string) (*v1.WebhookDelivery, error) {
	return postOnce[v1.WebhookDelivery](ctx, c, "/v1/webhooks/"+seg(webhookID)+"/test", none{})
}

// ListDeliveries returns one page of a webhook's deliveries, newest first.
func (c *Client) ListDeliveries(ctx context.Context, webhookID string, q WebhookQuery) (*v1.WebhookDeliveryList, error) {
	return get[v1.WebhookDeliveryList](ctx, c, "/v1/webhooks/"+seg(webhookID)+"/deliveries", values(q))
}

// Deliveries yields all deliveries of a webhook, page by page, newest first. An error is the last value.
func (c *Client) Deliveries(ctx context.Context, webhookID string, q WebhookQuery) iter.Seq2[v1.WebhookDelivery, error] {
	return pages(q.PageToken, func(token string) ([]v1.WebhookDelivery, string, error) {
		q.PageToken = token
		page, err := c.ListDeliveries(ctx, webhookID, q)
		if err != nil {
			return nil, "", err
		}
		return page.Deliveries, page.NextPageToken, nil
	})
}

// Redeliver sends one message again, or all since a time; repeat with nextPageToken while there is one.
func (c *Client) Redeliver(ctx context.Context, webhookID string, r v1.RedeliverRequest) (*v1.RedeliverResponse, error) {
	return postOnce[v1.RedeliverResponse](ctx, c, "/v1/webhooks/"+seg(webhookID)+"/redeliver", r)
}
