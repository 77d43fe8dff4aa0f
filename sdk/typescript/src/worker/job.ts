import type { Attempt, Holder } from '../attempt.js';
import type { Client } from '../client.js';
import type { Lease } from '../context.js';
import { sleep } from '../clock.js';
import { mayRetry } from '../errors.js';
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

/** How long the stop waits for a completion under way, in ms. */
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
  #givenBack = false; // nothing is sent about it any more
  #over = false;

  constructor(shop: Shop, envelope: TaskEnvelope) {
    this.#shop = shop;
    this.envelope = envelope;
  }

  /** Does the task; it ends when the handler has, which the job's place waits for. */
  async run(): Promise<void> {
    const { client, log, holder, lease, limits } = this.#shop;
    const { taskId, attempt: number } = this.envelope;
    try {
      const onReport = (outcome: Promise<CompletedResponse>) => void this.#report(outcome);
      this.#attempt = client.trackFor(this.envelope, { lease }, { ...holder, limits, onReport });
      await this.#attempt.started;
    } catch (error) {
      if (this.#givenBack) return;
      this.#over = true;
      await client.hub.release(`${taskId}/${number}`).catch(() => {});
      log.info('A task that was claimed is not begun', { taskId, attempt: number, error: textOf(error) });
      return;
    }
    const attempt = this.#attempt;
    if (this.#givenBack) return;
    this.#running = true;
    if (attempt.wasCancelled) await this.#settle(() => attempt.stopped());
    else await this.#work(attempt);
    if (this.#givenBack) return;
    this.#over = true;
    attempt.abandon();
  }

  /** Whether the server is to hand the task to others: it was given back, or nobody knows what became of its completion. */
  get isUnfinished(): boolean {
    return !this.#over && (this.#attempt?.isOurs ?? true);
  }

  /** Tells the handler that the worker stops; what has not started is given back. */
  stop(): void {
    this.#stopped = true;
    if (this.#running) this.#attempt?.interrupt(new Stopping());
    else this.#giveBack();
  }

  /** Gives back what still runs, and waits for a completion under way, which may take as long as no server answers. */
  async end(): Promise<void> {
    if (!this.#settling) return this.#giveBack();
    const over = new AbortController();
    await Promise.race([this.#settling, sleep(this.#shop.client.clock, givingBack, over.signal)]);
    over.abort();
  }

  /** The attempt is not ours any more, since an operator took the worker offline. */
  lose(reason: string): void {
    this.#givenBack ||= !this.#running;
    this.#attempt?.lose(reason);
  }

  /** Sends nothing more. The attempt stays in the inventory until the worker leaves, with which the server hands it to others. */
  #giveBack(): void {
    this.#givenBack = true;
    this.#attempt?.interrupt(new Stopping());
    this.#attempt?.giveBack();
  }

  #report(outcome: Promise<CompletedResponse>): Promise<void> {
    const late: unknown = this.#attempt?.signal.reason;
    return this.#settle(() => outcome, late);
  }

  async #work(attempt: Attempt): Promise<void> {
    const task = new Task(attempt, () => this.#shop.drainBy());
    this.#watch(attempt);
    if (this.#stopped) attempt.interrupt(new Stopping());
    let complete: () => Promise<CompletedResponse>;
    let failure: unknown;
    try {
      const output = await tasks.run(task, async () => this.#handler(task)(task, attempt.signal));
      complete = () => done(attempt, output);
    } catch (error) {
      failure = this.#explain(attempt, error);
      complete = () => attempt.fail(failure);
    }
    this.#returned = true;
    for (const timer of this.#timers) timer.cancel();
    if (this.#givenBack) return;
    if (failure !== undefined && !this.#settling && attempt.signal.reason instanceof Stopping) return this.#giveBack();
    await this.#settle(complete, failure);
  }

  #handler(task: Task): Handler {
    const handler = this.#shop.handlerOf(task.type);
    if (handler) return handler;
    if (task.type) throw new Failure(`this worker has no handler for tasks of type "${task.type}"`, { category: 'CONFIGURATION' });
    throw new Failure(
      'the task has no type, and this worker has no default handler; add one with handleDefault(), or create tasks with a type',
      { category: 'CONFIGURATION', retryable: false },
    );
  }

  /** Says of which kind a failure is that comes of the end of the signal. */
  #explain(attempt: Attempt, error: unknown): unknown {
    const { reason } = attempt.signal as { reason: unknown };
    if (error instanceof Failure) return error;
    const why = (end: Error) => (error === end ? end : new Error(`${end.message}: ${textOf(error)}`, { cause: error }));
    if (reason instanceof TaskTimeout) return categorize('TIMEOUT', why(reason));
    return error;
  }

  /** Completes the task, unless somebody else does; it is over when they have. */
  #settle(complete: () => Promise<CompletedResponse>, failure?: unknown): Promise<void> {
    this.#settling ??= this.#complete(complete, failure);
    return this.#settling;
  }

  async #complete(complete: () => Promise<CompletedResponse>, failure: unknown): Promise<void> {
    const { log } = this.#shop;
    const { taskId, attempt } = this.envelope;
    try {
      const { finalState, willRetry = false } = await complete();
      this.#over = true;
      this.#shop.ended(finalState);
      if (failure === undefined || finalState === 'CANCELLED') {
        log.debug('A task has ended', { taskId, attempt, state: finalState });
      } else if (willRetry) {
        log.warn('A task failed and will be retried', { taskId, attempt, error: textOf(failure) });
      } else {
        log.error('A task failed and will not be retried', { taskId, attempt, error: textOf(failure) });
      }
    } catch (error) {
      this.#over = !mayRetry(error);
      log.warn('The end of a task was not accepted', { taskId, attempt, error: textOf(error) });
    }
  }

  /** Logs that a handler goes on though its signal has ended. */
  #watch(attempt: Attempt): void {
    attempt.signal.addEventListener(
      'abort',
      () => {
        if (this.#returned) return; // it is its completion that has ended the signal
        const cause = textOf(attempt.signal.reason);
        const { taskId, attempt: number } = this.envelope;
        this.#after(ignored, () =>
          this.#shop.log.warn('A handler goes on though its signal has ended', { taskId, attempt: number, cause }),
        );
      },
      { once: true },
    );
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
