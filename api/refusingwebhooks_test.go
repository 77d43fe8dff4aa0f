package api

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker"
)

func (r *refusingTracker) CreateWebhook(context.Context, tracker.NewWebhook) (*tracker.Webhook, error) {
	return nil, r.err
}

func (r *refusingTracker) UpdateWebhook(context.Context, tracker.Scope, string, tracker.HookSettings, bool) (*tracker.Webhook, error) {
	return nil, r.err
}

func (r *refusingTracker) DeleteWebhook(context.Context, tracker.Scope, string, bool) error {
	return r.err
}

func (r *refusingTracker) RotateSecret(context.Context, tracker.Scope, string, string, bool) (*tracker.Webhook, error) {
	return nil, r.err
}

func (r *refusingTracker) Webhook(context.Context, tracker.Scope, string) (*tracker.Webhook, error) {
	return nil, r.err
}

func (r *refusingTracker) Webhooks(context.Context, tracker.Scope) ([]*tracker.Webhook, error) {
	return nil, r.err
}

func (r *refusingTracker) Test(context.Context, tracker.Scope, string) (*tracker.Delivery, error) {
	return nil, r.err
}

func (r *refusingTracker) Deliveries(context.Context, tracker.DeliveryFilter) (*tracker.DeliveryPage, error) {
	return nil, r.err
}

func (r *refusingTracker) Redeliver(context.Context, tracker.Scope, string, string) error {
	return r.err
}

func (r *refusingTracker) RedeliverSince(context.Context, tracker.Scope, string, string) (*tracker.Redelivered, error) {
	return nil, r.err
}
