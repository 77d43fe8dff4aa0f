//go:build go1.25

package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/internal/bubble"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/workertest"
)

// carrier answers requests in memory.
type carrier func(*http.Request) (*http.Response, error)

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
	}
	return c(r)
}

func reply(status int, body string, headers ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	bubble.Run(t, f)
}

func newClient(t *testing.T, url string, opts ...client.Option) *client.Client {
	t.Helper()
	c, err := client.New(url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// site is a server of workertest and a client of it, in a bubble's time.
type site struct {
	*testing.T
	server *workertest.Server
	client *client.Client
}

func newSite(t *testing.T, opts ...client.Option) *site {
	t.Helper()
	s := workertest.New(t, workertest.MachineTime())
	return &site{t, s, newClient(t, s.URL(), append(s.Options(), opts...)...)}
}

func ms(d time.Duration) *int64 {
	n := d.Milliseconds()
	return &n
}

// task is one that beats every 10 s and may be silent for 30.
func task() v1.CreateTaskRequest {
	return v1.CreateTaskRequest{HeartbeatIntervalMs: ms(10 * time.Second), HeartbeatTimeoutMs: ms(30 * time.Second)}
}

func (s *site) track(e *v1.TaskEnvelope, opts ...client.TrackOption) (context.Context, *client.Attempt) {
	s.Helper()
	ctx, a, err := s.client.Track(s.Context(), e, opts...)
	if err != nil {
		s.Fatal(err)
	}
	return ctx, a
}

func (s *site) push() (*v1.TaskEnvelope, context.Context, *client.Attempt) {
	s.Helper()
	e := s.server.Push(task())
	ctx, a := s.track(e)
	return e, ctx, a
}

// beats are the requests with beats, in their order.
func (s *site) beats() (all []workertest.Request) {
	for _, r := range s.server.Requests() {
		if r.Path == "/v1/heartbeats" || strings.HasSuffix(r.Path, "/heartbeat") {
			all = append(all, r)
		}
	}
	return all
}

func items(t *testing.T, r workertest.Request) []v1.HeartbeatItem {
	t.Helper()
	var many v1.HeartbeatsRequest
	if err := json.Unmarshal(r.Body, &many); err != nil {
		t.Fatal(err)
	}
	return many.Heartbeats
}

// causeIs reports whether a context has ended for a cause of a type.
func causeIs[T error](ctx context.Context) (T, bool) {
	var want T
	return want, errors.As(context.Cause(ctx), &want)
}

func wantCause(t *testing.T, ctx context.Context, want error) {
	t.Helper()
	if got := context.Cause(ctx); fmt.Sprintf("%T %v", got, got) != fmt.Sprintf("%T %v", want, want) {
		t.Errorf("the context ended with %T %v, want %T %v", got, got, want, want)
	}
}
