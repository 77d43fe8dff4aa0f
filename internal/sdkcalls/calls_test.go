package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/bubble"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// raw is an operation as the document has it: the tests do not use what the generator found in it.
type raw struct {
	method, path string
	op           map[string]any
}

func operations(t *testing.T) map[string]raw {
	t.Helper()
	text, err := os.ReadFile("../../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Paths map[string]map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	all := map[string]raw{}
	for path, methods := range d.Paths {
		for method, op := range methods {
			all[op["operationId"].(string)] = raw{strings.ToUpper(method), path, op}
		}
	}
	return all
}

func (r *raw) parameters(in string) (names []string) {
	list, _ := r.op["parameters"].([]any)
	for _, p := range list {
		if p := p.(map[string]any); p["in"] == in {
			names = append(names, p["name"].(string))
		}
	}
	return names
}

func (r *raw) opens(kind string) bool {
	list, _ := r.op["security"].([]any)
	return slices.ContainsFunc(list, func(s any) bool { return s.(map[string]any)[kind] != nil })
}

// sent is a request with its body.
type sent struct {
	*http.Request
	body []byte
}

// record returns a client that tries twice, and the requests that it makes. Their answers are lost if `lose` is true.
func record(t *testing.T, lose bool, answer string) (*client.Client, *[]sent) {
	t.Helper()
	var seen []sent
	c, err := client.New("http://127.0.0.1:1", client.Token("tok"), client.Scope("acme", "prod"), client.Tries(2),
		client.Transport(transport(func(r *http.Request) (*http.Response, error) {
			one := sent{Request: r}
			if r.Body != nil {
				one.body, _ = io.ReadAll(r.Body)
			}
			if seen = append(seen, one); lose {
				return nil, errors.New("connection reset")
			}
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
		})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, &seen
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func method(t *testing.T, c *client.Client, id string) reflect.Value {
	t.Helper()
	m := reflect.ValueOf(c).MethodByName((&call{id: id}).goName())
	if !m.IsValid() {
		t.Fatalf("package client has no method %s", (&call{id: id}).goName())
	}
	return m
}

// arguments are those of a call: ids, the token "own", queries whose fields are all set, and requests that set nothing.
func arguments(m reflect.Type, ids []string) (all []reflect.Value) {
	for i := range m.NumIn() {
		in := m.In(i)
		switch {
		case m.IsVariadic() && i == m.NumIn()-1:
		case i == 0:
			all = append(all, reflect.ValueOf(context.Background()))
		case in.Kind() == reflect.Struct && strings.HasSuffix(in.Name(), "Query"):
			all = append(all, filled(in))
		case in.Kind() == reflect.String && len(ids) > 0:
			all, ids = append(all, reflect.ValueOf("id/of "+ids[0])), ids[1:]
		case in.Kind() == reflect.String:
			all = append(all, reflect.ValueOf("own"))
		default:
			all = append(all, reflect.Zero(in))
		}
	}
	return all
}

// filled is a query with a value in each field.
func filled(of reflect.Type) reflect.Value {
	q := reflect.New(of).Elem()
	for i := range q.NumField() {
		switch f := q.Field(i); f.Interface().(type) {
		case *bool:
			f.Set(reflect.ValueOf(new(bool)))
		case map[string]string:
			f.Set(reflect.ValueOf(map[string]string{"a": "b"}))
		case v1.Time:
			f.Set(reflect.ValueOf(v1.At(time.Unix(1, 0))))
		default:
			switch f.Kind() {
			case reflect.String:
				f.SetString("x")
			case reflect.Int, reflect.Int64:
				f.SetInt(7)
			case reflect.Slice:
				f.Set(reflect.MakeSlice(f.Type(), 1, 1))
				f.Index(0).SetString("x")
			}
		}
	}
	return q
}

// The Go client makes each operation of the contract, generated or not, with the path, query, token, body and retries that the document
// gives it.
func TestTheGoClientMakesEveryCall(t *testing.T) {
	for id, r := range operations(t) {
		t.Run(id, func(t *testing.T) { bubble.Run(t, func(t *testing.T) { makesCall(t, id, &r) }) })
	}
}

func makesCall(t *testing.T, id string, r *raw) {
	c, seen := record(t, true, "")
	m := method(t, c, id)
	m.Call(arguments(m.Type(), r.parameters("path")))
	tries := 2
	if r.op["x-idempotent"] == false {
		tries = 1
	}
	if len(*seen) != tries {
		t.Fatalf("%d requests, want %d", len(*seen), tries)
	}
	got := (*seen)[0]
	wanted := r.path
	for _, id := range r.parameters("path") {
		wanted = strings.Replace(wanted, "{"+id+"}", "id%2Fof%20"+id, 1)
	}
	if got.Method != r.method || got.URL.EscapedPath() != wanted {
		t.Errorf("%s %s, want %s %s", got.Method, got.URL.EscapedPath(), r.method, wanted)
	}
	wantToken, wantQuery := "", []string{}
	switch {
	case r.opens(workerToken):
		wantToken = "Bearer own"
	case r.opens(controlToken):
		wantToken, wantQuery = "Bearer tok", r.parameters("query")
	}
	if id == "getTask" || id == "listEvents" { // Result waits, and Events streams
		wantQuery = slices.DeleteFunc(wantQuery, func(name string) bool { return name == "waitMs" })
	}
	if id == "listQueues" || id == "nextFires" {
		wantQuery = slices.DeleteFunc(wantQuery, func(name string) bool { return name == "count" || name == "cron" })
	}
	if token := got.Header.Get("Authorization"); token != wantToken {
		t.Errorf("token %q, want %q", token, wantToken)
	}
	for _, name := range wantQuery {
		if !got.URL.Query().Has(name) {
			t.Errorf("the query %s has no %s", got.URL.RawQuery, name)
		}
	}
	if hasBody := r.op["requestBody"] != nil; hasBody != bytes.HasPrefix(got.body, []byte("{")) {
		t.Errorf("body %q", got.body)
	}
	if field, is := r.op["x-idempotent-by"].(string); is {
		first, second := map[string]any{}, map[string]any{}
		_, _ = json.Unmarshal(got.body, &first), json.Unmarshal((*seen)[1].body, &second)
		if key, is := first[field].(string); !is || key == "" || key != second[field] {
			t.Errorf("%s: %v, then %v", field, first[field], second[field])
		}
		m.Call(arguments(m.Type(), r.parameters("path")))
		if another := (*seen)[2].body; bytes.Equal(another, got.body) {
			t.Errorf("another call has the same %s", field)
		}
	}
}

// Without a token, a call that a worker's or the client's opens has the client's.
func TestTheClientsTokenIsUsedWithoutAWorkers(t *testing.T) {
	c, seen := record(t, false, "{}")
	if _, err := c.DrainWorker(t.Context(), "w", "", v1.DrainRequest{}); err != nil {
		t.Fatal(err)
	}
	got := (*seen)[0]
	if got.Header.Get("Authorization") != "Bearer tok" || got.URL.Query().Get("tenantId") != "acme" {
		t.Errorf("%s with %s", got.URL, got.Header.Get("Authorization"))
	}
	if _, err := c.ClaimTasks(t.Context(), "q", "", v1.ClaimRequest{}); err != nil || (*seen)[1].Header.Get("Authorization") != "" {
		t.Errorf("a claim without a worker's token: %v, %q", err, (*seen)[1].Header)
	}
}

// Each list has an iterator, which requests page after page.
func TestIteratorsRequestAllPages(t *testing.T) {
	for id, r := range operations(t) {
		if !slices.Contains(r.parameters("query"), "pageToken") {
			continue
		}
		t.Run(id, func(t *testing.T) {
			c, seen := record(t, false, `{"nextPageToken":"more"}`)
			m := reflect.ValueOf(c).MethodByName(strings.TrimPrefix(title(id), "List"))
			if !m.IsValid() {
				t.Fatal("there is no iterator")
			}
			given := arguments(m.Type(), r.parameters("path"))
			given[len(given)-1] = reflect.Zero(m.Type().In(m.Type().NumIn() - 1))
			m.Call(given)[0].Call([]reflect.Value{reflect.MakeFunc(m.Type().Out(0).In(0), func([]reflect.Value) []reflect.Value {
				return []reflect.Value{reflect.ValueOf(true)}
			})})
			if len(*seen) != 2 || (*seen)[1].URL.Query().Get("pageToken") != "more" {
				t.Errorf("%d requests", len(*seen))
			}
		})
	}
}

// A claim may take as long as it waits, in addition to the client's limit for a response.
func TestAClaimMayTakeAsLongAsItWaits(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		var took time.Duration
		c, err := client.New("http://127.0.0.1:1", client.Token("tok"), client.Timeout(5*time.Second), client.Tries(1),
			client.Transport(transport(func(r *http.Request) (*http.Response, error) {
				began := time.Now()
				<-r.Context().Done()
				took = time.Since(began)
				return nil, r.Context().Err()
			})))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		wait := int64(90_000)
		if _, err := c.ClaimTasks(t.Context(), "q", "own", v1.ClaimRequest{WaitMs: &wait}); err == nil || took != 95*time.Second {
			t.Errorf("it ended after %v: %v", took, err)
		}
	})
}

// A summary of the document, in the imperative, becomes a sentence about a method.
func TestThirdPerson(t *testing.T) {
	for about, want := range map[string]string{
		"Drain a machine. All.": "drains a machine. All.",
		"Undo a drain.":         "undoes a drain.",
		"Patch a schedule.":     "patches a schedule.",
		"Retry all tasks.":      "retries all tasks.",
		"Replay it.":            "replays it.",
		"Sweep.":                "sweeps.",
	} {
		if got := thirdPerson(about); got != want {
			t.Errorf("%q gives %q, not %q", about, got, want)
		}
	}
}

// What the generator does not know is refused.
func TestUnknownShapesAreRefused(t *testing.T) {
	const answers = `"responses":{"200":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/A"}}}}}`
	for name, op := range map[string]string{
		"a body without a name": `"security":[],"requestBody":{"content":{"application/json":{"schema":{"type":"array"}}}},` + answers,
		"no security":           answers,
		"another token":         `"security":[{"cookie":[]}],` + answers,
		"a query with a worker's token": `"security":[{"workerToken":[]}],"parameters":[{"in":"query","name":"x"}],` +
			answers,
		"two lists": `"security":[{"controlToken":[]}],"parameters":[{"in":"query","name":"pageToken"}],` + answers,
		"a query of no type": `"security":[{"controlToken":[]}],"parameters":[{"in":"query","name":"x"}],` +
			answers,
		"no answer": `"security":[]`,
	} {
		t.Run(name, func(t *testing.T) {
			d, err := read([]byte(`{"paths":{"/x":{"post":{"operationId":"x","summary":"Try it",` + op + `}}},"components":{"schemas":{
				"A":{"properties":{"as":{"type":"array","items":{}},"bs":{"type":"array","items":{}}}}}}}`))
			if err != nil {
				t.Fatal(err)
			}
			calls, err := d.calls()
			if err == nil {
				_, inGo := goCalls(calls)
				_, inTypeScript := typescriptCalls(calls)
				if inGo == nil || inTypeScript == nil {
					t.Error("it is generated")
				}
			}
		})
	}
}
