import type { Attempt, Holder } from '../attempt.js';
import type { Client } from '../client.js';
import type { Lease } from '../context.js';
import { sleep } from '../clock.js';
import type { AttemptEnd } from '../ends.js';
import { mayRetry } from '../errors.js';
import { OutputError, permanent, textOf } from '../failure.js';
import type { EndedAttempt, Logger } from '../metrics.js';
import type { CompletedResponse, TaskEnvelope } from '../types.js';
import { explain, Stopping } from './ends.js';
import { type Handler, Task, tasks } from './task.js';

/** The parts of a worker that a job uses. */
export interface JobWorker {
  client: Client;
  log: Logger;
  holder: Omit<Holder, 'limits' | 'onReport' | 'onLost'>;
  lease: Lease | undefined;
  limits: Holder['limits'];
  /** The handler of a type, in its middleware; throws if it has no handler. */
  handlerOf(type: string): Handler;
  handles(type: string): boolean;
  drainBy(): Date | undefined;
  ended(finalState: string): void;
}

/** How long a handler may continue after its signal has ended before a warning is logged, in ms. */
const endingLimit = 10_000;

/** How long the stop waits for a completion in flight, in ms. */
const completionLimit = 5000;

/** A task that the worker runs. */
export class Job {
  readonly envelope: TaskEnvelope;
  readonly #worker: JobWorker;
  readonly #timers = new Set<{ cancel(): void }>();
  #attempt: Attempt | undefined;
  #begunAt: number | undefined; // when its handler began
  #returnedAt: number | undefined; // when its handler returned
  #settling: Promise<void> | undefined; // a completion is being sent
  #stopped = false;
  #givenBack = false; // nothing more is sent about it
  #over = false;
  #lost = false; // the attempt is no longer ours, which was logged
  #measured = false; // its end was passed to the metrics

  constructor(worker: JobWorker, envelope: TaskEnvelope) {
    this.#worker = worker;
    this.envelope = envelope;
  }

  /** Runs the task. It resolves when the handler has returned, which frees the place. */
  async run(): Promise<void> {
    const { client, log, holder, lease, limits } = this.#worker;
    const { taskId, attempt: number } = this.envelope;
    try {
      const onReport = (outcome: Promise<CompletedResponse>) => void this.#report(outcome);
      const onLost = (end: AttemptEnd) => this.#logLoss(end);
      this.#attempt = client.trackFor(this.envelope, { lease }, { ...holder, limits, onReport, onLost });
      await this.#attempt.started;
    } catch (error) {
      if (this.#givenBack) return;
      this.#over = true;
      await client.hub.release(`${taskId}/${number}`).catch(() => {});
      log.info('A task was claimed but not started', { taskId, attempt: number, error: textOf(error) });
      return;
    }
    const attempt = this.#attempt;
    if (this.#givenBack) return;
    this.#begunAt = client.clock.now();
    if (attempt.wasCancelled) {
      this.#returnedAt = this.#begunAt;
      await this.#settle(() => attempt.stopped());
    } else {
      if (number > 1) log.info(`Attempt ${number} of task ${taskId} begins`, this.#fields());
      await this.#work(attempt);
    }
    if (this.#givenBack) return;
    this.#over = true;
    attempt.abandon();
  }

  /** Whether the task goes back to the queue: it was returned, or the result of its completion is unknown. */
  get isUnfinished(): boolean {
    return !this.#over && (this.#attempt?.isOurs ?? true);
  }

  /** Notifies the handler that the worker stops; a task that has not started is returned to the queue. */
  stop(): void {
    this.#stopped = true;
    if (this.#begunAt !== undefined) this.#attempt?.interrupt(new Stopping());
    else this.giveBack();
  }

  /** Returns a running task to the queue, and waits for a completion in flight, which may take as long as no server answers. */
  async end(): Promise<void> {
    if (!this.#settling) return this.giveBack();
    const over = new AbortController();
    await Promise.race([this.#settling, sleep(this.#worker.client.clock, completionLimit, over.signal)]);
    over.abort();
  }

  /** The attempt is no longer ours, since an operator took the worker offline. */
  lose(reason: string): void {
    this.#givenBack ||= this.#begunAt === undefined;
    this.#attempt?.lose(reason);
  }

  /** Sends nothing more. The attempt stays in the inventory until the worker deregisters, which returns it to the queue. */
  giveBack(): void {
    this.#givenBack = true;
    this.#attempt?.interrupt(new Stopping());
    this.#attempt?.giveBack();
    this.#measure(this.#attempt?.isOurs ? 'RETURNED' : 'LOST');
  }

  #report(outcome: Promise<CompletedResponse>): Promise<void> {
    const late: unknown = this.#attempt?.signal.reason;
    return this.#settle(() => outcome, late);
  }

  async #work(attempt: Attempt): Promise<void> {
    const task = new Task(attempt, () => this.#worker.drainBy());
    this.#watch(attempt);
    if (this.#stopped) attempt.interrupt(new Stopping());
    let complete: () => Promise<CompletedResponse>;
    let failure: unknown;
    try {
      const output = await tasks.run(task, async () => this.#worker.handlerOf(task.type)(task, attempt.signal));
      complete = () => attempt.done(output);
    } catch (error) {
      failure = explain(error, attempt.signal.reason);
      complete = () => attempt.fail(failure);
    }
    this.#returnedAt = this.#worker.client.clock.now();
    for (const timer of this.#timers) timer.cancel();
    if (this.#givenBack) return;
    if (failure !== undefined && !this.#settling && attempt.signal.reason instanceof Stopping) return this.giveBack();
    await this.#settle(complete, failure);
  }

  /** Completes the task unless that is already happening; resolves when it is done. */
  #settle(complete: () => Promise<CompletedResponse>, failure?: unknown): Promise<void> {
    this.#settling ??= this.#complete(complete, failure);
    return this.#settling;
  }

  async #complete(complete: () => Promise<CompletedResponse>, failure: unknown): Promise<void> {
    const { log } = this.#worker;
    try {
      const { finalState, willRetry = false } = await complete().catch((error: unknown) => {
        if (!(error instanceof OutputError)) throw error;
        failure = permanent(error);
        return this.#attempt!.fail(failure);
      });
      this.#over = true;
      this.#worker.ended(finalState);
      this.#measure(finalState, willRetry);
      if (finalState !== 'FAILED') log.debug('A task has ended', this.#fields({ state: finalState }));
      else if (willRetry) log.warn('A task failed and will be retried', this.#fields({ error: textOf(failure) }));
      else log.error('A task failed and will not be retried', this.#fields({ error: textOf(failure) }));
    } catch (error) {
      this.#over = !mayRetry(error);
      this.#measure('LOST');
      if (!this.#lost) log.warn('The completion of a task was not accepted', this.#fields({ error: textOf(error) }));
    }
  }

  /** Logs why the attempt is no longer ours. */
  #logLoss(end: AttemptEnd): void {
    if (this.#begunAt === undefined) return; // its failed start is logged
    this.#lost = true;
    this.#worker.log.warn(`Task ${this.envelope.taskId} is lost`, this.#fields({ error: end.message }));
  }

  #fields(more: object = {}): object {
    const { taskId, type, attempt } = this.envelope;
    return { taskId, type: type ?? '', attempt, ...more };
  }

  /** Passes the end of the attempt to the metrics, once, if it has begun. */
  #measure(outcome: EndedAttempt['outcome'], willRetry = false): void {
    if (this.#begunAt === undefined || this.#measured) return;
    this.#measured = true;
    const { type, queue, attempt, enqueuedAt, readyAt } = this.envelope as TaskEnvelope & { readyAt?: string };
    const { clock, metrics } = this.#worker.client;
    const waited = Date.parse(enqueuedAt) - Date.parse(readyAt ?? '');
    const firstBeatAt = this.#attempt!.firstBeatAt;
    metrics.ended?.({
      type: type && this.#worker.handles(type) ? type : '',
      queue: queue ?? '',
      attempt,
      outcome,
      willRetry,
      durationMs: (this.#returnedAt ?? clock.now()) - this.#begunAt,
      queueWaitMs: Number.isNaN(waited) ? undefined : Math.max(0, waited),
      firstHeartbeatMs: firstBeatAt === undefined ? undefined : Math.max(0, firstBeatAt - this.#begunAt),
    });
  }

  /** Logs a handler that is still running after its signal has ended. */
  #watch(attempt: Attempt): void {
    attempt.signal.addEventListener(
      'abort',
      () => {
        if (this.#returnedAt !== undefined) return; // its completion ended the signal
        const cause = textOf(attempt.signal.reason);
        this.#after(endingLimit, () =>
          this.#worker.log.warn('A handler is still running though its signal has ended', this.#fields({ cause })),
        );
      },
      { once: true },
    );
  }

  #after(ms: number, f: () => void): void {
    const timer = this.#worker.client.clock.setTimeout(() => {
      this.#timers.delete(timer);
      f();
    }, ms);
    this.#timers.add(timer);
  }
}
