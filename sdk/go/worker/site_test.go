//go:build go1.25

package worker_test

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/internal/bubble"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
	"github.com/lubdub-io/lubdub/sdk/go/workertest"
)

// site is a server of workertest and a worker of it, in a bubble's time.
type site struct {
	*testing.T
	server *workertest.Server
	worker *worker.Worker
	ended  chan error
}

func newSite(t *testing.T, opts ...worker.Option) *site {
	t.Helper()
	return newSiteOf(t, workertest.New(t, workertest.MachineTime()), opts...)
}

func newSiteOf(t *testing.T, server *workertest.Server, opts ...worker.Option) *site {
	t.Helper()
	s := &site{T: t, server: server, ended: make(chan error, 1)}
	c, err := client.New(s.server.URL(), s.server.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	if s.worker, err = worker.New(c, "default", opts...); err != nil {
		t.Fatal(err)
	}
	return s
}

// run begins to work, and has the test end it.
func (s *site) run(handler worker.Handler) {
	s.worker.Handle("job", handler)
	go func() { s.ended <- s.worker.Run(context.Background()) }()
	synctest.Wait()
}

func (s *site) stop() error {
	s.worker.Close()
	return <-s.ended
}

func (s *site) enqueue() string {
	return s.server.Enqueue(v1.CreateTaskRequest{Queue: "default", Type: "job", Payload: json.RawMessage(`{"to":"a@b.c"}`)})
}

// paths are the requests whose paths end so, in their order.
func (s *site) paths(suffix string) (all []workertest.Request) {
	for _, r := range s.server.Requests() {
		if strings.HasSuffix(r.Path, suffix) {
			all = append(all, r)
		}
	}
	return all
}

func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	bubble.Run(t, f)
}

func untilDone(ctx context.Context, _ *worker.Task) (any, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A worker reports where it runs, from the orchestrator's environment.
func TestAWorkerReportsWhereItRuns(t *testing.T) {
	for name, value := range map[string]string{
		"POD_NAME": "mailer-7", "POD_NAMESPACE": "prod", "NODE_NAME": "node-1", "ZONE": "eu-1", "DEPLOYMENT": "mailer",
	} {
		t.Setenv(name, value)
	}
	inBubble(t, func(t *testing.T) {
		s := newSite(t, worker.Labels(map[string]string{"zone": "eu-2"}))
		s.run(untilDone)
		r := s.server.Workers()[0].Request
		want := map[string]string{"pod": "mailer-7", "namespace": "prod", "node": "node-1", "zone": "eu-2", "deployment": "mailer"}
		if !maps.Equal(r.Labels, want) || r.Name != "mailer-7" || r.MachineID != "node-1" {
			t.Errorf("%+v", r)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}
