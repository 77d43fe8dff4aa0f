// Package lubdubotel connects Lubdub's clients and workers to OpenTelemetry traces: a handler's span continues the trace in which its task
// was created.
package lubdubotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
)

const scope = "github.com/lubdub-io/lubdub/sdk/go/lubdubotel"

// Traceparent returns the W3C trace context of the span of ctx; empty without one. Give it to client.TraceContext.
func Traceparent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get("traceparent")
}

// Traced runs each handler in a span, named `process` and the queue, whose parent is the span in which the task was created. A failure is
// recorded; a snooze, a cancellation and a task that is given back are not failures. The default provider is the global one.
func Traced(provider trace.TracerProvider) worker.Middleware {
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	tracer := provider.Tracer(scope)
	return func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, t *worker.Task) (any, error) {
			queue := ""
			if t.Envelope.Queue != nil {
				queue = *t.Envelope.Queue
			}
			parent := propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": t.Envelope.Traceparent})
			ctx, span := tracer.Start(parent, "process "+queue, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
				attribute.String("messaging.system", "lubdub"), attribute.String("messaging.operation.type", "process"),
				attribute.String("messaging.destination.name", queue), attribute.String("messaging.message.id", t.ID()),
				attribute.String("lubdub.task.type", t.Type()), attribute.Int("lubdub.task.attempt", t.Attempt()),
			))
			defer span.End() // records a panic
			output, err := next(ctx, t)
			if err != nil && !planned(ctx, err) {
				span.RecordError(err)
				span.SetStatus(codes.Error, err.Error())
			}
			return output, err
		}
	}
}

// planned reports whether a handler's error is not a failure: the task is snoozed or cancelled, or given back since the worker stops.
func planned(ctx context.Context, err error) bool {
	cause := context.Cause(ctx)
	return errors.As(err, new(*client.SnoozeError)) || errors.As(err, new(client.Cancelled)) ||
		errors.As(cause, new(client.Cancelled)) && errors.Is(err, context.Canceled) || errors.Is(cause, worker.ErrStopping)
}
