import { AsyncLocalStorage } from 'node:async_hooks';
import type { Attempt } from '../attempt.js';
import type { ProgressUpdate } from '../beats/messages.js';
import { throwIfOver } from '../ends.js';
import { completionOf, OutputError, permanent } from '../failure.js';
import type { CompletedRequest, TaskEnvelope } from '../types.js';
import { detailsOf, lastProgressOf, progressOf } from '../updates.js';

/** The parts of an attempt that its handler uses. */
export type Reports = Pick<Attempt, 'envelope' | 'progress' | 'checkpoint'>;

/** Passes the reports of a handler on, until its attempt is over. */
export function reportsOf(envelope: TaskEnvelope, signal: AbortSignal, pass: (update: ProgressUpdate) => void): Reports {
  const report = (update: ProgressUpdate) => {
    throwIfOver(signal);
    pass(update);
  };
  return {
    envelope,
    progress: (pct, message) => report(progressOf(pct, message)),
    checkpoint: (value) => report(detailsOf(value)),
  };
}

/** A claimed task. */
export class Task<In = unknown> {
  readonly #attempt: Reports;
  readonly #drainBy: () => Date | undefined;

  /** @internal */
  constructor(attempt: Reports, drainBy: () => Date | undefined) {
    this.#attempt = attempt;
    this.#drainBy = drainBy;
  }

  /** The envelope of the task. */
  get envelope(): TaskEnvelope {
    return this.#attempt.envelope;
  }

  get id(): string {
    return this.envelope.taskId;
  }

  /** The number of the attempt, counted from 1. */
  get attempt(): number {
    return this.envelope.attempt;
  }

  /** Empty if it has none. */
  get type(): string {
    return this.envelope.type ?? '';
  }

  /** The payload that the creator set; null: none. */
  get payload(): In {
    return this.envelope.payload as In;
  }

  /** The W3C trace context of the task; empty: none. */
  get traceparent(): string {
    return this.envelope.traceparent ?? '';
  }

  /** The last progress that the previous attempt reported; undefined if there was none. */
  get lastProgress(): { progressPct: number; message: string } | undefined {
    return lastProgressOf(this.envelope);
  }

  /** The last checkpoint of the task, whichever of the earlier attempts set it; undefined if there was none. */
  get lastCheckpoint(): unknown {
    return this.envelope.lastProgress?.details ?? undefined;
  }

  /** When the server takes the worker's tasks back, if it drains the worker with a deadline. */
  get drainDeadline(): Date | undefined {
    return this.#drainBy();
  }

  /** Reports progress, 0 to 100, and a message; it never waits. It resets the watchdog. */
  progress(pct: number, message?: string): void {
    this.#attempt.progress(pct, message);
  }

  /**
   * Sets a checkpoint, from which the next attempt of the task can continue: any JSON but null, of at most 16 KiB, as it is now. It never
   * waits, and resets the watchdog. It throws a UsageError if the value cannot be a checkpoint.
   */
  checkpoint(value: unknown): void {
    this.#attempt.checkpoint(value);
  }
}

/**
 * Runs a task. It returns the output, any JSON; an error that it throws fails the task, a Snooze returns it to its queue, and a Cancelled
 * cancels it. It should return soon after its signal has ended.
 */
export type Handler<In = unknown, Out = unknown> = (task: Task<In>, signal: AbortSignal) => Out | Promise<Out>;

/** Wraps handlers. */
export type Middleware = (next: Handler) => Handler;

export const tasks = new AsyncLocalStorage<Task>();

/** The task of the running handler; undefined outside of handlers. */
export function currentTask(): Task | undefined {
  return tasks.getStore();
}

/** Runs a handler where no server is. Returns its output as it is in a completion; an output that cannot be sent is a permanent failure. */
export async function outputOf(handler: Handler, task: Task, signal: AbortSignal): Promise<unknown> {
  const output = await tasks.run(task, async () => handler(task, signal));
  const completion: CompletedRequest = { attempt: task.attempt, outcome: 'SUCCEEDED' };
  if (output !== undefined) completion.output = output as CompletedRequest['output'];
  try {
    return (JSON.parse(completionOf(completion)) as CompletedRequest).output;
  } catch (error) {
    throw error instanceof OutputError ? permanent(error) : error;
  }
}
