import type { ProgressUpdate } from '../beats/messages.js';
import { Cancelled, StoppedError } from '../ends.js';
import { checkpointOf, meansStopped } from '../failure.js';
import type { Progress, TaskEnvelope } from '../types.js';
import { explain } from '../worker/ends.js';
import { type Handler, outputOf, reportsOf, Task } from '../worker/task.js';
import { Worker } from '../worker/worker.js';
import { FakeServer } from './server.js';

export interface RunHandlerOptions {
  /** The type of the task; by default it has none. */
  type?: string;
  /** The number of the attempt; by default 1, the first. */
  attempt?: number;
  /** The last checkpoint of the earlier attempts; by default they have set none. */
  lastCheckpoint?: unknown;
  /** The handler's signal; end it with a reason such as `new Cancelled()`. */
  signal?: AbortSignal;
  /** Other fields of the task's envelope. */
  envelope?: Partial<TaskEnvelope>;
}

/** Resolves with the handler's output, and has what it has reported so far. */
export interface HandlerRun<Out> extends Promise<Out> {
  readonly progress: { pct: number; message: string }[];
  readonly checkpoints: unknown[];
}

/**
 * Runs a handler without a server, or, with its middleware, a worker's handler of the type. Payload, output and checkpoints pass through
 * JSON, as they do with a server. It resolves with the output, and rejects with what ends the attempt in another way, as a worker would
 * report it: the error, a Snooze, or, after a cancel, the signal's reason. The worker need not run. Limits of time do not apply.
 */
export function runHandler<In = unknown, Out = unknown>(
  handler: Handler<In, Out> | Worker,
  payload?: In,
  options: RunHandlerOptions = {},
): HandlerRun<Out> {
  const { type = '', signal = new AbortController().signal } = options;
  const run = { progress: [] as HandlerRun<Out>['progress'], checkpoints: [] as unknown[] };
  const pass = ({ pct, message = '', details }: ProgressUpdate) => {
    if (pct !== undefined) run.progress.push({ pct, message });
    if (details !== undefined) run.checkpoints.push(JSON.parse(details));
  };
  const work = async () => {
    const found = handler instanceof Worker ? handler.handlerOf(type) : handler;
    const task = new Task(reportsOf(envelopeOf(payload, options), signal, pass), () => undefined);
    return outputOf(found as Handler, task, signal).catch((error: unknown) => {
      const isStop = signal.reason instanceof Cancelled && meansStopped(error, signal.reason) && !(error instanceof StoppedError);
      throw isStop ? signal.reason : explain(error, signal.reason);
    });
  };
  return Object.assign(work() as Promise<Out>, run);
}

function envelopeOf(payload: unknown, { type, attempt = 1, lastCheckpoint, envelope }: RunHandlerOptions): TaskEnvelope {
  const given = new FakeServer().push(JSON.parse(JSON.stringify({ type: type || undefined, payload })) as object);
  if (lastCheckpoint !== undefined) {
    given.lastProgress = { progressPct: null, message: null, details: JSON.parse(checkpointOf(lastCheckpoint)) as Progress['details'] };
  }
  return { ...given, attempt, ...envelope };
}
