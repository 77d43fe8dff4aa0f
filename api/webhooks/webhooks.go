package webhooks

import (
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

// create answers POST /v1/webhooks.
func (h *Handlers) create(req *httpapi.Request) (int, any, error) {
	var body v1.CreateWebhookRequest
	scope, err := req.Required(&body)
	if err != nil {
		return 0, nil, err
	}
	if body.WebhookID != "" && !model.ValidID(body.WebhookID) {
		return 0, nil, httpapi.InvalidID("webhookId")
	}
	w, err := h.Webhooks.Create(req.Context(), webhooks.NewWebhook{
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

// list answers GET /v1/webhooks.
func (h *Handlers) list(req *httpapi.Request) (int, any, error) {
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	p := httpapi.Parameters{Values: req.Query}
	filter := struct {
		Webhooks   model.Scope
		Descending bool
	}{scope, p.Descending()}
	size, after := p.Page(filter)
	if p.Err != nil {
		return 0, nil, p.Err
	}
	all, err := h.Webhooks.List(req.Context(), scope)
	if err != nil {
		return 0, nil, err
	}
	if filter.Descending {
		slices.Reverse(all)
	}
	list := v1.WebhookList{Webhooks: []v1.Webhook{}, TotalCount: len(all)}
	for _, w := range all {
		if w.ID == after || after != "" && (w.ID > after) == filter.Descending {
			continue // it was on an earlier page
		}
		if len(list.Webhooks) == size {
			list.NextPageToken = httpapi.PageToken(filter, list.Webhooks[size-1].WebhookID)
			break
		}
		list.Webhooks = append(list.Webhooks, *webhookView(w))
	}
	return fasthttp.StatusOK, list, nil
}

// get answers GET /v1/webhooks/{webhookId}.
func (h *Handlers) get(req *httpapi.Request) (int, any, error) {
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	return answer(h.Webhooks.Get(req.Context(), scope, req.ID))
}

// update answers PUT /v1/webhooks/{webhookId}.
func (h *Handlers) update(req *httpapi.Request) (int, any, error) {
	var body v1.UpdateWebhookRequest
	scope, err := req.Required(&body)
	if err != nil {
		return 0, nil, err
	}
	return answer(h.Webhooks.Update(req.Context(), scope, req.ID, webhookSettings(&body.WebhookSettingsItem), false))
}

// remove answers DELETE /v1/webhooks/{webhookId}.
func (h *Handlers) remove(req *httpapi.Request) (int, any, error) {
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	if err := h.Webhooks.Delete(req.Context(), scope, req.ID, false); err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, v1.DeleteWebhookResponse{WebhookID: req.ID, Deleted: true}, nil
}

// rotateSecret answers POST /v1/webhooks/{webhookId}/rotate-secret.
func (h *Handlers) rotateSecret(req *httpapi.Request) (int, any, error) {
	var body v1.RotateSecretRequest
	scope, err := req.Optional(&body)
	if err != nil {
		return 0, nil, err
	}
	return answer(h.Webhooks.RotateSecret(req.Context(), scope, req.ID, body.Secret, false))
}

func answer(w *webhooks.Webhook, err error) (int, any, error) {
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, webhookView(w), nil
}

// test answers POST /v1/webhooks/{webhookId}/test.
func (h *Handlers) test(req *httpapi.Request) (int, any, error) {
	scope, err := req.Optional(&struct{}{})
	if err != nil {
		return 0, nil, err
	}
	d, err := h.Webhooks.Test(req.Context(), scope, req.ID)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusAccepted, deliveryView(d), nil
}

// listDeliveries answers GET /v1/webhooks/{webhookId}/deliveries.
func (h *Handlers) listDeliveries(req *httpapi.Request) (int, any, error) {
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	p := httpapi.Parameters{Values: req.Query}
	filter := webhooks.DeliveryFilter{
		Scope: scope, WebhookID: req.ID, Status: httpapi.WordOf(&p, "status", webhooks.Statuses...),
		OldestFirst: httpapi.WordOf(&p, "order", "desc", "asc") == "asc",
	}
	paged := filter
	if paged.PageSize, paged.After = p.Page(filter); p.Err != nil {
		return 0, nil, p.Err
	}
	page, err := h.Webhooks.Deliveries(req.Context(), paged)
	if err != nil {
		return 0, nil, err
	}
	list := v1.WebhookDeliveryList{
		Deliveries: make([]v1.WebhookDelivery, len(page.Deliveries)), NextPageToken: httpapi.PageToken(filter, page.Next),
	}
	for i, d := range page.Deliveries {
		list.Deliveries[i] = *deliveryView(d)
	}
	return fasthttp.StatusOK, list, nil
}

// redeliver answers POST /v1/webhooks/{webhookId}/redeliver.
func (h *Handlers) redeliver(req *httpapi.Request) (int, any, error) {
	var body v1.RedeliverRequest
	scope, err := req.Required(&body)
	if err != nil {
		return 0, nil, err
	}
	after, set := body.PageToken, 0
	for _, is := range []bool{body.DeliveryID != "", !body.Since.IsZero(), body.PageToken != ""} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		return 0, nil, httpapi.InvalidField("deliveryId",
			"the body needs deliveryId for one delivery, since for all events since a time, or the "+
				"pageToken of the call before: one of them")
	case body.DeliveryID != "":
		if err := h.Webhooks.Redeliver(req.Context(), scope, req.ID, body.DeliveryID); err != nil {
			return 0, nil, err
		}
		return fasthttp.StatusAccepted, v1.RedeliverResponse{Queued: 1}, nil
	case after == "":
		after = body.Since.Add(-time.Millisecond).UTC().Format(time.RFC3339Nano) // events of that ms are included
	}
	done, err := h.Webhooks.RedeliverSince(req.Context(), scope, req.ID, after)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusAccepted, v1.RedeliverResponse{Queued: done.Queued, NextPageToken: done.Next, Gap: convert.Gap(done.Gap)}, nil
}

func webhookView(w *webhooks.Webhook) *v1.Webhook {
	f := &w.Settings.Filter
	v := &v1.Webhook{
		WebhookID: w.ID, TenantID: w.Scope.Tenant, WorkspaceID: w.Scope.Workspace, URL: w.Settings.URL, Description: w.Settings.Description,
		Enabled: w.Settings.Enabled, Managed: w.Managed, WebhookFilter: v1.WebhookFilter{
			Events: convert.OrEmpty(f.Types), Subject: f.Subject, RunID: f.RunID, Queue: f.Queue, TaskType: f.TaskType, WorkerID: f.WorkerID,
			MachineID: f.MachineID,
		},
		CreatedAt: v1.At(w.CreatedAt), UpdatedAt: v1.At(w.UpdatedAt), DisabledReason: convert.OrNull(w.DisabledReason),
		DisabledAt: v1.At(w.DisabledAt), FailingSince: v1.At(w.FailingSince), Pending: w.Pending, Dead: w.Dead,
		OldSecretsUntil: v1.At(w.OldSecretsUntil), Secret: w.Secret,
	}
	return v
}

func deliveryView(d *webhooks.Delivery) *v1.WebhookDelivery {
	v := &v1.WebhookDelivery{
		DeliveryID: d.ID, MessageID: d.MessageID, EventID: convert.OrNull(d.EventID), Type: d.Type, Subject: convert.OrNull(d.Subject),
		Status: v1.DeliveryStatus(d.Status), Attempts: d.Tries, CreatedAt: v1.At(d.CreatedAt), LastAttemptAt: v1.At(d.LastAt),
		NextAttemptAt: v1.At(d.NextAt),
	}
	if a := d.Answer; a != nil {
		v.Response = &v1.WebhookResponse{Error: convert.OrNull(a.Error), Body: a.Body, TookMs: a.TookMs}
		if a.Code != 0 {
			v.Response.Status = &a.Code
		}
	}
	return v
}
