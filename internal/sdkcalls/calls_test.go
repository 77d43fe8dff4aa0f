package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/sdk/go/client"
)

// The Go client makes each call of the contract: to its path, in the client's scope, with all parameters of its query. The calls that are
// not generated are tested, too.
func TestTheGoClientMakesEveryCall(t *testing.T) {
	text, err := os.ReadFile("../../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	d, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range d.calls() {
		t.Run(c.id, func(t *testing.T) {
			var seen []*http.Request
			made, err := client.New("http://127.0.0.1:1", client.Token("tok"), client.Scope("acme", "prod"), client.Tries(1),
				client.Transport(transport(func(r *http.Request) (*http.Response, error) {
					seen = append(seen, r)
					return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(`{}`)), Request: r}, nil
				})))
			if err != nil {
				t.Fatal(err)
			}
			defer made.Close()
			name := c.goName()
			if c.id == "openapi" {
				name = "OpenAPI"
			}
			method := reflect.ValueOf(made).MethodByName(name)
			if !method.IsValid() {
				t.Fatalf("package client has no method %s", name)
			}
			wanted := c.path
			for _, id := range c.ids {
				wanted = strings.Replace(wanted, "{"+id+"}", "id%2Fof%20"+id, 1)
			}
			method.Call(arguments(method.Type(), &c, t))
			if len(seen) != 1 {
				t.Fatalf("%d requests", len(seen))
			}
			r := seen[0]
			if r.Method != c.method || r.URL.EscapedPath() != wanted {
				t.Errorf("it calls %s %s, not %s %s", r.Method, r.URL.EscapedPath(), c.method, wanted)
			}
			if own := c.opened&control != 0; own != (r.Header.Get("Authorization") == "Bearer tok") {
				t.Errorf("Authorization: %q", r.Header.Get("Authorization"))
			} else if own && (r.URL.Query().Get("tenantId") != "acme" || r.URL.Query().Get("workspaceId") != "prod") {
				t.Errorf("query: %s", r.URL.RawQuery)
			}
			if iterator := strings.TrimPrefix(name, "List"); c.entries != "" && !reflect.ValueOf(made).MethodByName(iterator).IsValid() {
				t.Errorf("package client has no method %s, which yields all pages", iterator)
			}
		})
	}
}

// arguments are arguments of a call: the ids of its path, and what else has no fields.
func arguments(of reflect.Type, c *call, t *testing.T) (all []reflect.Value) {
	ids := c.ids
	for i := range of.NumIn() {
		in := of.In(i)
		switch {
		case of.IsVariadic() && i == of.NumIn()-1:
		case i == 0:
			all = append(all, reflect.ValueOf(context.Background()))
		case in.Kind() == reflect.String && len(ids) > 0:
			all, ids = append(all, reflect.ValueOf("id/of "+ids[0])), ids[1:]
		default:
			if in.Kind() == reflect.Struct && strings.HasSuffix(in.Name(), "Query") {
				hasParameters(in, c, t)
			}
			all = append(all, reflect.Zero(in))
		}
	}
	return all
}

func hasParameters(query reflect.Type, c *call, t *testing.T) {
	has := map[string]bool{}
	for i := range query.NumField() {
		has[query.Field(i).Tag.Get("url")] = true
	}
	for _, p := range c.query {
		if !has[p.Name] {
			t.Errorf("%s has no field for %s", query.Name(), p.Name)
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// A summary of the document, in the imperative, becomes a sentence about a method.
func TestSentences(t *testing.T) {
	for about, want := range map[string]string{
		"Drain a machine. All.": "X drains a machine. All.",
		"Undo a drain.":         "X undoes a drain.",
		"Patch a schedule.":     "X patches a schedule.",
		"Retry all tasks.":      "X retries all tasks.",
	} {
		if got := goSentence("X", about); got != want {
			t.Errorf("%q gives %q, not %q", about, got, want)
		}
	}
}
