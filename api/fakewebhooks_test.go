package api

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker"
)

// What the fake Tracker answers about webhooks; what the domain does is tested against the real one.

func fakeWebhook(id string) *tracker.Webhook {
	return &tracker.Webhook{ID: id, Scope: testAttempt().Scope, CreatedAt: fakeTime, UpdatedAt: fakeTime}
}

func (f *fakeTracker) CreateWebhook(_ context.Context, n tracker.NewWebhook) (*tracker.Webhook, error) {
	return fakeWebhook(n.ID), nil
}

func (f *fakeTracker) UpdateWebhook(_ context.Context, _ tracker.Scope, id string, _ tracker.HookSettings, _ bool) (*tracker.Webhook,
	error) {
	return fakeWebhook(id), nil
}

func (f *fakeTracker) DeleteWebhook(context.Context, tracker.Scope, string, bool) error { return nil }

func (f *fakeTracker) RotateSecret(_ context.Context, _ tracker.Scope, id, _ string, _ bool) (*tracker.Webhook, error) {
	return fakeWebhook(id), nil
}

func (f *fakeTracker) Webhook(_ context.Context, _ tracker.Scope, id string) (*tracker.Webhook, error) {
	return fakeWebhook(id), nil
}

func (f *fakeTracker) Webhooks(context.Context, tracker.Scope) ([]*tracker.Webhook, error) {
	return []*tracker.Webhook{fakeWebhook("w")}, nil
}

func (f *fakeTracker) Test(context.Context, tracker.Scope, string) (*tracker.Delivery, error) {
	return &tracker.Delivery{Status: "PENDING", CreatedAt: fakeTime}, nil
}

func (f *fakeTracker) Deliveries(context.Context, tracker.DeliveryFilter) (*tracker.DeliveryPage, error) {
	return &tracker.DeliveryPage{}, nil
}

func (f *fakeTracker) Redeliver(context.Context, tracker.Scope, string, string) error { return nil }

func (f *fakeTracker) RedeliverSince(context.Context, tracker.Scope, string, string) (*tracker.Redelivered, error) {
	return &tracker.Redelivered{}, nil
}
