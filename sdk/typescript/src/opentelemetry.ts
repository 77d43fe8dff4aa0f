import { context, type Context, isSpanContextValid, SpanKind, SpanStatusCode, trace, type Tracer } from '@opentelemetry/api';
import { Cancelled, StoppedError } from './ends.js';
import { meansStopped, Snooze, textOf } from './failure.js';
import { parseTraceparent } from './traceparent.js';
import { version } from './version.js';
import { Stopping } from './worker/ends.js';
import type { Middleware, Task } from './worker/task.js';

/**
 * Middleware that runs handlers in a span, `process <queue>`, whose parent is the task's traceparent. Only a failure is recorded as an
 * error, not a snooze, a cancellation, or the return of a task because the worker stops.
 */
export function traced(tracer: Tracer = trace.getTracer('lubdub', version)): Middleware {
  return (next) => (task, signal) => {
    const queue = task.envelope.queue ?? '';
    const attributes = {
      'messaging.system': 'lubdub',
      'messaging.operation.type': 'process',
      'messaging.destination.name': queue,
      'messaging.message.id': task.id,
      'lubdub.task.type': task.type,
      'lubdub.task.attempt': task.attempt,
    };
    return tracer.startActiveSpan(`process ${queue}`, { kind: SpanKind.CONSUMER, attributes }, parentOf(task), async (span) => {
      try {
        return await next(task, signal);
      } catch (error) {
        if (isFailure(error, signal.reason)) {
          span.recordException(error instanceof Error ? error : textOf(error));
          span.setStatus({ code: SpanStatusCode.ERROR, message: textOf(error) });
        }
        throw error;
      } finally {
        span.end();
      }
    });
  };
}

/** The W3C traceparent of the active span, for a client's `traceparent`; undefined: no span is active. */
export function activeTraceparent(): string | undefined {
  const span = trace.getActiveSpan()?.spanContext();
  if (!span || !isSpanContextValid(span)) return undefined;
  return `00-${span.traceId}-${span.spanId}-${span.traceFlags.toString(16).padStart(2, '0')}`;
}

/** The context for a task's span. Without a traceparent the span has no parent: a span that is active here is of the worker's start. */
function parentOf(task: Task): Context {
  const parent = parseTraceparent(task.traceparent);
  if (!parent) return trace.deleteSpan(context.active());
  const { traceId, spanId, flags: traceFlags } = parent;
  return trace.setSpanContext(context.active(), { traceId, spanId, traceFlags, isRemote: true });
}

/** Whether a task fails by an error that its handler has thrown. */
function isFailure(error: unknown, reason: unknown): boolean {
  if (error instanceof Snooze || error instanceof Cancelled || error instanceof StoppedError || reason instanceof Stopping) return false;
  return !(reason instanceof Cancelled && meansStopped(error, reason));
}
