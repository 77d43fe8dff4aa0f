import type { Attempt, Holder } from '../attempt.js';
import { type Client, type Lease } from '../client.js';
import { sleep } from '../clock.js';
import { UnansweredError } from '../errors.js';
import { categorize, Failure, OutputError, permanent, textOf } from '../failure.js';
import type { Logger } from '../metrics.js';
import type { CompletedResponse, TaskEnvelope } from '../types.js';
import { Stopping, TaskTimeout } from './ends.js';
import { type Handler, Task, tasks } from './task.js';

/** What a job needs of its worker. */
export interface Shop {
  client: Client;
  log: Logger;
  holder: Omit<Holder, 'limits' | 'onReport'>;
  lease: Lease | undefined;
  limits: Holder['limits'];
  handlerOf(type: string): Handler | undefined;
  drainBy(): Date | undefined;
  ended(finalState: string): void;
}

/** How long a handler may go on after its signal has ended before it is told of, in ms. */
const ignored = 10_000;

/** How long what is given back may take, in ms. */
const givingBack = 5000;

/** A task at work. */
export class Job {
  readonly envelope: TaskEnvelope;
  readonly #shop: Shop;
  readonly #timers = new Set<{ cancel(): void }>();
  #attempt: Attempt | undefined;
  #running = false; // it has started
  #returned = false; // its handler has
  #settling: Promise<void> | undefined; // somebody completes it
  #stopped = false;
  #givenUp = false; // it must not begin

  constructor(shop: Shop, envelope: TaskEnvelope) {
    this.#shop = shop;
    this.envelope = envelope;
  }

  /** Does the task; it ends when the handler has, which the job's place waits for. */
  async run(): Promise<void> {
    const { client, log, holder, lease, limits } = this.#shop;
    const { taskId, attempt: number } = this.envelope;
    try {
      const onReport = (outcome: Promise<CompletedResponse>) => void this.#settle(() => outcome);
      this.#attempt = client.trackFor(this.envelope, { lease }, { ...holder, limits, onReport });
      await this.#attempt.started;
    } catch (error) {
      await client.hub.release(`${taskId}/${number}`).catch(() => {});
      log.info('A task that was claimed is not begun', { taskId, attempt: number, error: textOf(error) });
      return;
    }
    const attempt = this.#attempt;
    if (this.#givenUp) return attempt.abandon();
    this.#running = true;
    if (attempt.wasCancelled) await this.#settle(() => attempt.stopped());
    else await this.#work(attempt);
    attempt.abandon();
  }

  /** Tells the handler that the worker stops; what has not started is left. */
  stop(): void {
    this.#stopped = true;
    if (this.#running) this.#attempt?.interrupt(new Stopping());
    else this.#leave();
  }

  #leave(): void {
    this.#givenUp = true;
    this.#attempt?.abandon();
  }

  /** Fails what still runs, so that others get it at once. */
  async giveBack(): Promise<void> {
    const attempt = this.#attempt;
    if (!attempt || !this.#running) return this.#leave();
    if (this.#settling) return this.#await(this.#settling);
    const error = { category: 'INFRASTRUCTURE' as const, message: 'worker stopped', retryable: true };
    const enough = new AbortController();
    const given = new UnansweredError('POST completed', 'the hard stop has come', false);
    const timer = this.#shop.client.clock.setTimeout(() => enough.abort(given), givingBack);
    await this.#settle(() => attempt.complete({ outcome: 'FAILED', error }, { signal: enough.signal }));
    timer.cancel();
    attempt.interrupt(new Stopping());
  }

  /** Waits for the completion under way, which may take as long as no server answers; then the worker's end ends it. */
  async #await(settling: Promise<void>): Promise<void> {
    const over = new AbortController();
    await Promise.race([settling, sleep(this.#shop.client.clock, givingBack, over.signal)]);
    over.abort();
  }

  async #work(attempt: Attempt): Promise<void> {
    const task = new Task(attempt, () => this.#shop.drainBy());
    this.#watch(attempt);
    if (this.#stopped) attempt.interrupt(new Stopping());
    let complete: () => Promise<CompletedResponse>;
    try {
      const output = await tasks.run(task, async () => this.#handler(task)(task, attempt.signal));
      complete = () => done(attempt, output);
    } catch (error) {
      complete = () => attempt.fail(this.#explain(attempt, error));
    }
    this.#returned = true;
    for (const timer of this.#timers) timer.cancel();
    await this.#settle(complete);
  }

  #handler(task: Task): Handler {
    const handler = this.#shop.handlerOf(task.type);
    if (handler) return handler;
    throw new Failure(`this worker has no handler for tasks of type "${task.type}"`, { category: 'CONFIGURATION' });
  }

  /** Says of which kind a failure is that comes of the end of the signal. */
  #explain(attempt: Attempt, error: unknown): unknown {
    const { reason } = attempt.signal as { reason: unknown };
    if (error instanceof Failure) return error;
    const why = (end: Error) => (error === end ? end : new Error(`${end.message}: ${textOf(error)}`, { cause: error }));
    if (reason instanceof Stopping) return categorize('INFRASTRUCTURE', why(reason));
    if (reason instanceof TaskTimeout) return categorize('TIMEOUT', why(reason));
    return error;
  }

  /** Completes the task, unless somebody else does; it is over when they have. */
  #settle(complete: () => Promise<CompletedResponse>): Promise<void> {
    this.#settling ??= this.#complete(complete);
    return this.#settling;
  }

  async #complete(complete: () => Promise<CompletedResponse>): Promise<void> {
    const { log } = this.#shop;
    const { taskId, attempt } = this.envelope;
    try {
      const { finalState, willRetry } = await complete();
      this.#shop.ended(finalState);
      log.debug('A task has ended', { taskId, attempt, state: finalState, willRetry });
    } catch (error) {
      log.warn('The end of a task was not accepted', { taskId, attempt, error: textOf(error) });
    }
  }

  /** Logs that a handler goes on though its signal has ended. */
  #watch(attempt: Attempt): void {
    attempt.signal.addEventListener('abort', () => {
      if (this.#returned) return; // it is its completion that has ended the signal
      const cause = textOf(attempt.signal.reason);
      const { taskId, attempt: number } = this.envelope;
      this.#after(ignored, () => this.#shop.log.warn('A handler goes on though its signal has ended', { taskId, attempt: number, cause }));
    }, { once: true });
  }

  #after(ms: number, f: () => void): void {
    const timer = this.#shop.client.clock.setTimeout(() => {
      this.#timers.delete(timer);
      f();
    }, ms);
    this.#timers.add(timer);
  }
}

/** Completes an attempt with an output, or fails it where that cannot be sent. */
async function done(attempt: Attempt, output: unknown): Promise<CompletedResponse> {
  try {
    return await attempt.done(output);
  } catch (error) {
    if (error instanceof OutputError) return attempt.fail(permanent(error));
    throw error;
  }
}
