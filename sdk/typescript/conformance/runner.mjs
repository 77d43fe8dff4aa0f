// Runs the commands of the conformance harness with the TypeScript SDK; sdk/conformance/README.md describes them.
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import {
  AttemptEnd, Cancelled, Client, currentTask, Failure, OutputError, permanent, retryAfter, Snooze, StoppedError, UnfinishedError,
  Worker, WorkerEnd,
} from 'lubdub';

const emit = (event) => writeSync(1, JSON.stringify(event) + '\n');

const gates = new Map();
let order;
let close = () => {};

/** A gate is a promise and the function that opens it. */
function gate(name) {
  if (!gates.has(name)) {
    let open;
    gates.set(name, { opened: new Promise((resolve) => (open = resolve)), open: () => open() });
  }
  return gates.get(name);
}

/** The name of the reason why an attempt is over; undefined: its own completion. */
function reasonOf(end) {
  return end instanceof AttemptEnd || end instanceof WorkerEnd ? { reason: end.name, detail: end.reason } : undefined;
}

/** The name of the reason why a completion failed. */
function failureOf(error) {
  return reasonOf(error)?.reason ?? 'Refused';
}

/** Runs the steps of a task: work reports progress, signal ends the work. */
async function perform(envelope, work, signal) {
  const { taskId: task, attempt } = envelope;
  const { progressPct, message } = work.lastProgress ?? {};
  const lastProgress = work.lastProgress && { progressPct, message };
  emit({ event: 'begun', task, attempt, traceparent: work.traceparent || undefined, lastProgress, checkpoint: work.lastCheckpoint });
  let over = false;
  const ended = new Promise((resolve) => {
    const onAbort = () => {
      const why = reasonOf(signal.reason);
      if (!over && why) emit({ event: 'ended', task, attempt, ...why });
      resolve();
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    for (const step of stepsOf(envelope)) {
      const end = await act(step, { task, attempt, work, signal, ended });
      if (end) return end.output;
    }
    return null;
  } finally {
    over = true;
    emit({ event: 'returned', task, attempt });
  }
}

function stepsOf({ taskId, attempt, type }) {
  const { handlers = {} } = order;
  return handlers[`${taskId}/${attempt}`] ?? handlers[taskId] ?? handlers[`type:${type}`] ?? [];
}

/** Runs one step; a returned output ends the steps. */
async function act(step, { task, attempt, work, signal, ended }) {
  const [name, value] = Object.entries(step)[0];
  switch (name) {
    case 'progress':
      return void work.progress(...value);
    case 'checkpoint':
      return void work.checkpoint(value);
    case 'gate':
      return void (await gate(value).opened);
    case 'untilEnded':
      return void (await ended);
    case 'sleep':
      return void (await setTimeout(value, undefined, { signal }).catch(() => Promise.reject(signal.reason)));
    case 'spin':
      for (const end = Date.now() + value; Date.now() < end; );
      return undefined;
    case 'work':
      return void (await workInSteps(value, { task, attempt, signal }));
    case 'say':
      return void emit({ event: 'said', task, attempt, what: value });
    case 'return':
      return { output: value };
    case 'returnBig':
      return { output: 'x'.repeat(value) };
    case 'returnNotJSON':
      return { output: 1n };
    case 'fail':
      if (value.category) throw new Failure(value.message, value);
      if (value.retryAfterMs !== undefined) throw retryAfter(new Error(value.message), value.retryAfterMs);
      throw new Error(value.message);
    case 'snooze':
      throw new Snooze(value);
    case 'cancelled':
      throw new Cancelled(value);
    case 'panic':
      return Promise.reject(new RangeError(value));
    case 'stopped':
      throw new StoppedError(value.phase, value.partial);
    case 'giveUp':
      throw signal.reason;
    default:
      throw new Error(`the runner knows no step ${name}`);
  }
}

/** Works in short pieces, and before each checks whether it may continue; reports the first and the last one. */
async function workInSteps(ms, { task, attempt, signal }) {
  let from;
  let until;
  try {
    for (const end = performance.now() + ms; performance.now() < end; ) {
      const now = Date.now();
      signal.throwIfAborted();
      from ??= now;
      until = now;
      await setTimeout(10);
    }
  } finally {
    emit({ event: 'worked', task, attempt, from, until });
  }
}

async function track(client, envelope) {
  const { taskId: task, attempt: number } = envelope;
  const attempt = client.track(envelope);
  try {
    await attempt.started;
  } catch (error) {
    return emit({ event: 'refused', task, attempt: number, reason: failureOf(error) });
  }
  try {
    const { finalState, willRetry = false, nextAttempt } = await complete(attempt, () => perform(envelope, attempt, attempt.signal));
    emit({ event: 'settled', task, attempt: number, finalState, willRetry, nextAttempt });
  } catch (error) {
    emit({ event: 'settled', task, attempt: number, failure: failureOf(error) });
  }
}

async function complete(attempt, work) {
  let output;
  try {
    output = await work();
  } catch (error) {
    return attempt.fail(error);
  }
  try {
    return await attempt.done(output);
  } catch (error) {
    if (error instanceof OutputError) return attempt.fail(permanent(error));
    throw error;
  }
}

async function runWorker(client) {
  const { queue, name, types, concurrency, lease, softStopMs, hardStopMs, taskTimeoutMs, watchdogMs } = order;
  const options = { client, name, types, concurrency, lease, softStopMs, hardStopMs, taskTimeoutMs, watchdogMs };
  const workers = Array.from({ length: order.workers ?? 1 }, () => makeWorker(queue, options));
  close = () => workers.forEach((worker) => worker.close());
  const ends = await Promise.allSettled(workers.map((worker) => worker.runUntilSignal()));
  const failed = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));
  const other = failed.find((error) => !(error instanceof UnfinishedError));
  if (other) throw other;
  if (failed.length > 0) throw new UnfinishedError(failed.flatMap((error) => error.taskIds));
}

function makeWorker(queue, options) {
  const worker = new Worker(queue, options);
  const handler = (task, signal) => {
    if (currentTask() !== task) throw new Error('the task is not in the context of its handler');
    return perform(task.envelope, task, signal);
  };
  if (order.default) worker.handleDefault(handler);
  for (const type of order.types ?? []) worker.handle(type, handler);
  return worker;
}

async function create(client) {
  const { creations } = order;
  const keyless = creations.filter((item) => !item.idempotencyKey);
  const made = await client.createTasks(creations);
  const tasks = made.map(({ envelope, task }) => (envelope ?? task)?.taskId ?? '');
  emit({ event: 'created', tasks, drawn: keyless.filter((item) => item.idempotencyKey).length });
}

async function run() {
  const { urls, token, tokenFile, caFile, lease } = order;
  const client = new Client(urls.join(','), { token, tokenFile, caFile, lease });
  try {
    if (order.mode === 'track') await Promise.all(order.envelopes.map((envelope) => track(client, envelope)));
    else if (order.mode === 'create') await create(client);
    else await runWorker(client);
  } finally {
    client.close();
  }
}

async function main() {
  let unfinished = [];
  let code = 0;
  try {
    await run();
  } catch (error) {
    code = 1;
    if (error instanceof UnfinishedError) unfinished = error.taskIds;
    else emit({ event: 'error', message: String(error?.stack ?? error) });
  }
  emit({ event: 'exit', unfinished });
  process.exit(code);
}

const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  const command = JSON.parse(line);
  if (!order) {
    order = command;
    void main();
  } else if (command.do === 'release') gate(command.gate).open();
  else if (command.do === 'close') close();
});
lines.on('close', () => process.exit(0));
