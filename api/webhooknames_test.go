package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/internal/dnstest"
	"github.com/lubdub-io/lubdub/internal/outbound"
	"github.com/lubdub-io/lubdub/internal/testenv"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

// withResolver makes the webhooks of a tracker resolve host names with r.
func withResolver(r *net.Resolver) func(*tracker.Options) {
	return func(o *tracker.Options) { o.WebhookPoster = outbound.New(outbound.Options{Resolver: r}) }
}

// No name server is queried while a webhook is saved, tested or listed in a file, so no webhook is saved later or otherwise because of a
// name.
func TestSavingAWebhookQueriesNoNameServer(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, l *live) {
		operator, answers := l.control(roleOperator), map[string]bool{}
		body := func(host string) string { return `"url":"https://` + host + `/","events":["task.failed"]}` }
		for i, host := range []string{"silent.example", "missing.example", "private.example"} {
			id := fmt.Sprint("w", i)
			l.do("POST", "/v1/webhooks", operator, `{"webhookId":"`+id+`",`+body(host)).want(201)
			put := l.do("PUT", "/v1/webhooks/"+id, operator, `{`+body(host)).want(200)
			answers[strings.NewReplacer(id, "ID", host, "HOST").Replace(string(put.body))] = true
			l.do("POST", "/v1/webhooks/"+id+"/test", operator, "").want(202)
			listed := webhooks.NewWebhook{
				Scope: model.Scope{Tenant: "t", Workspace: "w"}, ID: id,
				Secret:   "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
				Settings: webhooks.Settings{URL: "https://" + host + "/", Filter: events.Filter{Types: []string{"task.*"}}},
			}
			if err := l.tr.Webhooks.Manage(context.Background(), []webhooks.NewWebhook{listed}); err != nil {
				t.Errorf("listed in a file: %v", err)
			}
		}
		if len(answers) != 1 {
			t.Errorf("the answers differ: %v", answers)
		}
	}, withResolver(&net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		t.Error("a name server was queried")
		return nil, errors.New("queried")
	}}))
}

// The reported result of a delivery is the same whether the host's name does not exist or belongs to the internal network.
func TestDeliveriesRevealNoNames(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	known := map[string]string{"private.example.": "10.1.2.3", "metadata.example.": "169.254.169.254"}
	inMemory(t, func(t *testing.T, l *live) {
		operator, errs := l.control(roleOperator), map[string]bool{}
		hosts := []string{"missing.example.", "broken.example.", "private.example.", "metadata.example."}
		for i, host := range hosts {
			l.do("POST", "/v1/webhooks", operator,
				fmt.Sprintf(`{"webhookId":"w%d","url":"https://%s/","events":["task.failed"]}`, i, host)).want(201)
			l.do("POST", fmt.Sprintf("/v1/webhooks/w%d/test", i), operator, "").want(202)
		}
		if err := l.sweeper.Deliver(context.Background()); err != nil {
			t.Fatal(err)
		}
		for i := range hosts {
			var list v1.WebhookDeliveryList
			l.do("GET", fmt.Sprintf("/v1/webhooks/w%d/deliveries", i), operator, "").want(200).into(&list)
			if len(list.Deliveries) != 1 || list.Deliveries[0].Response == nil || list.Deliveries[0].Response.Error == nil {
				t.Fatalf("%+v", list)
			}
			errs[*list.Deliveries[0].Response.Error] = true
		}
		if len(errs) != 1 {
			t.Errorf("the errors differ: %v", errs)
		}
	}, withResolver(dnstest.Resolver(known)))
}
