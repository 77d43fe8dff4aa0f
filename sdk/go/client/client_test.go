//go:build go1.25

package client_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

const secret = "super.secret.token"

func TestARefusalIsATypedError(t *testing.T) {
	c := newClient(t, "https://lubdub.example", client.Token(secret), client.Transport(carrier(func(r *http.Request) (*http.Response, error) {
		return reply(409, `{"error":"attempt_mismatch","message":"A newer attempt","expectedAttempt":2,"receivedAttempt":1,"new":1}`,
			"X-Request-Id", "req_7", "Retry-After", "3"), nil
	})))
	_, err := c.CancelTask(t.Context(), "task_1", v1.CancelRequest{})
	var e *client.Error
	if !errors.As(err, &e) || !errors.Is(err, client.ErrAttemptMismatch) || errors.Is(err, client.ErrTaskExpired) {
		t.Fatalf("%v", err)
	}
	if e.Status != 409 || e.Details.ExpectedAttempt != 2 || e.RequestID != "req_7" || e.RetryAfter != 3*time.Second ||
		e.Operation != "POST /v1/tasks/task_1/cancel" || !strings.Contains(err.Error(), "A newer attempt (request req_7)") {
		t.Errorf("%+v: %v", e, err)
	}
}

// A call is retried while that may help, and no sooner than the server wishes.
func TestCallsAreMadeAgain(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for name, test := range map[string]struct {
		answers []any // *http.Response, error
		call    func(*client.Client) error
		tries   int
		least   time.Duration
		code    client.Code
	}{
		"503 with Retry-After": {[]any{reply(503, `{"error":"store_unavailable"}`, "Retry-After", "7"), reply(200, `{}`)}, getTask, 2,
			7 * time.Second, ""},
		"a proxy's 502":    {[]any{reply(502, `<html>`), reply(200, `{}`)}, getTask, 2, 0, ""},
		"no connection":    {[]any{refused, refused, reply(200, `{}`)}, getTask, 3, 0, ""},
		"too often":        {[]any{refused, refused, refused, reply(429, `{"error":"overloaded"}`)}, getTask, 4, 0, client.ErrOverloaded},
		"a refusal":        {[]any{reply(404, `{"error":"task_not_found"}`)}, getTask, 1, 0, client.ErrTaskNotFound},
		"not the contract": {[]any{reply(200, `<html>`)}, getTask, 1, 0, "*"},
		"a lost answer": {[]any{io.ErrUnexpectedEOF, reply(201, `{"taskId":"task_1"}`)}, func(c *client.Client) error {
			_, err := c.CreateTask(context.Background(), v1.CreateTaskRequest{})
			return err
		}, 2, 0, ""},
		"what would be done twice":    {[]any{io.ErrUnexpectedEOF}, fire, 1, 0, "*"},
		"what no server received":     {[]any{refused, reply(202, `{}`)}, fire, 2, 0, ""},
		"what was not admitted (429)": {[]any{reply(429, `{"error":"overloaded"}`), reply(202, `{}`)}, fire, 2, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				began, n, keys := time.Now(), 0, map[string]bool{}
				c := newClient(t, "https://lubdub.example", client.Token(secret),
					client.Transport(carrier(func(r *http.Request) (*http.Response, error) {
						keys[r.Header.Get("Idempotency-Key")] = true
						n++
						if err, failed := test.answers[n-1].(error); failed {
							return nil, err
						}
						return test.answers[n-1].(*http.Response), nil
					})))
				err := test.call(c)
				if n != test.tries || time.Since(began) < test.least || len(keys) != 1 {
					t.Errorf("%d tries within %v, %d keys: %v", n, time.Since(began), len(keys), err)
				}
				if test.code == "" && err != nil || test.code == "*" && err == nil || len(test.code) > 1 && !errors.Is(err, test.code) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

func getTask(c *client.Client) error {
	_, err := c.GetTask(context.Background(), "task_1")
	return err
}

func fire(c *client.Client) error {
	_, err := c.FireSchedule(context.Background(), "nightly")
	return err
}

// A server that does not answer in time is not waited for: the client tries the next address, and starts with that one from then on.
func TestAddressesAreTriedInTurn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		requests := map[string]int{}
		c := newClient(t, "https://a.example,https://b.example/lubdub/", client.Token(secret), client.Timeout(2*time.Second),
			client.Transport(carrier(func(r *http.Request) (*http.Response, error) {
				requests[r.URL.Host]++
				if r.URL.Host == "a.example" {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				if r.URL.Path != "/lubdub/v1/tasks/task_1" {
					t.Errorf("requested %s", r.URL.Path)
				}
				return reply(200, `{}`), nil
			})))
		for range 3 {
			if err := getTask(c); err != nil {
				t.Fatal(err)
			}
		}
		if requests["a.example"] != 1 || requests["b.example"] != 3 {
			t.Errorf("requests: %v", requests)
		}
	})
}

func TestATokenThatIsRefusedIsRenewedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	tokens := []string{}
	c := newClient(t, "https://lubdub.example", client.TokenFile(path),
		client.Transport(carrier(func(r *http.Request) (*http.Response, error) {
			tokens = append(tokens, r.Header.Get("Authorization"))
			if r.Header.Get("Authorization") != "Bearer new" {
				return reply(401, `{"error":"unauthorized"}`), nil
			}
			return reply(200, `{}`), nil
		})))
	if err := getTask(c); !errors.Is(err, client.ErrUnauthorized) || len(tokens) != 1 {
		t.Fatalf("the same token was sent again: %q, %v", tokens, err)
	}
	write("new")
	if err := getTask(c); err != nil || len(tokens) != 3 {
		t.Errorf("%q: %v", tokens, err)
	}
}

// No text of a client contains a token, and no token goes where it should not.
func TestTokensStayWhereTheyBelong(t *testing.T) {
	taskToken := "x." + base64.RawURLEncoding.EncodeToString([]byte(`{"knd":"task"}`)) + ".x"
	for name, test := range map[string]struct {
		url  string
		opts []client.Option
		want string
	}{
		"http to another host":   {"http://lubdub.example", []client.Option{client.Token(secret)}, "client.AllowHTTP()"},
		"one of several":         {"https://a.example,http://b.example", []client.Option{client.Token(secret)}, "client.AllowHTTP()"},
		"credentials in the URL": {"https://user:" + secret + "@lubdub.example", nil, "client.Token"},
		"a token of a task":      {"https://lubdub.example", []client.Option{client.Token(taskToken)}, "token of a task"},
		"a token in quotes":      {"https://lubdub.example", []client.Option{client.Token(`"` + secret + ` "`)}, "without quotes"},
		"no address":             {"", nil, client.EnvURL},
		"not an address":         {"lubdub.example:80", nil, "https://host:port"},
	} {
		_, err := client.New(test.url, test.opts...)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, url := range []string{"http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1"} {
		c := newClient(t, url, client.Token(secret), client.Tries(1))
		if err := getTask(c); err == nil || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), secret) {
			t.Errorf("%v", err)
		}
	}
	c := newClient(t, "http://lubdub.example", client.Token(secret), client.AllowHTTP(), client.Transport(carrier(
		func(r *http.Request) (*http.Response, error) {
			return reply(302, "", "Location", "http://elsewhere.example"), nil
		})))
	if err := getTask(c); err == nil || !strings.Contains(err.Error(), "redirects are not followed") {
		t.Errorf("a redirect: %v", err)
	}
}

func TestRequestsNameTheCaller(t *testing.T) {
	c := newClient(t, "https://lubdub.example", client.Token(secret), client.UserAgent("mailer/3"), client.Scope("acme", "prod"),
		client.Transport(carrier(func(r *http.Request) (*http.Response, error) {
			if got := r.Header.Get("User-Agent"); got != "mailer/3 lubdub-go/"+client.Version() {
				t.Errorf("User-Agent is %q", got)
			}
			if q := r.URL.Query(); q.Get("tenantId") != "acme" || q.Get("workspaceId") != "prod" || q.Get("state") != "RUNNING,FAILED" ||
				len(q["label"]) != 2 || q["label"][1] != "b=x%2Cy" || q.Has("queue") {
				t.Errorf("the query is %v", q)
			}
			return reply(200, `{"tasks":[],"totalCount":null}`), nil
		})))
	if _, err := c.ListTasks(t.Context(), client.TaskQuery{
		State: []v1.State{v1.Running, v1.Failed}, Labels: map[string]string{"b": "x,y", "a": "1"},
	}); err != nil {
		t.Fatal(err)
	}
}

func TestPagesAreGoneThrough(t *testing.T) {
	c := newClient(t, "https://lubdub.example", client.Token(secret), client.Transport(carrier(func(r *http.Request) (*http.Response, error) {
		switch r.URL.Query().Get("pageToken") {
		case "":
			return reply(200, `{"tasks":[{"taskId":"a"},{"taskId":"b"}],"nextPageToken":"2"}`), nil
		case "2":
			return reply(200, `{"tasks":[{"taskId":"c"}],"nextPageToken":"3"}`), nil
		}
		return reply(400, `{"error":"invalid_request"}`), nil
	})))
	seen := ""
	for task, err := range c.Tasks(t.Context(), client.TaskQuery{}) {
		if seen += task.TaskID; err != nil {
			seen += "!"
		}
	}
	if seen != "abc!" {
		t.Errorf("seen %q", seen)
	}
}

func TestStatsAreRequestedWithSteps(t *testing.T) {
	var requests []string
	c := newClient(t, "https://lubdub.example", client.Token(secret), client.Transport(carrier(func(r *http.Request) (*http.Response, error) {
		requests = append(requests, r.URL.RequestURI())
		return reply(200, `{"series":{"steps":[{}]}}`), nil
	})))
	for _, q := range []client.StatsQuery{{}, {Steps: 12}} {
		if is, err := c.GetStats(t.Context(), q); err != nil || len(is.Series.Steps) != 1 {
			t.Errorf("%+v: %+v %v", q, is, err)
		}
	}
	if want := []string{"/v1/stats", "/v1/stats?steps=12"}; !slices.Equal(requests, want) {
		t.Errorf("requested %v, want %v", requests, want)
	}
}

func TestManyCreationsHaveTheirOwnOutcomes(t *testing.T) {
	c := newClient(t, "https://lubdub.example", client.Token(secret), client.Transport(carrier(func(r *http.Request) (*http.Response, error) {
		return reply(200, `{"results":[{"status":201,"taskId":"a","taskToken":"t","attempt":1},{"status":201,"taskId":"b","state":"QUEUED",
			"error":null},{"status":409,"error":"task_exists","message":"m"}]}`), nil
	})))
	tasks := []v1.CreateTasksItem{{}, {CreateTaskRequest: v1.CreateTaskRequest{Queue: "q"}}, {}}
	all, err := c.CreateTasks(t.Context(), tasks)
	if err != nil || all[0].Envelope.TaskToken != "t" || all[1].Task.State != v1.Queued || !errors.Is(all[2].Err, client.ErrTaskExists) {
		t.Errorf("%+v, %v", all, err)
	}
	if all[1].TaskID() != "b" || tasks[0].IdempotencyKey != "" {
		t.Errorf("%+v", tasks)
	}
}

// Creations among many are made again after the longest pause that the server asks for.
func TestManyCreationsAreMadeAgainWhenTheServerAsks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var times []time.Time
		c := newClient(t, "https://lubdub.example", client.Token(secret), client.Transport(carrier(func(*http.Request) (*http.Response, error) {
			if times = append(times, time.Now()); len(times) > 1 {
				return reply(200, `{"results":[{"status":201,"taskId":"a"},{"status":201,"taskId":"b"}]}`), nil
			}
			return reply(200, `{"results":[{"status":429,"error":"overloaded","message":"m","retryAfterMs":40000},
				{"status":503,"error":"store_unavailable","message":"m","retryAfterMs":1000}]}`), nil
		})))
		all, err := c.CreateTasks(t.Context(), make([]v1.CreateTasksItem, 2))
		if err != nil || all[0].TaskID() != "a" || all[1].TaskID() != "b" {
			t.Errorf("%+v, %v", all, err)
		}
		if pause := times[1].Sub(times[0]); pause < 40*time.Second || pause > 45*time.Second {
			t.Errorf("made again after %v", pause)
		}
	})
}

// Creations among many that are answered 503 or 429 are made again under the same keys until the call's deadline.
func TestManyCreationsAreMadeAgainUntilTheDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		rounds, keys := 0, map[string]string{}
		answer := carrier(func(r *http.Request) (*http.Response, error) {
			var in v1.CreateTasksRequest
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
				t.Error(err)
			}
			rounds++
			var results []string
			for _, item := range in.Tasks {
				if known := keys[item.TaskID]; item.IdempotencyKey == "" || (known != "" && known != item.IdempotencyKey) {
					t.Errorf("%s comes under the key %q, and before under %q", item.TaskID, item.IdempotencyKey, known)
				}
				keys[item.TaskID] = item.IdempotencyKey
				switch {
				case item.TaskID == "never":
					results = append(results, `{"status":503,"error":"store_unavailable","message":"m"}`)
				case item.TaskID == "later" && rounds < 8:
					results = append(results, `{"status":429,"error":"overloaded","message":"m"}`)
				case item.TaskID == "bad":
					results = append(results, `{"status":400,"error":"invalid_request","message":"m"}`)
				default:
					results = append(results, `{"status":201,"taskToken":"t","attempt":1,"taskId":"`+item.TaskID+`"}`)
				}
			}
			return reply(200, `{"results":[`+strings.Join(results, ",")+`]}`), nil
		})
		c := newClient(t, "https://lubdub.example", client.Token(secret), client.Transport(answer))
		var tasks []v1.CreateTasksItem
		for _, id := range []string{"never", "now", "bad", "later"} {
			tasks = append(tasks, v1.CreateTasksItem{CreateTaskRequest: v1.CreateTaskRequest{TaskID: id}})
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		all, err := c.CreateTasks(ctx, tasks)
		if err != nil || !errors.Is(all[0].Err, client.ErrStoreUnavailable) || all[1].TaskID() != "now" ||
			!errors.Is(all[2].Err, client.ErrInvalidRequest) || all[3].TaskID() != "later" {
			t.Errorf("%+v, %v", all, err)
		}
		if took := time.Since(began); took < 50*time.Second || took > time.Minute {
			t.Errorf("it has tried for %v", took)
		}
		before := rounds
		clear(keys) // another call draws others
		if _, err := c.CreateTasks(t.Context(), tasks[:1]); err != nil || rounds != before+4 {
			t.Errorf("without a deadline: %d tries, %v", rounds-before, err)
		}
	})
}
