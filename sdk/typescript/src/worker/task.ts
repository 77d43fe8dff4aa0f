import { AsyncLocalStorage } from 'node:async_hooks';
import type { Attempt } from '../attempt.js';
import type { TaskEnvelope } from '../types.js';

/** A claimed task. */
export class Task<In = unknown> {
  readonly #attempt: Attempt;
  readonly #drainBy: () => Date | undefined;

  /** @internal */
  constructor(attempt: Attempt, drainBy: () => Date | undefined) {
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
    return this.#attempt.traceparent;
  }

  /** The last progress that the previous attempt reported; undefined if there was none. */
  get lastProgress(): { progressPct: number; message: string } | undefined {
    return this.#attempt.lastProgress;
  }

  /** The last checkpoint of the task, whichever of the earlier attempts set it; undefined if there was none. */
  get lastCheckpoint(): unknown {
    return this.#attempt.lastCheckpoint;
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
