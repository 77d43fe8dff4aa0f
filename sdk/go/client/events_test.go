//go:build go1.25

package client_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
)

func event(id string) string {
	return fmt.Sprintf("id: c%s\ndata: {\"id\":\"evt_%s\",\"type\":\"task.failed\",\ndata: \"data\":{}}\n\n", id, id)
}

// A stream continues where it was, whatever ends its connection, and reports where events are missing.
func TestEventsContinueWhereTheyWere(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		type connection struct {
			from   string // Last-Event-ID
			answer *http.Response
			lost   error
		}
		began := time.Now()
		script := []connection{
			{"", reply(200, "retry: 1500\nid: c0\n\n"+event("1")+event("2")), nil}, // cut
			{"c2", reply(503, `{"error":"overloaded"}`, "Retry-After", "2"), nil},
			{"c2", nil, errors.New("connection reset")},
			{"c2", reply(200, "retry: 1500\n: hello\n\n"+event("3")+"event: lagged\nid: c3\nretry: 4000\ndata: {}\n\n"), nil},
			{"c3", reply(200, "event: gap\nid: c5\ndata: {\"from\":\"2026-01-01T00:00:00Z\",\"to\":\"2026-01-01T00:01:00Z\",\"shards\":[1]}\n\n"+
				event("6")+"event: end\nid: c7\ndata: {\"reason\":\"draining\"}\n\n"), nil},
			{"c7", reply(403, `{"error":"forbidden"}`), nil},
		}
		n := 0
		c := newClient(t, "https://lubdub.example", client.Token(secret), client.Transport(carrier(func(r *http.Request) (*http.Response, error) {
			at := script[n]
			n++
			if got := r.Header.Get("Last-Event-ID"); got != at.from || r.Header.Get("Accept") != "text/event-stream" {
				t.Errorf("connection %d: from %q, want %q", n, got, at.from)
			}
			if after := r.URL.Query().Get("after"); (after == "now") != (n == 1) || r.URL.Query().Get("type") != "task.*" {
				t.Errorf("connection %d has the query %v", n, r.URL.Query())
			}
			return at.answer, at.lost
		})))
		stream := c.Events(client.EventQuery{Types: []string{"task.*"}, After: "now"})
		seen := ""
		for e, err := range stream.All(t.Context()) {
			switch gap := (*client.EventGap)(nil); {
			case errors.As(err, &gap):
				seen += fmt.Sprint(" gap", gap.Shards)
			case err != nil:
				seen += " " + fmt.Sprint(errors.Is(err, client.ErrForbidden))
			default:
				seen += " " + e.ID + "@" + stream.Cursor()
			}
		}
		if want := " evt_1@c1 evt_2@c2 evt_3@c3 gap[1] evt_6@c6 true"; seen != want || n != len(script) {
			t.Errorf("seen%s, want%s", seen, want)
		}
		if took := time.Since(began); took < 2*time.Second+4*time.Second+4*time.Second {
			t.Errorf("it came again too soon: all of it took %v", took)
		}
	})
}

// A stream from which nothing comes is a dead one.
func TestASilentStreamIsLeft(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		n, began := 0, time.Now()
		c := newClient(t, "https://a.example,https://b.example", client.Token(secret),
			client.Transport(carrier(func(r *http.Request) (*http.Response, error) {
				if n++; n == 2 {
					return reply(200, event("1")), nil
				}
				res := reply(200, "")
				res.Body = silent{r}
				return res, nil
			})))
		for e, err := range c.Events(client.EventQuery{}).All(t.Context()) {
			if err != nil || e.ID != "evt_1" {
				t.Fatalf("%+v, %v", e, err)
			}
			break
		}
		if n != 2 || time.Since(began) < 45*time.Second || time.Since(began) > 51*time.Second {
			t.Errorf("%d connections within %v", n, time.Since(began))
		}
	})
}

type silent struct{ r *http.Request }

func (s silent) Read([]byte) (int, error) {
	<-s.r.Context().Done()
	return 0, s.r.Context().Err()
}

func (silent) Close() error { return nil }

// The example of the specification, and what is not it.
func TestWebhooksAreVerified(t *testing.T) {
	key := []byte("0123456789abcdef01234567")
	now := time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)
	body := `{"type":"task.failed","timestamp":"2026-01-15T10:00:00.000Z","data":{"id":"evt_1","type":"task.failed","subject":"task_1","data":{}}}`
	sign := func(key []byte, id, at, body string) string {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
		return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	secretOf := func(key []byte) string { return "whsec_" + base64.StdEncoding.EncodeToString(key) }
	other := []byte("another key of 24 bytes!")
	good := sign(key, "evt_1", "1768471200", body)
	for name, test := range map[string]struct {
		id, at, signature, body string
		want                    error
	}{
		"good":                {"evt_1", "1768471200", good, body, nil},
		"one of several":      {"evt_1", "1768471200", "v1a,x " + sign(other, "x", "1", body) + " " + good, body, nil},
		"the rotated secret":  {"evt_1", "1768471200", sign(other, "evt_1", "1768471200", body), body, nil},
		"another body":        {"evt_1", "1768471200", good, body + " ", client.ErrWebhookSignature},
		"another id":          {"evt_2", "1768471200", good, body, client.ErrWebhookSignature},
		"too old":             {"evt_1", "1768470899", sign(key, "evt_1", "1768470899", body), body, client.ErrWebhookTime},
		"from the future":     {"evt_1", "1768471501", sign(key, "evt_1", "1768471501", body), body, client.ErrWebhookTime},
		"no timestamp":        {"evt_1", "", good, body, client.ErrWebhookHeaders},
		"no signature":        {"evt_1", "1768471200", "", body, client.ErrWebhookHeaders},
		"of another version":  {"evt_1", "1768471200", "v2," + good[3:], body, client.ErrWebhookSignature},
		"a signature cut off": {"evt_1", "1768471200", good[:20], body, client.ErrWebhookSignature},
	} {
		v, err := client.NewVerifier(secretOf(key), secretOf(other))
		if err != nil {
			t.Fatal(err)
		}
		v.Now = func() time.Time { return now }
		h := http.Header{}
		h.Set("webhook-id", test.id)
		h.Set("webhook-timestamp", test.at)
		h.Set("webhook-signature", test.signature)
		m, err := v.Verify(h, []byte(test.body))
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			if e, err := m.Event(); err != nil || e.Subject != "task_1" || m.ID != "evt_1" || m.Type != "task.failed" {
				t.Errorf("%s: %+v, %v", name, m, err)
			}
		}
	}
	for _, bad := range []string{"", "whsec_", "whsec_!!", secretOf(key)[6:], secretOf([]byte("short"))} {
		if _, err := client.NewVerifier(bad); err == nil || (len(bad) > 10 && strings.Contains(err.Error(), bad)) {
			t.Errorf("the secret %q: %v", bad, err)
		}
	}
}
