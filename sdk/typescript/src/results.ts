import { link } from './abort.js';
import { objects } from './answers.js';
import { type Caller, maxPause } from './call.js';
import { backoff, sleep } from './clock.js';
import { AnswerError, ApiError, mayRetry, retryAfterOf, UsageError } from './errors.js';
import type { Task, WaitTasksRequest, WaitTasksResponse } from './types.js';

export interface ResultOptions {
  /** Ends the wait, which rejects with the signal's reason. */
  signal?: AbortSignal;
  /** The maximum length of the wait, in ms; it then rejects with a TimeoutError, as with AbortSignal.timeout. By default, no limit. */
  timeoutMs?: number;
}

/** The task whose result was awaited FAILED or was CANCELLED. */
export class TaskFailed extends Error {
  override readonly name = 'TaskFailed';
  /** The whole task as lists have it, without payload and resources. */
  readonly task: Task;
  constructor(task: Task) {
    const { taskId, state, reason, cancelReason, error } = task;
    const why = String((state === 'CANCELLED' && cancelReason) || (error?.['message'] ?? '')).trim();
    super(`lubdub: task ${taskId} ${state}${reason ? ` (${reason})` : ''}${why && ': ' + why.split('\n')[0]}`);
    this.task = task;
  }
}

/** The maximum number of tasks of a request. */
const maxIds = 1000;
/** The maximum number of tasks of an answer. */
const maxAnswers = 100;

// Waits of requests, in ms. They are short while tasks are added, so that an addition rarely has to cancel a request, which costs a
// connection.
const firstWait = 10;
const shortWait = 100;
const longWait = 30_000;
const rotatingWait = 50; // the shortest one while there are more tasks than a request may name

const operation = 'POST /v1/tasks:wait';

interface Waiter {
  resolve(task: Task): void;
  reject(error: unknown): void;
}

/** The tasks whose results a client awaits. All of them share one request at a time. */
export class Results {
  readonly #caller: Caller;
  readonly #send: (request: WaitTasksRequest, signal: AbortSignal) => Promise<WaitTasksResponse>;
  readonly #awaited = new Map<string, Set<Waiter>>(); // by task id, in the order in which they are requested
  #loops = false;
  #added = false; // since the last request was sent
  #yields = false; // an addition cancels the request in flight
  #step = new AbortController(); // ends the request in flight or the pause

  /** send makes a request once. */
  constructor(caller: Caller, send: (request: WaitTasksRequest, signal: AbortSignal) => Promise<WaitTasksResponse>) {
    this.#caller = caller;
    this.#send = send;
  }

  /** Returns the output of a task once it has ended. */
  async of(taskId: string, { signal, timeoutMs }: ResultOptions): Promise<unknown> {
    // The server refuses a request with such an id, which would end the waits for other tasks too.
    if (!/^[A-Za-z0-9][\w.-]{0,127}$/.test(taskId ?? '')) throw new UsageError(`lubdub: ${JSON.stringify(taskId)} is not a task id`);
    const late = new AbortController();
    const ended = link(signal, late.signal);
    const stop = () => late.abort(new DOMException(`lubdub: task ${taskId} has not ended within ${timeoutMs} ms`, 'TimeoutError'));
    const timer = timeoutMs === undefined ? undefined : this.#caller.set.clock.setTimeout(stop, timeoutMs);
    try {
      const task = await this.#join(taskId, ended.signal);
      if (task.state !== 'SUCCEEDED') throw new TaskFailed(task);
      return task.output;
    } finally {
      timer?.cancel();
      ended.release();
    }
  }

  #join(taskId: string, signal: AbortSignal): Promise<Task> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const waiters = this.#awaited.get(taskId) ?? this.#add(taskId);
      const waiter = { resolve, reject };
      waiters.add(waiter);
      const leave = () => {
        reject(signal.reason as Error);
        waiters.delete(waiter);
        if (waiters.size > 0 || this.#awaited.get(taskId) !== waiters) return;
        this.#awaited.delete(taskId);
        if (this.#awaited.size === 0) this.#step.abort();
      };
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  #add(taskId: string): Set<Waiter> {
    const waiters = new Set<Waiter>();
    this.#awaited.set(taskId, waiters);
    this.#added = true;
    if (this.#yields) this.#step.abort();
    if (!this.#loops) void this.#loop();
    return waiters;
  }

  /** Requests the results until none is awaited. */
  async #loop(): Promise<void> {
    const { clock } = this.#caller.set;
    this.#loops = true;
    await Promise.resolve(); // the first request names all tasks that are added together
    for (let waitMs = 0, failures = 0; this.#awaited.size > 0;) {
      waitMs = this.#nextWait(waitMs);
      const taskIds = this.#nextIds();
      const { signal } = (this.#step = new AbortController());
      const sent = clock.now();
      this.#yields = waitMs > shortWait;
      let pause = 0;
      try {
        const answer = await this.#send({ taskIds, waitMs }, signal);
        const settled = this.#take(answer);
        const took = clock.now() - sent;
        if (!settled && took < waitMs / 2) {
          pause = backoff(failures++, maxPause); // a server that does not wait is not called without a pause
        } else {
          failures = 0;
          if (answer.tasks.length < maxAnswers) pause = this.#shortened() - took; // many ends share an answer
        }
      } catch (error) {
        if (mayRetry(error)) pause = retryAfterOf(error) + backoff(failures++, maxPause);
        else if (!signal.aborted) for (const id of taskIds) this.#settle(id, (waiter) => waiter.reject(error));
      }
      this.#yields = false;
      if (pause > 0 && this.#awaited.size > 0) await this.#pause(pause);
    }
    this.#loops = false;
  }

  /** The wait after additions, in ms. */
  #shortened(): number {
    return Math.min(Math.floor(this.#awaited.size / 10), shortWait);
  }

  /** How long the next request waits, in ms: longer while no task is added. */
  #nextWait(previous: number): number {
    const { size } = this.#awaited;
    const wait = this.#added ? Math.max(this.#shortened(), firstWait) : Math.min(2 * previous, longWait);
    this.#added = false;
    return Math.round(size > maxIds ? Math.min(wait, Math.max((1000 * maxIds) / size, rotatingWait)) : wait);
  }

  /** The tasks of the next request. If they are not all, they move to the end of the order, so that long tasks do not hide others. */
  #nextIds(): string[] {
    const all = [...this.#awaited];
    const next = all.slice(0, maxIds);
    if (all.length > maxIds) {
      for (const [id, waiters] of next) {
        this.#awaited.delete(id);
        this.#awaited.set(id, waiters);
      }
    }
    return next.map(([id]) => id);
  }

  /** Settles what an answer contains; false: nothing. */
  #take(answer: WaitTasksResponse): boolean {
    if (!Array.isArray(answer.tasks) || !Array.isArray(answer.notFound)) {
      throw new AnswerError(`lubdub: ${operation}: an answer without tasks`);
    }
    const before = this.#awaited.size;
    for (const task of objects(answer.tasks) as unknown as Task[]) this.#settle(task.taskId, (waiter) => waiter.resolve(task));
    for (const id of answer.notFound) {
      const message = `no task ${id}; finished tasks are removed at the end of their retention`;
      const error = new ApiError(operation, 404, { error: 'task_not_found', message });
      this.#settle(id, (waiter) => waiter.reject(error));
    }
    return this.#awaited.size < before;
  }

  #settle(taskId: string, settle: (waiter: Waiter) => void): void {
    const waiters = this.#awaited.get(taskId);
    this.#awaited.delete(taskId);
    waiters?.forEach(settle);
  }

  async #pause(ms: number): Promise<void> {
    this.#step = new AbortController();
    const ended = link(this.#caller.closing, this.#step.signal);
    await sleep(this.#caller.set.clock, ms, ended.signal);
    ended.release();
  }
}
