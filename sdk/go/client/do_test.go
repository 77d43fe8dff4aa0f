//go:build go1.25

package client_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/lubdub-io/lubdub/sdk/go/client"
)

// What the client has no method of goes the same way as what it has: scope, token, repeats, errors; the answer's bytes are kept.
func TestAnyCallCanBeMade(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		requests := 0
		c := newClient(t, "https://lubdub.test", client.Token("t"), client.Scope("a", "b"), client.Transport(carrier(
			func(r *http.Request) (*http.Response, error) {
				if requests++; requests == 1 {
					return reply(503, `{"error":"store_unavailable"}`, "Retry-After", "1"), nil
				}
				if r.Method == http.MethodGet {
					return reply(404, `{"error":"not_found","message":"no such path"}`), nil
				}
				body, _ := io.ReadAll(r.Body)
				got := r.Method + " " + r.URL.String() + " " + string(body) + " " + r.Header.Get("Idempotency-Key")
				if got != `POST https://lubdub.test/v1/new?tenantId=a&workspaceId=b&x=1 {"n":1} k` || r.Header.Get("Authorization") != "Bearer t" {
					t.Errorf("it sends %s", got)
				}
				return reply(200, "{ \"later\" : 1 }"), nil
			})))
		query := url.Values{"x": {"1"}}
		raw, err := c.Do(t.Context(), client.Request{
			Method: http.MethodPost, Path: "/v1/new", Query: query, Body: map[string]int{"n": 1}, Key: "k",
		})
		if err != nil || string(raw) != "{ \"later\" : 1 }" || len(query) != 1 {
			t.Errorf("%s %v %v", raw, err, query)
		}
		if _, err := c.Do(t.Context(), client.Request{Path: "/v1/none"}); !errors.Is(err, client.ErrNotFound) {
			t.Error(err)
		}
	})
}
