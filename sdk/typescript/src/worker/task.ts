import { AsyncLocalStorage } from 'node:async_hooks';
import type { Attempt } from '../attempt.js';
import type { TaskEnvelope } from '../types.js';

/** A task that was claimed. */
export class Task<In = unknown> {
  readonly #attempt: Attempt;
  readonly #drainBy: () => Date | undefined;

  /** @internal */
  constructor(attempt: Attempt, drainBy: () => Date | undefined) {
    this.#attempt = attempt;
    this.#drainBy = drainBy;
  }

  /** What the server said of it. */
  get envelope(): TaskEnvelope {
    return this.#attempt.envelope;
  }

  get id(): string {
    return this.envelope.taskId;
  }

  /** Counts the tries at the task from 1. */
  get attempt(): number {
    return this.envelope.attempt;
  }

  /** Empty where it has none. */
  get type(): string {
    return this.envelope.type ?? '';
  }

  /** What the creator has given; null: nothing. */
  get payload(): In {
    return this.envelope.payload as In;
  }

  /** The W3C trace context of the task; empty: it has none. */
  get traceparent(): string {
    return this.#attempt.traceparent;
  }

  /** What the attempt before this one reported last; undefined where it did not. */
  get lastProgress(): { progressPct: number; message: string } | undefined {
    return this.#attempt.lastProgress;
  }

  /** When the server will take back what is held, where it drains the worker and says so. */
  get drainDeadline(): Date | undefined {
    return this.#drainBy();
  }

  /** Says how far the work has come, 0 to 100, and in words; it never waits. The watchdog takes it for a sign of life. */
  progress(pct: number, message?: string): void {
    this.#attempt.progress(pct, message);
  }
}

/** Does a task. Its output is anything that is JSON; what it throws fails the task. It should end soon after its signal has. */
export type Handler<In = unknown, Out = unknown> = (task: Task<In>, signal: AbortSignal) => Out | Promise<Out>;

/** Wraps handlers. */
export type Middleware = (next: Handler) => Handler;

export const tasks = new AsyncLocalStorage<Task>();

/** The task that the running code works on; undefined outside of handlers. */
export function currentTask(): Task | undefined {
  return tasks.getStore();
}
