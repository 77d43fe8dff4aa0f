package lubdubotel_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/lubdubotel"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
	"github.com/lubdub-io/lubdub/sdk/go/workertest"
)

// A handler's span continues the trace of the span in which its task was created.
func TestSpansContinueFromTheCreationToTheHandler(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	server := workertest.New(t)
	c, err := client.New(server.URL(), append(server.Options(), client.TraceContext(lubdubotel.Traceparent))...)
	if err != nil {
		t.Fatal(err)
	}
	w, err := worker.New(c, "mail", worker.Concurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	w.Use(lubdubotel.Traced(provider))
	inside := map[string]trace.SpanContext{}
	w.Handle("send", func(ctx context.Context, task *worker.Task) (any, error) {
		inside[task.ID()] = trace.SpanContextFromContext(ctx)
		switch string(task.Envelope.Payload) {
		case `"fails"`:
			return nil, client.Permanent(errors.New("no address"))
		case `"snoozes"`:
			if task.Attempt() == 1 {
				return nil, worker.Snooze(0)
			}
		case `"stops"`:
			return nil, worker.Cancelled("not wanted")
		case `"fails after a cancel"`:
			server.Cancel(task.ID(), "why")
			<-ctx.Done()
			return nil, errors.New("no address")
		case `"is cancelled"`:
			server.Cancel(task.ID(), "why")
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, nil
	})
	ctx, creation := provider.Tracer("test").Start(t.Context(), "order")
	ids := map[string]string{}
	for _, name := range []string{"works", "fails", "snoozes", "stops", "fails after a cancel", "is cancelled"} {
		task, err := c.Enqueue(ctx, "mail", "send", name)
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = task.TaskID
	}
	untraced, err := c.Enqueue(t.Context(), "mail", "send", "works")
	if err != nil {
		t.Fatal(err)
	}
	creation.End()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(t.Context()) }()
	server.Until("all tasks have ended", func() bool {
		for _, id := range append(slices.Collect(maps.Values(ids)), untraced.TaskID) {
			if s := server.Task(id).State; s != v1.Succeeded && s != v1.Failed && s != v1.Cancelled {
				return false
			}
		}
		return true
	})
	w.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	spans := map[string][]sdktrace.ReadOnlySpan{}
	for _, s := range recorder.Ended() {
		for _, a := range s.Attributes() {
			if a.Key == "messaging.message.id" {
				spans[a.Value.AsString()] = append(spans[a.Value.AsString()], s)
			}
		}
	}
	for name, id := range ids {
		want := map[string]int{"snoozes": 2}[name]
		if len(spans[id]) != max(1, want) {
			t.Fatalf("%s: %d spans", name, len(spans[id]))
		}
		for i, s := range spans[id] {
			if s.Parent().SpanID() != creation.SpanContext().SpanID() || s.SpanContext().TraceID() != creation.SpanContext().TraceID() ||
				s.Name() != "process mail" || s.SpanKind() != trace.SpanKindConsumer {
				t.Errorf("%s: %s of %v, parent %v", name, s.Name(), s.SpanContext(), s.Parent())
			}
			attributes := attribute.NewSet(s.Attributes()...)
			for key, want := range map[attribute.Key]any{"messaging.system": "lubdub", "messaging.destination.name": "mail",
				"lubdub.task.type": "send", "lubdub.task.attempt": int64(i + 1)} {
				if got, _ := attributes.Value(key); got.AsInterface() != want {
					t.Errorf("%s: %s is %v, want %v", name, key, got.AsInterface(), want)
				}
			}
			if failed := s.Status().Code == codes.Error; failed != strings.HasPrefix(name, "fails") || failed != (len(s.Events()) > 0) {
				t.Errorf("%s: %+v %+v", name, s.Status(), s.Events())
			}
		}
		if last := spans[id][len(spans[id])-1].SpanContext(); !inside[id].Equal(last) {
			t.Errorf("%s: the handler ran in %v, want %v", name, inside[id], last)
		}
	}
	if s := spans[untraced.TaskID]; len(s) != 1 || s[0].Parent().IsValid() {
		t.Errorf("a task that was created outside of a span: %+v", s)
	}
}
