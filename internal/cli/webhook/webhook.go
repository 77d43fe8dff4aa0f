// Package webhook has the commands about webhooks and their deliveries.
package webhook

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var Webhooks = &resource.Kind[v1.Webhook]{
	Noun: "webhook", Path: "/v1/webhooks", Entries: "webhooks", ID: func(w *v1.Webhook) string { return w.WebhookID }, Unordered: true,
	Columns: []resource.Column[v1.Webhook]{
		{Name: "WEBHOOK", Cell: func(w *v1.Webhook, _ time.Time) output.Cell { return output.Text(w.WebhookID) }},
		{Name: "URL", Cell: func(w *v1.Webhook, _ time.Time) output.Cell { return output.Text(w.URL) }},
		{Name: "ON", Cell: func(w *v1.Webhook, _ time.Time) output.Cell {
			if !w.Enabled {
				return output.Cell{Text: "no", Mood: output.Doubtful}
			}
			return output.Text("yes")
		}},
		{Name: "EVENTS", Cell: func(w *v1.Webhook, _ time.Time) output.Cell { return output.Text(strings.Join(w.Events, ",")) }},
		{Name: "PENDING", Cell: func(w *v1.Webhook, _ time.Time) output.Cell { return output.Number(w.Pending) }},
		{Name: "DEAD", Cell: func(w *v1.Webhook, _ time.Time) output.Cell { return output.Number(w.Dead) }},
		{Name: "FAILING", Volatile: true, Cell: func(w *v1.Webhook, now time.Time) output.Cell {
			return output.Cell{Text: output.Age(w.FailingSince.Time, now).Text, Mood: output.Bad}
		}},
		{Name: "REASON", Cell: func(w *v1.Webhook, _ time.Time) output.Cell { return output.Optional(w.DisabledReason) }},
		{Name: "DESCRIPTION", Wide: true, Cell: func(w *v1.Webhook, _ time.Time) output.Cell { return output.Text(w.Description) }},
	}}

type List struct {
	resource.ListFlags `embed:""`
	session.Flags      `embed:""`
}

func (c *List) Run(env *session.Env) error { return Webhooks.ListAll(env, &c.Flags, c.ListFlags) }

type Get struct {
	Webhooks      []string `arg:"" predictor:"webhook" name:"id" help:"Webhooks."`
	session.Flags `embed:""`
}

func (c *Get) Run(env *session.Env) error { return Webhooks.Get(env, &c.Flags, c.Webhooks) }

type Create struct {
	URL           string   `placeholder:"URL" help:"Where messages are posted to."`
	Events        []string `placeholder:"TYPE" help:"Types of events, or families such as task.*."`
	ID            string   `name:"id" placeholder:"ID" help:"Its id; Lubdub generates one by default."`
	Description   string   `placeholder:"TEXT" help:"What it is for."`
	File          string   `short:"f" placeholder:"FILE" help:"The body of POST /v1/webhooks, as JSON, instead; - is standard input. Flags override its fields."`
	session.Flags `embed:""`
}

func (c *Create) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	body := map[string]any{}
	if err := session.ReadJSON(env, c.File, &body); err != nil {
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
	raw, made, err := session.Call[v1.Webhook](env.Context, s, client.Request{
		Method: http.MethodPost, Path: Webhooks.Path, Body: body, Once: true,
	})
	if err != nil {
		return err
	}
	return showSecret(s, raw, made)
}

// showSecret shows a webhook that has a new secret. The server returns it in this answer only, so it is printed in every format.
func showSecret(s *session.Session, raw json.RawMessage, made *v1.Webhook) error {
	if err := Webhooks.Show(s, raw, made); err != nil {
		return err
	}
	if s.Format.ForPeople() || s.Format == output.Name { // the others print the whole answer
		s.Note("Secret: %s\nThis is the only time it is shown; `lubdub webhook rotate %s` replaces it.", made.Secret, made.WebhookID)
	}
	return nil
}

type Set struct {
	ID            string `arg:"" predictor:"webhook" name:"id" help:"Webhook."`
	File          string `short:"f" required:"" placeholder:"FILE" help:"The body of PUT /v1/webhooks/{webhookId}, as JSON; - is standard input."`
	session.Flags `embed:""`
}

func (c *Set) Run(env *session.Env) error {
	return Webhooks.Send(env, &c.Flags, http.MethodPut, Webhooks.PathOf(c.ID), c.File)
}

type Remove struct {
	Webhooks      []string `arg:"" predictor:"webhook" name:"id" help:"Webhooks."`
	session.Flags `embed:""`
}

func (c *Remove) Run(env *session.Env) error { return Webhooks.Remove(env, &c.Flags, c.Webhooks) }

type Test struct {
	ID            string `arg:"" predictor:"webhook" name:"id" help:"Webhook."`
	session.Flags `embed:""`
}

func (c *Test) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	raw, sent, err := session.Post[v1.WebhookDelivery](env.Context, s, Webhooks.PathOf(c.ID)+"/test", nil)
	if err != nil {
		return Webhooks.Suggest(env.Context, s, c.ID, err)
	}
	return deliveries(c.ID).Show(s, raw, sent)
}

// deliveries are the kind that a webhook's deliveries are.
func deliveries(webhook string) *resource.Kind[v1.WebhookDelivery] {
	return &resource.Kind[v1.WebhookDelivery]{
		Noun: "delivery", Path: Webhooks.PathOf(webhook) + "/deliveries", Entries: "deliveries",
		ID: func(d *v1.WebhookDelivery) string { return d.DeliveryID }, Columns: []resource.Column[v1.WebhookDelivery]{
			{Name: "DELIVERY", Cell: func(d *v1.WebhookDelivery, _ time.Time) output.Cell { return output.Text(d.DeliveryID) }},
			{Name: "TYPE", Cell: func(d *v1.WebhookDelivery, _ time.Time) output.Cell { return output.Text(d.Type) }},
			{Name: "SUBJECT", Cell: func(d *v1.WebhookDelivery, _ time.Time) output.Cell { return output.Optional(d.Subject) }},
			{Name: "STATUS", Cell: func(d *v1.WebhookDelivery, _ time.Time) output.Cell { return output.Word(d.Status) }},
			{Name: "TRIES", Cell: func(d *v1.WebhookDelivery, _ time.Time) output.Cell { return output.Number(d.Attempts) }},
			{Name: "ANSWER", Cell: func(d *v1.WebhookDelivery, _ time.Time) output.Cell { return answer(d.Response) }},
			{Name: "AGE", Volatile: true, Cell: func(d *v1.WebhookDelivery, now time.Time) output.Cell { return output.Age(d.CreatedAt.Time, now) }},
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

type Deliveries struct {
	ID                 string `arg:"" predictor:"webhook" name:"id" help:"Webhook."`
	Status             string `placeholder:"STATUS" help:"Only those of this status, such as DEAD."`
	resource.ListFlags `embed:""`
	session.Flags      `embed:""`
}

func (c *Deliveries) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	return Webhooks.Suggest(env.Context, s, c.ID, deliveries(c.ID).List(s, c.ListFlags, resource.Query("status", strings.ToUpper(c.Status))))
}

type Redeliver struct {
	ID            string `arg:"" predictor:"webhook" name:"id" help:"Webhook."`
	Delivery      string `placeholder:"ID" xor:"what" help:"The delivery to send again."`
	Since         string `placeholder:"WHEN" xor:"what" help:"All events since: a time, or how long ago."`
	session.Flags `embed:""`
}

func (c *Redeliver) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	since, err := s.ParseTime("since", c.Since)
	if err != nil {
		return err
	}
	if c.Delivery == "" && c.Since == "" {
		return exit.Misusef("say what to send again: --delivery for one message, or --since for all that happened since")
	}
	sum := v1.RedeliverResponse{}
	for body := (v1.RedeliverRequest{DeliveryID: c.Delivery, Since: since}); ; {
		_, part, err := session.Call[v1.RedeliverResponse](env.Context, s, client.Request{
			Method: http.MethodPost, Path: Webhooks.PathOf(c.ID) + "/redeliver", Body: body, Once: true,
		})
		if err != nil && sum.Queued > 0 {
			return fmt.Errorf("%w\n%s will be sent again so far; the same command sends these again", err, output.Count(sum.Queued, "message"))
		} else if err != nil {
			return Webhooks.Suggest(env.Context, s, c.ID, err)
		}
		sum.Queued, sum.Gap = sum.Queued+part.Queued, cmp.Or(sum.Gap, part.Gap)
		if part.NextPageToken == "" {
			break
		}
		body = v1.RedeliverRequest{PageToken: part.NextPageToken}
	}
	if sum.Gap != nil {
		s.Note("Events between %s and %s are not kept any more, and are not sent.", session.FormatTime(sum.Gap.From),
			session.FormatTime(sum.Gap.To))
	}
	raw, err := json.Marshal(sum)
	if err != nil {
		return err
	}
	return s.ShowResult(raw, "%s will be sent again.", output.Count(sum.Queued, "message"))
}

type Rotate struct {
	ID            string `arg:"" predictor:"webhook" name:"id" help:"Webhook."`
	session.Flags `embed:""`
}

func (c *Rotate) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	raw, made, err := session.Call[v1.Webhook](env.Context, s, client.Request{
		Method: http.MethodPost, Path: Webhooks.PathOf(c.ID) + "/rotate-secret", Body: struct{}{}, Once: true,
	})
	if err != nil {
		return Webhooks.Suggest(env.Context, s, c.ID, err)
	}
	return showSecret(s, raw, made)
}
