package api

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

func (r refusingWebhooks) Create(context.Context, webhooks.NewWebhook) (*webhooks.Webhook, error) {
	return nil, r.err
}

func (r refusingWebhooks) Update(context.Context, model.Scope, string, webhooks.Settings, bool) (*webhooks.Webhook, error) {
	return nil, r.err
}

func (r refusingWebhooks) Delete(context.Context, model.Scope, string, bool) error {
	return r.err
}

func (r refusingWebhooks) RotateSecret(context.Context, model.Scope, string, string, bool) (*webhooks.Webhook, error) {
	return nil, r.err
}

func (r refusingWebhooks) Get(context.Context, model.Scope, string) (*webhooks.Webhook, error) {
	return nil, r.err
}

func (r refusingWebhooks) List(context.Context, model.Scope) ([]*webhooks.Webhook, error) {
	return nil, r.err
}

func (r refusingWebhooks) Test(context.Context, model.Scope, string) (*webhooks.Delivery, error) {
	return nil, r.err
}

func (r refusingWebhooks) Deliveries(context.Context, webhooks.DeliveryFilter) (*webhooks.DeliveryPage, error) {
	return nil, r.err
}

func (r refusingWebhooks) Redeliver(context.Context, model.Scope, string, string) error {
	return r.err
}

func (r refusingWebhooks) RedeliverSince(context.Context, model.Scope, string, string) (*webhooks.Redelivered, error) {
	return nil, r.err
}
