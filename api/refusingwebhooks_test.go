package api

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

func (r *refusingTracker) CreateWebhook(context.Context, webhooks.NewWebhook) (*webhooks.Webhook, error) {
	return nil, r.err
}

func (r *refusingTracker) UpdateWebhook(context.Context, model.Scope, string, webhooks.Settings, bool) (*webhooks.Webhook, error) {
	return nil, r.err
}

func (r *refusingTracker) DeleteWebhook(context.Context, model.Scope, string, bool) error {
	return r.err
}

func (r *refusingTracker) RotateSecret(context.Context, model.Scope, string, string, bool) (*webhooks.Webhook, error) {
	return nil, r.err
}

func (r *refusingTracker) Webhook(context.Context, model.Scope, string) (*webhooks.Webhook, error) {
	return nil, r.err
}

func (r *refusingTracker) Webhooks(context.Context, model.Scope) ([]*webhooks.Webhook, error) {
	return nil, r.err
}

func (r *refusingTracker) Test(context.Context, model.Scope, string) (*webhooks.Delivery, error) {
	return nil, r.err
}

func (r *refusingTracker) Deliveries(context.Context, webhooks.DeliveryFilter) (*webhooks.DeliveryPage, error) {
	return nil, r.err
}

func (r *refusingTracker) Redeliver(context.Context, model.Scope, string, string) error {
	return r.err
}

func (r *refusingTracker) RedeliverSince(context.Context, model.Scope, string, string) (*webhooks.Redelivered, error) {
	return nil, r.err
}
