package api

import (
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

// createWebhook answers POST /v1/webhooks.
func (h *webhookHandlers) createWebhook(req *request) (int, any, error) {
	var body v1.CreateWebhookRequest
	scope, err := req.required(&body)
	if err != nil {
		return 0, nil, err
	}
	if body.WebhookID != "" && !model.ValidID(body.WebhookID) {
		return 0, nil, invalidID("webhookId")
	}
	w, err := h.Webhooks.Create(req.context(), webhooks.NewWebhook{
		Scope: scope, ID: body.WebhookID, Secret: body.Secret, Settings: webhookSettings(&body.WebhookSettingsItem),
	})
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusCreated, webhookView(w), nil
}

func webhookSettings(s *v1.WebhookSettingsItem) webhooks.Settings {
	return webhooks.Settings{URL: s.URL, Description: s.Description, Enabled: s.Enabled == nil || *s.Enabled, Filter: events.Filter{
		Types: s.Events, Subject: s.Subject, RunID: s.RunID, Queue: s.Queue, TaskType: s.TaskType, WorkerID: s.WorkerID, MachineID: s.MachineID,
	}}
}

// listWebhooks answers GET /v1/webhooks.
func (h *webhookHandlers) listWebhooks(req *request) (int, any, error) {
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	p := parameters{Values: req.query}
	filter := struct {
		Webhooks   model.Scope
		Descending bool
	}{scope, p.descending()}
	size, after := p.page(filter)
	if p.err != nil {
		return 0, nil, p.err
	}
	all, err := h.Webhooks.List(req.context(), scope)
	if err != nil {
		return 0, nil, err
	}
	if filter.Descending {
		slices.Reverse(all)
	}
	list := v1.WebhookList{Webhooks: []v1.Webhook{}, TotalCount: len(all)}
	for _, w := range all {
		if w.ID == after || after != "" && (w.ID > after) == filter.Descending {
			continue // it stood on a page before
		}
		if len(list.Webhooks) == size {
			list.NextPageToken = pageToken(filter, list.Webhooks[size-1].WebhookID)
			break
		}
		list.Webhooks = append(list.Webhooks, *webhookView(w))
	}
	return fasthttp.StatusOK, list, nil
}

// getWebhook answers GET /v1/webhooks/{webhookId}.
func (h *webhookHandlers) getWebhook(req *request) (int, any, error) {
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	return oneWebhook(h.Webhooks.Get(req.context(), scope, req.id))
}

// updateWebhook answers PUT /v1/webhooks/{webhookId}.
func (h *webhookHandlers) updateWebhook(req *request) (int, any, error) {
	var body v1.UpdateWebhookRequest
	scope, err := req.required(&body)
	if err != nil {
		return 0, nil, err
	}
	return oneWebhook(h.Webhooks.Update(req.context(), scope, req.id, webhookSettings(&body.WebhookSettingsItem), false))
}

// deleteWebhook answers DELETE /v1/webhooks/{webhookId}.
func (h *webhookHandlers) deleteWebhook(req *request) (int, any, error) {
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	if err := h.Webhooks.Delete(req.context(), scope, req.id, false); err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, v1.DeleteWebhookResponse{WebhookID: req.id, Deleted: true}, nil
}

// rotateSecret answers POST /v1/webhooks/{webhookId}/rotate-secret.
func (h *webhookHandlers) rotateSecret(req *request) (int, any, error) {
	var body v1.RotateSecretRequest
	scope, err := req.optional(&body)
	if err != nil {
		return 0, nil, err
	}
	return oneWebhook(h.Webhooks.RotateSecret(req.context(), scope, req.id, body.Secret, false))
}

func oneWebhook(w *webhooks.Webhook, err error) (int, any, error) {
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, webhookView(w), nil
}

// testWebhook answers POST /v1/webhooks/{webhookId}/test.
func (h *webhookHandlers) testWebhook(req *request) (int, any, error) {
	scope, err := req.optional(&struct{}{})
	if err != nil {
		return 0, nil, err
	}
	d, err := h.Webhooks.Test(req.context(), scope, req.id)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusAccepted, deliveryView(d), nil
}

// listDeliveries answers GET /v1/webhooks/{webhookId}/deliveries.
func (h *webhookHandlers) listDeliveries(req *request) (int, any, error) {
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	p := parameters{Values: req.query}
	filter := webhooks.DeliveryFilter{
		Scope: scope, WebhookID: req.id, Status: wordOf(&p, "status", webhooks.Statuses...),
		OldestFirst: wordOf(&p, "order", "desc", "asc") == "asc",
	}
	paged := filter
	if paged.PageSize, paged.After = p.page(filter); p.err != nil {
		return 0, nil, p.err
	}
	page, err := h.Webhooks.Deliveries(req.context(), paged)
	if err != nil {
		return 0, nil, err
	}
	list := v1.WebhookDeliveryList{Deliveries: make([]v1.WebhookDelivery, len(page.Deliveries)), NextPageToken: pageToken(filter, page.Next)}
	for i, d := range page.Deliveries {
		list.Deliveries[i] = *deliveryView(d)
	}
	return fasthttp.StatusOK, list, nil
}

// redeliver answers POST /v1/webhooks/{webhookId}/redeliver.
func (h *webhookHandlers) redeliver(req *request) (int, any, error) {
	var body v1.RedeliverRequest
	scope, err := req.required(&body)
	if err != nil {
		return 0, nil, err
	}
	after, given := body.PageToken, 0
	for _, is := range []bool{body.DeliveryID != "", !body.Since.IsZero(), body.PageToken != ""} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return 0, nil, invalidField("deliveryId", "the body needs deliveryId for one delivery, since for all events since a time, or the "+
			"pageToken of the call before: one of them")
	case body.DeliveryID != "":
		if err := h.Webhooks.Redeliver(req.context(), scope, req.id, body.DeliveryID); err != nil {
			return 0, nil, err
		}
		return fasthttp.StatusAccepted, v1.RedeliverResponse{Queued: 1}, nil
	case after == "":
		after = body.Since.Add(-time.Millisecond).UTC().Format(time.RFC3339Nano) // what happened in that ms is meant too
	}
	done, err := h.Webhooks.RedeliverSince(req.context(), scope, req.id, after)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusAccepted, v1.RedeliverResponse{Queued: done.Queued, NextPageToken: done.Next, Gap: gapView(done.Gap)}, nil
}

func webhookView(w *webhooks.Webhook) *v1.Webhook {
	f := &w.Settings.Filter
	v := &v1.Webhook{
		WebhookID: w.ID, TenantID: w.Scope.Tenant, WorkspaceID: w.Scope.Workspace, URL: w.Settings.URL, Description: w.Settings.Description,
		Enabled: w.Settings.Enabled, Managed: w.Managed, WebhookFilter: v1.WebhookFilter{
			Events: orEmpty(f.Types), Subject: f.Subject, RunID: f.RunID, Queue: f.Queue, TaskType: f.TaskType, WorkerID: f.WorkerID,
			MachineID: f.MachineID,
		},
		CreatedAt: v1.At(w.CreatedAt), UpdatedAt: v1.At(w.UpdatedAt), DisabledReason: orNull(w.DisabledReason), DisabledAt: v1.At(w.DisabledAt),
		FailingSince: v1.At(w.FailingSince), Pending: w.Pending, Dead: w.Dead, OldSecretsUntil: v1.At(w.OldSecretsUntil), Secret: w.Secret,
	}
	return v
}

func deliveryView(d *webhooks.Delivery) *v1.WebhookDelivery {
	v := &v1.WebhookDelivery{
		DeliveryID: d.ID, MessageID: d.MessageID, EventID: orNull(d.EventID), Type: d.Type, Subject: orNull(d.Subject),
		Status: v1.DeliveryStatus(d.Status), Attempts: d.Tries, CreatedAt: v1.At(d.CreatedAt), LastAttemptAt: v1.At(d.LastAt),
		NextAttemptAt: v1.At(d.NextAt),
	}
	if a := d.Answer; a != nil {
		v.Response = &v1.WebhookResponse{Error: orNull(a.Error), Body: a.Body, TookMs: a.TookMs}
		if a.Code != 0 {
			v.Response.Status = &a.Code
		}
	}
	return v
}
