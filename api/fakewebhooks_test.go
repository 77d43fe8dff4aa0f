package api

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

// What the fake Tracker answers about webhooks; what the domain does is tested against the real one.

func fakeWebhook(id string) *webhooks.Webhook {
	return &webhooks.Webhook{ID: id, Scope: testAttempt().Scope, CreatedAt: fakeTime, UpdatedAt: fakeTime}
}

func (f fakeWebhooks) Create(_ context.Context, n webhooks.NewWebhook) (*webhooks.Webhook, error) {
	return fakeWebhook(n.ID), nil
}

func (f fakeWebhooks) Update(_ context.Context, _ model.Scope, id string, _ webhooks.Settings, _ bool) (*webhooks.Webhook,
	error) {
	return fakeWebhook(id), nil
}

func (f fakeWebhooks) Delete(context.Context, model.Scope, string, bool) error { return nil }

func (f *fakeTracker) RotateSecret(_ context.Context, _ model.Scope, id, _ string, _ bool) (*webhooks.Webhook, error) {
	return fakeWebhook(id), nil
}

func (f fakeWebhooks) Get(_ context.Context, _ model.Scope, id string) (*webhooks.Webhook, error) {
	return fakeWebhook(id), nil
}

func (f fakeWebhooks) List(context.Context, model.Scope) ([]*webhooks.Webhook, error) {
	return []*webhooks.Webhook{fakeWebhook("w")}, nil
}

func (f *fakeTracker) Test(context.Context, model.Scope, string) (*webhooks.Delivery, error) {
	return &webhooks.Delivery{Status: "PENDING", CreatedAt: fakeTime}, nil
}

func (f *fakeTracker) Deliveries(context.Context, webhooks.DeliveryFilter) (*webhooks.DeliveryPage, error) {
	return &webhooks.DeliveryPage{}, nil
}

func (f *fakeTracker) Redeliver(context.Context, model.Scope, string, string) error { return nil }

func (f *fakeTracker) RedeliverSince(context.Context, model.Scope, string, string) (*webhooks.Redelivered, error) {
	return &webhooks.Redelivered{}, nil
}
