package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var webhooks = &kind[v1.Webhook]{
	noun: "webhook", path: "/v1/webhooks", entries: "webhooks", id: func(w *v1.Webhook) string { return w.WebhookID }, unordered: true,
	columns: []column[v1.Webhook]{
		{name: "WEBHOOK", cell: func(w *v1.Webhook, _ time.Time) output.Cell { return output.Text(w.WebhookID) }},
		{name: "URL", cell: func(w *v1.Webhook, _ time.Time) output.Cell { return output.Text(w.URL) }},
		{name: "ON", cell: func(w *v1.Webhook, _ time.Time) output.Cell {
			if !w.Enabled {
				return output.Cell{Text: "no", Mood: output.Doubtful}
			}
			return output.Text("yes")
		}},
		{name: "EVENTS", cell: func(w *v1.Webhook, _ time.Time) output.Cell { return output.Text(strings.Join(w.Events, ",")) }},
		{name: "PENDING", cell: func(w *v1.Webhook, _ time.Time) output.Cell { return output.Number(w.Pending) }},
		{name: "DEAD", cell: func(w *v1.Webhook, _ time.Time) output.Cell { return output.Number(w.Dead) }},
		{name: "FAILING", passing: true, cell: func(w *v1.Webhook, now time.Time) output.Cell {
			return output.Cell{Text: output.Age(w.FailingSince.Time, now).Text, Mood: output.Bad}
		}},
		{name: "REASON", cell: func(w *v1.Webhook, _ time.Time) output.Cell { return output.Optional(w.DisabledReason) }},
		{name: "DESCRIPTION", wide: true, cell: func(w *v1.Webhook, _ time.Time) output.Cell { return output.Text(w.Description) }},
	}}

type webhookLs struct {
	Listing `embed:""`
	Common  `embed:""`
}

func (c *webhookLs) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	return webhooks.list(s, c.Listing, query())
}

type webhookGet struct {
	Webhooks []string `arg:"" predictor:"webhook" name:"id" help:"Webhooks."`
	Common   `embed:""`
}

func (c *webhookGet) Run(env *Env) error { return webhooks.get(env, &c.Common, c.Webhooks) }

type webhookCreate struct {
	URL         string   `placeholder:"URL" help:"Where messages are posted to."`
	Events      []string `placeholder:"TYPE" help:"Types of events, or families such as task.*."`
	ID          string   `name:"id" placeholder:"ID" help:"Its id; without it one is made."`
	Description string   `placeholder:"TEXT" help:"What it is for."`
	File        string   `short:"f" placeholder:"FILE" help:"The body of POST /v1/webhooks, as JSON, instead; - is standard input. Flags count over it."`
	Common      `embed:""`
}

func (c *webhookCreate) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	body := map[string]any{}
	if err := readJSON(env, c.File, &body); err != nil {
		return err
	}
	for name, value := range map[string]string{"url": c.URL, "webhookId": c.ID, "description": c.Description} {
		if value != "" {
			body[name] = value
		}
	}
	if len(c.Events) > 0 {
		body["events"] = c.Events
	}
	raw, made, err := call[v1.Webhook](env.Context, s, client.Request{Method: http.MethodPost, Path: webhooks.path, Body: body, Once: true})
	if err != nil {
		return err
	}
	return showSecret(s, raw, made)
}

// showSecret shows a webhook that has a new secret. The server returns it in this answer only, so it is printed in every format.
func showSecret(s *session, raw json.RawMessage, made *v1.Webhook) error {
	if err := webhooks.show(s, raw, made); err != nil {
		return err
	}
	if s.Format.ForPeople() || s.Format == output.Name { // the others print the whole answer
		s.note("Secret: %s\nThis is the only time it is shown; `lubdub webhook rotate %s` replaces it.", made.Secret, made.WebhookID)
	}
	return nil
}

type webhookSet struct {
	ID     string `arg:"" predictor:"webhook" name:"id" help:"Webhook."`
	File   string `short:"f" required:"" placeholder:"FILE" help:"The body of PUT /v1/webhooks/{webhookId}, as JSON; - is standard input."`
	Common `embed:""`
}

func (c *webhookSet) Run(env *Env) error {
	return webhooks.send(env, &c.Common, http.MethodPut, webhooks.at(c.ID), c.File)
}

type webhookRm struct {
	Webhooks []string `arg:"" predictor:"webhook" name:"id" help:"Webhooks."`
	Common   `embed:""`
}

func (c *webhookRm) Run(env *Env) error { return webhooks.remove(env, &c.Common, c.Webhooks) }

type webhookTest struct {
	ID     string `arg:"" predictor:"webhook" name:"id" help:"Webhook."`
	Common `embed:""`
}

func (c *webhookTest) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	raw, sent, err := post[v1.WebhookDelivery](env.Context, s, webhooks.at(c.ID)+"/test", nil)
	if err != nil {
		return webhooks.nearest(env.Context, s, c.ID, err)
	}
	return deliveries(c.ID).show(s, raw, sent)
}

// deliveries are the kind that a webhook's deliveries are.
func deliveries(webhook string) *kind[v1.WebhookDelivery] {
	return &kind[v1.WebhookDelivery]{
		noun: "delivery", path: webhooks.at(webhook) + "/deliveries", entries: "deliveries",
		id: func(d *v1.WebhookDelivery) string { return d.DeliveryID }, columns: []column[v1.WebhookDelivery]{
			{name: "DELIVERY", cell: func(d *v1.WebhookDelivery, _ time.Time) output.Cell { return output.Text(d.DeliveryID) }},
			{name: "TYPE", cell: func(d *v1.WebhookDelivery, _ time.Time) output.Cell { return output.Text(d.Type) }},
			{name: "SUBJECT", cell: func(d *v1.WebhookDelivery, _ time.Time) output.Cell { return output.Optional(d.Subject) }},
			{name: "STATUS", cell: func(d *v1.WebhookDelivery, _ time.Time) output.Cell { return output.Word(d.Status) }},
			{name: "TRIES", cell: func(d *v1.WebhookDelivery, _ time.Time) output.Cell { return output.Number(d.Attempts) }},
			{name: "ANSWER", cell: func(d *v1.WebhookDelivery, _ time.Time) output.Cell { return answer(d.Response) }},
			{name: "AGE", passing: true, cell: func(d *v1.WebhookDelivery, now time.Time) output.Cell { return output.Age(d.CreatedAt.Time, now) }},
		},
	}
}

func answer(r *v1.WebhookResponse) output.Cell {
	switch {
	case r == nil:
		return output.Cell{}
	case r.Status != nil:
		return output.Text(fmt.Sprintf("%d in %s", *r.Status, output.Milliseconds(r.TookMs)))
	}
	return output.Optional(r.Error)
}

type webhookDeliveries struct {
	ID      string `arg:"" predictor:"webhook" name:"id" help:"Webhook."`
	Status  string `placeholder:"STATUS" help:"Only those of this status, such as DEAD."`
	Listing `embed:""`
	Common  `embed:""`
}

func (c *webhookDeliveries) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	return webhooks.nearest(env.Context, s, c.ID, deliveries(c.ID).list(s, c.Listing, query("status", strings.ToUpper(c.Status))))
}

type webhookRedeliver struct {
	ID       string `arg:"" predictor:"webhook" name:"id" help:"Webhook."`
	Delivery string `placeholder:"ID" xor:"what" help:"The delivery to send again."`
	Since    string `placeholder:"WHEN" xor:"what" help:"All events since: a time, or how long ago."`
	Common   `embed:""`
}

func (c *webhookRedeliver) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	since, err := s.moment("since", c.Since)
	if err != nil {
		return err
	}
	if c.Delivery == "" && c.Since == "" {
		return misusef("say what to send again: --delivery for one message, or --since for all that happened since")
	}
	sum := v1.RedeliverResponse{}
	for body := (v1.RedeliverRequest{DeliveryID: c.Delivery, Since: since}); ; {
		_, part, err := call[v1.RedeliverResponse](env.Context, s, client.Request{
			Method: http.MethodPost, Path: webhooks.at(c.ID) + "/redeliver", Body: body, Once: true,
		})
		if err != nil && sum.Queued > 0 {
			return fmt.Errorf("%w\n%s will be sent again so far; the same command sends these once more", err, output.Count(sum.Queued, "message"))
		} else if err != nil {
			return webhooks.nearest(env.Context, s, c.ID, err)
		}
		sum.Queued, sum.Gap = sum.Queued+part.Queued, cmp.Or(sum.Gap, part.Gap)
		if part.NextPageToken == "" {
			break
		}
		body = v1.RedeliverRequest{PageToken: part.NextPageToken}
	}
	if sum.Gap != nil {
		s.note("Events between %s and %s are not kept any more, and are not sent.", timeText(sum.Gap.From), timeText(sum.Gap.To))
	}
	raw, err := json.Marshal(sum)
	if err != nil {
		return err
	}
	return s.counted(raw, "%s will be sent again.", output.Count(sum.Queued, "message"))
}

type webhookRotate struct {
	ID     string `arg:"" predictor:"webhook" name:"id" help:"Webhook."`
	Common `embed:""`
}

func (c *webhookRotate) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	raw, made, err := call[v1.Webhook](env.Context, s, client.Request{
		Method: http.MethodPost, Path: webhooks.at(c.ID) + "/rotate-secret", Body: struct{}{}, Once: true,
	})
	if err != nil {
		return webhooks.nearest(env.Context, s, c.ID, err)
	}
	return showSecret(s, raw, made)
}
