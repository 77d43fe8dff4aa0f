package webhooks

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

// Service is what the handlers need of the domain's webhooks.
type Service interface {
	Create(context.Context, webhooks.NewWebhook) (*webhooks.Webhook, error)
	Update(ctx context.Context, scope model.Scope, id string, to webhooks.Settings, managed bool) (*webhooks.Webhook, error)
	Delete(ctx context.Context, scope model.Scope, id string, managed bool) error
	RotateSecret(ctx context.Context, scope model.Scope, id, secret string, managed bool) (*webhooks.Webhook, error)
	Get(ctx context.Context, scope model.Scope, id string) (*webhooks.Webhook, error)
	List(context.Context, model.Scope) ([]*webhooks.Webhook, error)
	Test(ctx context.Context, scope model.Scope, webhookID string) (*webhooks.Delivery, error)
	Deliveries(context.Context, webhooks.DeliveryFilter) (*webhooks.DeliveryPage, error)
	Redeliver(ctx context.Context, scope model.Scope, webhookID, deliveryID string) error
	RedeliverSince(ctx context.Context, scope model.Scope, webhookID, after string) (*webhooks.Redelivered, error)
}

// Handlers answer the routes of webhooks.
type Handlers struct{ Webhooks Service }
