package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

// outside is where webhooks of tests lead.
type outside struct {
	mu     sync.Mutex
	got    []string // bodies
	status int
}

func (o *outside) Check(url string) error {
	if !strings.HasPrefix(url, "https://") {
		return errors.New("must begin with https://")
	}
	return nil
}

func (o *outside) Post(_ context.Context, _ string, _ map[string]string, body []byte) (int, []byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.got = append(o.got, string(body))
	return o.status, []byte("thanks"), nil
}

func withOutside(o *outside) func(*tracker.Options) {
	return func(t *tracker.Options) { t.WebhookPoster = o }
}

func TestContractWebhooks(t *testing.T) {
	t.Parallel()
	out := &outside{status: 200}
	contract(t, func(t *testing.T, l *live) {
		operator, viewer := l.control(roleOperator), l.control(roleViewer)
		var w, again, changed v1.Webhook
		l.do("POST", "/v1/webhooks", operator,
			`{"webhookId":"alerts","url":"https://example.com/a","description":"on call","events":["task.*"],"queue":"q"}`).want(201).into(&w)
		if !strings.HasPrefix(w.Secret, "whsec_") || !w.Enabled || w.Managed || w.Queue != "q" || w.TenantID != "acme" {
			t.Fatalf("%+v", w)
		}
		l.do("GET", "/v1/webhooks/alerts", viewer, "").want(200).into(&again)
		if again.Secret != "" || again.URL != w.URL || again.Description != "on call" {
			t.Errorf("%+v", again)
		}
		var list v1.WebhookList
		l.do("POST", "/v1/webhooks", operator, `{"webhookId":"b","url":"https://example.com/b","events":["task.failed"]}`).want(201)
		l.do("GET", "/v1/webhooks?pageSize=1", viewer, "").want(200).into(&list)
		if len(list.Webhooks) != 1 || list.TotalCount != 2 || list.NextPageToken == "" {
			t.Fatalf("%+v", list)
		}
		rest := v1.WebhookList{}
		l.do("GET", "/v1/webhooks?pageSize=1&pageToken="+list.NextPageToken, viewer, "").want(200).into(&rest)
		if len(rest.Webhooks) != 1 || rest.Webhooks[0].WebhookID != "b" || rest.NextPageToken != "" || rest.Webhooks[0].Secret != "" {
			t.Fatalf("%+v", rest)
		}

		var back v1.WebhookList
		l.do("GET", "/v1/webhooks?order=desc&pageSize=1", viewer, "").want(200).into(&back)
		l.do("GET", "/v1/webhooks?order=desc&pageSize=1&pageToken="+back.NextPageToken, viewer, "").want(200).into(&rest)
		if back.Webhooks[0].WebhookID != "b" || len(rest.Webhooks) != 1 || rest.Webhooks[0].WebhookID != "alerts" || rest.NextPageToken != "" {
			t.Errorf("%+v %+v", back, rest)
		}
		l.do("GET", "/v1/webhooks?order=asc&pageToken="+back.NextPageToken, viewer, "").refused(400, v1.CodeInvalidRequest)
		l.do("GET", "/v1/webhooks?order=up", viewer, "").refused(400, v1.CodeInvalidRequest)

		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"queue":"q","taskId":"t1"}`).want(201)
		if err := l.sweeper.Deliver(context.Background()); err != nil {
			t.Fatal(err)
		}
		var made v1.WebhookDeliveryList
		l.do("GET", "/v1/webhooks/alerts/deliveries?status=DELIVERED", viewer, "").want(200).into(&made)
		if len(made.Deliveries) != 1 || made.Deliveries[0].Type != "task.created" || made.Deliveries[0].Attempts != 1 ||
			*made.Deliveries[0].Response.Status != 200 || made.Deliveries[0].Response.Body != "thanks" {
			t.Fatalf("%+v", made)
		}
		id := made.Deliveries[0].DeliveryID
		var done v1.RedeliverResponse
		l.do("POST", "/v1/webhooks/alerts/redeliver", operator, `{"deliveryId":"`+id+`"}`).want(202).into(&done)
		l.do("POST", "/v1/webhooks/alerts/redeliver", operator, `{"since":"2020-01-01T00:00:00Z"}`).want(202).into(&done)
		if done.Queued != 1 {
			t.Errorf("%+v", done)
		}
		var test v1.WebhookDelivery
		l.do("POST", "/v1/webhooks/alerts/test", operator, "").want(202).into(&test)
		if test.Type != "webhook.test" || test.Status != "PENDING" || test.EventID != nil {
			t.Errorf("%+v", test)
		}
		for _, c := range [][2]string{{"", test.DeliveryID}, {"order=desc", test.DeliveryID}, {"order=asc", id}} {
			l.do("GET", "/v1/webhooks/alerts/deliveries?pageSize=1&"+c[0], viewer, "").want(200).into(&made)
			if len(made.Deliveries) != 1 || made.Deliveries[0].DeliveryID != c[1] {
				t.Errorf("%s: %+v, want %s first", c[0], made, c[1])
			}
		}
		l.do("GET", "/v1/webhooks/alerts/deliveries?order=asc&pageToken="+made.NextPageToken, viewer, "").want(200)
		l.do("GET", "/v1/webhooks/alerts/deliveries?order=desc&pageToken="+made.NextPageToken, viewer, "").refused(400, v1.CodeInvalidRequest)
		var rotated v1.Webhook
		l.do("POST", "/v1/webhooks/alerts/rotate-secret", operator, "").want(200).into(&rotated)
		if rotated.Secret == w.Secret || rotated.OldSecretsUntil.IsZero() {
			t.Errorf("%+v", rotated)
		}
		l.do("PUT", "/v1/webhooks/alerts", operator, `{"url":"https://example.com/c","events":["task.failed"],"enabled":false}`).want(200).into(&changed)
		if changed.Enabled || changed.URL != "https://example.com/c" || changed.Queue != "" || changed.DisabledReason == nil {
			t.Errorf("%+v", changed)
		}
		l.do("POST", "/v1/webhooks/alerts/test", operator, "").refused(409, v1.CodeWebhookDisabled)
		l.do("DELETE", "/v1/webhooks/alerts", operator, "").want(200)
		for _, call := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"GET", "/deliveries"}, {"POST", "/test"}, {"POST", "/rotate-secret"}} {
			l.do(call[0], "/v1/webhooks/alerts"+call[1], operator, "").refused(404, v1.CodeWebhookNotFound)
		}
	}, withOutside(out))
}

// Bad input is a clear 4xx, and stores nothing.
func TestContractBadWebhooks(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		operator := l.control(roleOperator)
		for body, want := range map[string]string{
			`{"url":"https://example.com"}`:                                          "events",
			`{"url":"https://example.com","events":[]}`:                              "events",
			`{"url":"https://example.com","events":["task.exploded"]}`:               "events",
			`{"url":"https://example.com","events":["task.*","system.swept"]}`:       "GET /v1/events",
			`{"url":"http://example.com","events":["task.*"]}`:                       "url",
			`{"events":["task.*"]}`:                                                  "url",
			`{"url":"https://example.com","events":["task.*"],"secret":"abc"}`:       "secret",
			`{"url":"https://example.com","events":["task.*"],"queue":"a b"}`:        "queue",
			`{"url":"https://example.com","events":["task.*"],"webhookId":"a/b"}`:    "webhookId",
			`{"url":"https://example.com","events":["task.*"],"filter":{"queue":1}}`: "filter",
			`{"url":"https://example.com","events":"task.*"}`:                        "events",
		} {
			if got := l.do("POST", "/v1/webhooks", operator, body); got.status != 400 || !strings.Contains(fmt.Sprint(got.body), want) {
				t.Errorf("%s: %d %s", body, got.status, got.body)
			}
		}
		var list v1.WebhookList
		l.do("GET", "/v1/webhooks", operator, "").want(200).into(&list)
		if list.TotalCount != 0 {
			t.Errorf("stored: %+v", list)
		}
		l.do("POST", "/v1/webhooks", operator, `{"webhookId":"w","url":"https://example.com","events":["task.*"]}`).want(201)
		l.do("POST", "/v1/webhooks", operator, `{"webhookId":"w","url":"https://example.com","events":["task.*"]}`).
			refused(409, v1.CodeWebhookExists)
		for _, body := range []string{`{}`, `{"deliveryId":"dlv_1","since":"2020-01-01T00:00:00Z"}`, `{"deliveryId":"abc"}`} {
			if got := l.do("POST", "/v1/webhooks/w/redeliver", operator, body); got.status != 400 {
				t.Errorf("%s: %d %s", body, got.status, got.body)
			}
		}
		foreign := l.do("POST", "/v1/webhooks/w/redeliver", operator, `{"pageToken":"abc"}`).refused(400, v1.CodeInvalidCursor)
		if foreign.Field != "pageToken" || !strings.HasPrefix(foreign.Message, "pageToken ") {
			t.Errorf("%+v", foreign)
		}
		l.do("POST", "/v1/webhooks/w/redeliver", operator, `{"deliveryId":"dlv_0000000000009"}`).refused(404, v1.CodeDeliveryNotFound)
		l.do("GET", "/v1/webhooks/w/deliveries?status=LOST", operator, "").refused(400, v1.CodeInvalidRequest)
	}, withOutside(&outside{status: 200}))
}
