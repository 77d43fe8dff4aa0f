import assert from 'node:assert/strict';
import test, { after, beforeEach } from 'node:test';
import { context, INVALID_SPAN_CONTEXT, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { Cancelled, Client, type Handler, Snooze, StoppedError, Worker, type WorkerOptions } from 'lubdub';
import { activeTraceparent, traced } from 'lubdub/opentelemetry';
import { FakeServer } from 'lubdub/testing';
import { untilEnded } from './site.js';

const exporter = new InMemorySpanExporter();
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const tracer = trace.getTracer('test');

beforeEach(() => exporter.reset());
after(() => {
  trace.disable();
  context.disable();
});

async function begin(handler: Handler, options: WorkerOptions = {}) {
  const server = new FakeServer();
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const client = new Client(server.url, { ...server.options(), logger, traceparent: activeTraceparent });
  const worker = new Worker('default', { client, ...options }).use(traced()).handle('work', handler);
  const running = tracer.startActiveSpan('start', (span) => worker.run().finally(() => span.end()));
  await server.until('it is registered', () => worker.isRegistered);
  const over = (id: string) => server.until('it is over', () => server.isOver(id) && worker.activeCount === 0);
  const stop = async () => {
    worker.close();
    await server.finish(running.catch(() => {}));
    client.close();
  };
  return { server, client, worker, over, stop };
}

const processed = (): ReadableSpan[] => exporter.getFinishedSpans().filter((span) => span.name === 'process default');

test("a handler's span continues the trace in which its task was created", async () => {
  let inside: string | undefined;
  const s = await begin(async (task) => {
    await new Promise((resolve) => setImmediate(resolve));
    inside = activeTraceparent();
    tracer.startActiveSpan('inner', (span) => span.end());
    return task.payload;
  });
  const { taskId } = await tracer.startActiveSpan('create', async (span) => {
    const task = await s.client.enqueue('default', 'work', 1);
    span.end();
    return task;
  });
  await s.over(taskId);
  await s.stop();
  const [span, ...others] = processed();
  assert.deepEqual(others, []);
  const named = (name: string) => exporter.getFinishedSpans().find((one) => one.name === name)!;
  const { traceId, spanId } = named('create').spanContext();
  assert.equal(span!.spanContext().traceId, traceId);
  assert.deepEqual([span!.parentSpanContext?.spanId, span!.parentSpanContext?.isRemote], [spanId, true]);
  assert.equal(inside, `00-${traceId}-${span!.spanContext().spanId}-01`);
  assert.equal(named('inner').parentSpanContext?.spanId, span!.spanContext().spanId);
  assert.deepEqual([span!.kind, span!.status.code, span!.events.length], [4, 0, 0]); // CONSUMER, UNSET
  assert.deepEqual(span!.attributes, {
    'messaging.system': 'lubdub',
    'messaging.operation.type': 'process',
    'messaging.destination.name': 'default',
    'messaging.message.id': taskId,
    'lubdub.task.type': 'work',
    'lubdub.task.attempt': 1,
  });
  assert.equal(activeTraceparent(), undefined);
  assert.equal(context.with(trace.setSpanContext(ROOT_CONTEXT, INVALID_SPAN_CONTEXT), activeTraceparent), undefined);
});

test('a span of a task without a trace has no parent, and one that is not sampled is not recorded', async () => {
  const s = await begin(() => 1);
  await s.over(s.server.enqueue({ type: 'work' }));
  const [alone] = processed();
  assert.equal(alone!.parentSpanContext, undefined);
  exporter.reset();
  await s.over(s.server.enqueue({ type: 'work', traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00` }));
  assert.deepEqual(processed(), []);
  await s.stop();
});

test('only failures are recorded as errors', async () => {
  const s = await begin(async (task, signal) => {
    if (task.id === 'fails') throw new TypeError('broken');
    if (task.id === 'text') throw 'a text';
    if (task.id === 'snoozed' && task.attempt === 1) throw new Snooze(1000);
    if (task.id === 'stops') throw new StoppedError('loading');
    if (task.id === 'cancels') throw new Cancelled('unsubscribed');
    if (task.id === 'snoozed') return 1;
    await untilEnded(signal);
    if (task.id === 'cancelled') throw signal.reason as Error;
    if (task.id === 'aborted') throw new DOMException('x', 'AbortError');
    if (task.id === 'stopped') throw new StoppedError('loading', 1);
    throw new Error('failed after the cancel');
  });
  const seen: Record<string, unknown> = {};
  for (const taskId of ['fails', 'text', 'snoozed', 'cancels', 'stops', 'cancelled', 'aborted', 'stopped', 'unclean']) {
    s.server.enqueue({ type: 'work', taskId });
    await s.server.until('it has begun', () => s.server.task(taskId).attempt > 0);
    s.server.cancel(taskId === 'snoozed' ? s.server.enqueue({ queue: 'other' }) : taskId);
    await s.over(taskId);
    seen[taskId] = processed().map(({ status, events }) => [
      status.code,
      status.message,
      events.map((event) => event.attributes?.['exception.message']),
    ]);
    exporter.reset();
  }
  const fine = [0, undefined, []];
  assert.deepEqual(seen, {
    fails: [[2, 'broken', ['broken']]],
    text: [[2, 'a text', ['a text']]],
    snoozed: [fine, fine],
    cancels: [fine],
    stops: [fine],
    cancelled: [fine],
    aborted: [fine],
    stopped: [fine],
    unclean: [[2, 'failed after the cancel', ['failed after the cancel']]],
  });
  await s.stop();
});

test('a task that is returned because the worker stops has no error', async () => {
  const s = await begin(async (_, signal) => {
    await untilEnded(signal);
    throw new Error('not finished');
  });
  s.server.enqueue({ type: 'work' });
  await s.server.until('it is at work', () => s.worker.activeCount === 1);
  await s.stop();
  assert.deepEqual(
    processed().map(({ status }) => status.code),
    [0],
  );
});
