import './dispose.js';
import { link, checkOnRead, untilAborted } from './abort.js';
import { type Call, seg } from './call.js';
import { elapsed, type Moment, read } from './clock.js';
import type { Context, Lease } from './context.js';
import type { Endpoints } from './endpoints.js';
import type { Exchange } from './exchange.js';
import { AttemptEnd, Cancelled, EndedError, endOf, endOfError, graceOf, LeaseEnded, Lost, StoppedError } from './ends.js';
import { errorOf } from './copies.js';
import { ApiError, ClosedError, UsageError } from './errors.js';
import { completionOf, endingOf, Failure, meansStopped } from './failure.js';
import type { AttemptListener, Hub } from './beats/hub.js';
import type { Limits } from './beats/messages.js';
import { beatOf } from './beats/reports.js';
import { type Expiry, persist, type Persistence, sendCompletion } from './persist.js';
import { Stuck, TaskTimeout } from './worker/ends.js';
import type { CompletedRequest, CompletedResponse, StartedResponse, TaskEnvelope } from './types.js';
import { detailsOf, lastProgressOf, progressOf, Updates } from './updates.js';

export interface TrackOptions {
  /** What happens to this attempt while no server answers; by default the client's setting. */
  lease?: Lease;
  /** Ends the attempt's signal as well. Heartbeats continue until the attempt is completed or abandoned. */
  signal?: AbortSignal;
}

/** What a worker adds to an attempt that it holds. */
export interface Holder {
  workerNumber: number;
  workerId(): string;
  token(): string;
  timeoutMs(): number;
  /** The time limits of the work. */
  limits: { taskTimeoutMs: number; watchdogMs: number };
  /** Called when the attempt is reported as TIMEOUT, since its handler has not returned in time. */
  onReport(outcome: Promise<CompletedResponse>): void;
  /** Called when the attempt is no longer ours. */
  onLost(end: AttemptEnd): void;
  /** Ends all calls about the worker's attempts. */
  over: AbortSignal;
  /** Sends completions together. */
  exchange: Exchange;
}

/** The pause between two checks of a strict lease, in ms. */
const lookEvery = 1000;

/**
 * A tracked attempt: heartbeats are sent until it is completed (done, fail, stopped, complete) or abandoned (abandon). Leaving an `await
 * using` block without either fails it.
 */
export class Attempt {
  readonly taskId: string;
  /** The number of the attempt, counted from 1. */
  readonly number: number;
  readonly envelope: TaskEnvelope;
  /** Resolves when a server has confirmed the start, and rejects if the work must not begin. */
  readonly started: Promise<void>;

  readonly #client: Context;
  readonly #hub: Hub;
  readonly #holder: Holder | undefined;
  readonly #base: Endpoints;
  readonly #key: string;
  readonly #strict: boolean;
  readonly #own: boolean;
  readonly #over = new AbortController();
  readonly #unlink: () => void;
  readonly #onOver: () => void;
  #timeoutMs: number;
  #token: string;
  #expires: Expiry | undefined; // of the token
  #accepted: Moment;
  #firstBeatAt: number | undefined;
  #phase: 'starting' | 'running' | 'ending' | 'over' = 'starting';
  #end: AttemptEnd | ClosedError | undefined; // why it is no longer ours
  #cancelled: Cancelled | undefined;
  readonly #updates: Updates;
  #timers = new Set<{ cancel(): void }>();
  #report: Promise<CompletedResponse> | undefined;
  #onReported: { resolve(answer: CompletedResponse): void; reject(error: Error): void } | undefined;
  readonly #startAbort = new AbortController(); // aborted when the start is no longer awaited

  /** @internal */
  constructor(client: Context, hub: Hub, envelope: TaskEnvelope, options: TrackOptions, onOver: () => void, holder?: Holder) {
    checkEnvelope(envelope);
    this.#client = client;
    this.#hub = hub;
    this.#holder = holder;
    this.#onOver = onOver;
    this.taskId = envelope.taskId;
    this.number = envelope.attempt;
    this.envelope = envelope;
    this.#key = `${envelope.taskId}/${envelope.attempt}`;
    this.#updates = new Updates(client.clock, (update) => hub.progress(this.#key, update));
    this.#strict = (options.lease ?? client.lease) === 'strict';
    if (this.#strict) checkOnRead(this.#over.signal, () => this.#look());
    this.#token = envelope.taskToken;
    this.#base = client.endpointsFor(envelope.callbackBaseUrl);
    this.#accepted = read(client.clock);
    const interval = envelope.heartbeatIntervalMs > 0 ? envelope.heartbeatIntervalMs : 30_000;
    this.#own = (envelope.heartbeatTimeoutMs ?? 0) > 0;
    this.#timeoutMs = envelope.heartbeatTimeoutMs || (holder?.timeoutMs() ?? 3 * interval);
    this.#checkTimes(interval);
    this.#tokenLasts(Date.parse(envelope.tokenExpiresAt) - Date.parse(envelope.enqueuedAt));
    this.#unlink = this.#follow(options.signal);
    this.started = this.#start(interval);
    this.started.catch(() => {}); // the caller that completes it gets the error
  }

  /** Ends with the reason why the work is over: an AttemptEnd, or an EndedError once it is completed. */
  get signal(): AbortSignal {
    this.#look();
    return this.#over.signal;
  }

  /** The last progress that the previous attempt reported; undefined if there was none. */
  get lastProgress(): { progressPct: number; message: string } | undefined {
    return lastProgressOf(this.envelope);
  }

  /** The last checkpoint of the task, whichever of the earlier attempts set it; undefined if there was none. */
  get lastCheckpoint(): unknown {
    return this.envelope.lastProgress?.details ?? undefined;
  }

  /** The W3C trace context of the task; empty: none. */
  get traceparent(): string {
    return this.envelope.traceparent ?? '';
  }

  /**
   * Reports progress as a percentage, 0 to 100, and a message of at most 1,024 bytes; more is cut. It replaces progress that was not sent
   * yet, is sent with the next heartbeat, and never waits. It throws if pct is out of range, or the reason why the attempt is over.
   */
  progress(pct: number, message?: string): void {
    const update = progressOf(pct, message);
    this.#throwIfOver();
    this.#updates.add(update);
  }

  /**
   * Sets a checkpoint, from which the next attempt of the task can continue: any JSON but null, of at most 16 KiB. It is encoded at once,
   * replaces a checkpoint that was not sent yet, is sent with the next heartbeat, and never waits. It throws a UsageError if the value
   * cannot be a checkpoint, or the reason why the attempt is over.
   */
  checkpoint(value: unknown): void {
    const update = detailsOf(value);
    this.#throwIfOver();
    this.#updates.add(update);
  }

  /**
   * Completes the attempt as done, with any JSON as its output. It waits for the answer, and retries with the same body while no server
   * answers, at most until the attempt's token expires.
   */
  async done(output?: unknown): Promise<CompletedResponse> {
    return this.complete({ outcome: 'SUCCEEDED', ...(output !== undefined && { output: output as CompletedRequest['output'] }) });
  }

  /**
   * Completes the attempt as failed. A Failure sets the category; every other error is USER_CODE. After a cancel, the signal's reason and
   * an AbortError have the outcome CANCELLED; so has a Cancelled without a cancel, and its reason is kept. A Snooze has the outcome SNOOZED.
   * It waits as done does.
   */
  async fail(error: unknown): Promise<CompletedResponse> {
    if (error instanceof StoppedError) return this.stopped(error.phase, error.partial);
    if (this.#cancelled && meansStopped(error, this.#cancelled)) return this.stopped();
    return this.complete(endingOf(error));
  }

  /** Completes the attempt as stopped after a cancel: in which phase, and the partial progress. It waits as done does. */
  async stopped(phase?: string, partial?: unknown): Promise<CompletedResponse> {
    return this.complete({
      outcome: 'CANCELLED',
      ...(phase && { cancelledDuringPhase: phase }),
      ...(partial !== undefined && { partialProgress: partial as CompletedRequest['partialProgress'] }),
    });
  }

  /**
   * Sends a completion; attempt, worker and time are filled in. From then on no heartbeat is sent. If the attempt is no longer ours nothing
   * is sent, and it rejects with the reason; so does a refusal. A signal that ends makes it reject at once with the signal's reason; if the
   * attempt has started, it is then over here, and the server may have applied the completion.
   */
  async complete(request: Omit<CompletedRequest, 'attempt'>, options: { signal?: AbortSignal } = {}): Promise<CompletedResponse> {
    const { workerId } = this.#who();
    const completedAt = new Date(this.#client.clock.wall()).toISOString();
    this.#throwIfOver();
    const body = completionOf({ ...request, attempt: this.number, completedAt, workerId });
    if (this.#phase === 'starting') {
      await untilAborted(options.signal, () => this.started);
      this.#throwIfOver();
    }
    if (this.#holder) this.#hub.ending(this.#key, this.#holder.workerNumber);
    try {
      const answer = untilAborted(options.signal, () => this.#send(body, options.signal));
      return await this.#await(answer, request.outcome);
    } finally {
      if (this.#holder) this.#hub.settled(this.#key, this.#holder.workerNumber);
    }
  }

  /** Waits for the answer to a completion, with which the attempt is over. */
  async #await(answer: Promise<CompletedResponse>, outcome: CompletedRequest['outcome'] = 'FAILED'): Promise<CompletedResponse> {
    this.#phase = 'ending';
    this.#updates.close();
    try {
      const answered = await answer;
      this.#client.metrics.completed?.(outcome);
      return answered;
    } catch (error) {
      if (error instanceof ApiError) this.#client.metrics.refused?.(error.code);
      throw endOfError(error) ?? error;
    } finally {
      this.#finish();
    }
  }

  /** Stops heartbeats and sends nothing: the server will declare the attempt lost. After a completion it has no effect. */
  abandon(): void {
    if (this.#phase === 'ending' || this.#phase === 'over') return;
    void this.#hub.release(this.#key).catch(() => {});
    this.#startAbort.abort(new EndedError());
    this.#finish();
  }

  /** Fails the attempt if it was not completed. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#phase === 'ending' || this.#phase === 'over') return;
    await this.started.catch(() => {});
    if (this.#end || this.#phase !== 'running') return this.abandon();
    if (this.#cancelled) await this.stopped();
    else await this.fail(new Failure('the block that tracked the attempt ended without done() or fail()'));
  }

  /** @internal Ends the signal for a reason of the worker's; the attempt is still ours. */
  interrupt(reason: Error): void {
    this.#over.abort(reason);
  }

  /** @internal Sends nothing more about the attempt, which stays in its worker's inventory. */
  giveBack(): void {
    if (this.#phase === 'ending' || this.#phase === 'over') return;
    this.#updates.flush();
    this.#hub.giveBack(this.#key);
    this.#startAbort.abort(new EndedError());
    this.#finish();
  }

  /** @internal The attempt is no longer ours, since an operator took its worker offline. */
  lose(reason: string): void {
    this.#startAbort.abort(new EndedError());
    this.#close(new Lost('', reason));
  }

  /** @internal Whether no server has ended the attempt. */
  get isOurs(): boolean {
    return this.#end === undefined;
  }

  /** @internal Whether the attempt was cancelled. */
  get wasCancelled(): boolean {
    return this.#cancelled !== undefined;
  }

  /** @internal When a server had accepted its first heartbeat, by the monotonic clock; undefined: none was accepted. */
  get firstBeatAt(): number | undefined {
    return this.#firstBeatAt;
  }

  /** @internal The client is closed. */
  shut(): void {
    this.#close(new ClosedError());
  }

  #who(): { workerId?: string } {
    return this.#holder ? { workerId: this.#holder.workerId() } : {};
  }

  #checkTimes(intervalMs: number): void {
    const { taskId } = this;
    if (this.#own && this.#timeoutMs < 2 * intervalMs) {
      throw new UsageError(
        `lubdub: task ${taskId}: a heartbeat timeout of ${this.#timeoutMs} ms is less than twice its interval of ${intervalMs} ms, ` +
          'so that one lost heartbeat would end it; create it with a longer timeout',
      );
    }
    if ((this.#own || !this.#holder) && this.#timeoutMs < 3000) {
      const fields = { taskId, timeoutMs: this.#timeoutMs };
      this.#client.log.warn('A heartbeat timeout this short leaves no room for one Retry-After', fields);
    }
  }

  #tokenLasts(inMs: number): void {
    if (inMs > 0) this.#expires = { at: read(this.#client.clock), inMs };
  }

  /** Ends the signal when another one ends. */
  #follow(signal: AbortSignal | undefined): () => void {
    if (!signal) return () => {};
    const linked = link(signal);
    const pass = () => this.#over.abort(signal.reason);
    if (linked.signal.aborted) pass();
    linked.signal.addEventListener('abort', pass, { once: true });
    return linked.release;
  }

  /** Reports the start until it is answered, unless the claim has started the attempt; then starts heartbeats. */
  async #start(intervalMs: number): Promise<void> {
    try {
      const answer = await (this.envelope.state === 'RUNNING' ? undefined : this.#reportStart());
      if (this.#phase !== 'starting') throw new EndedError();
      this.#phase = 'running';
      this.#hold(intervalMs);
      if (answer?.shouldCancel) this.#cancel(answer.cancelReason ?? '');
    } catch (error) {
      const end = endOfError(error);
      if (end) this.#close(end);
      else this.#over.abort(error);
      this.#finish();
      throw end ?? error;
    }
  }

  #reportStart(): Promise<StartedResponse> {
    const startedAt = new Date(this.#client.clock.wall()).toISOString();
    const body = JSON.stringify({ attempt: this.number, startedAt, ...this.#who() });
    const call = { method: 'POST', path: this.#path('started'), body, signal: this.#startAbort.signal };
    return this.#persist(call, (at) => (this.#accepted = at)) as Promise<StartedResponse>;
  }

  #hold(intervalMs: number): void {
    const listener: AttemptListener = { receive: (notice) => this.#receive(notice) };
    const hold = {
      key: this.#key,
      taskId: this.taskId,
      attempt: this.number,
      token: this.#token,
      intervalMs,
      timeoutMs: this.#timeoutMs,
      own: this.#own,
      strict: this.#strict,
      accepted: this.#accepted,
      limits: this.#limits(),
    };
    this.#hub.hold(hold, this.#holder ? { workerNumber: this.#holder.workerNumber } : { urls: this.#base.urls }, listener);
    this.#updates.open();
    if (this.#strict) this.#lookLater();
  }

  #limits(): Limits | undefined {
    if (!this.#holder) return undefined;
    const { taskTimeoutMs, watchdogMs } = this.#holder.limits;
    const graceMs = graceOf(this.envelope);
    return { since: this.#client.clock.now(), taskTimeoutMs, watchdogMs, graceMs, urls: this.#base.urls, expires: this.#expires };
  }

  #receive(notice: Parameters<AttemptListener['receive']>[0]): void {
    switch (notice.is) {
      case 'cancel':
        return this.#cancel(notice.reason);
      case 'ended':
        return this.#close(endOf(notice.code, notice.fields) ?? endOf('task_already_terminal', notice.fields)!);
      case 'leaseEnded':
        return this.#close(new LeaseEnded(notice.silentMs));
      case 'token':
        this.#token = notice.token;
        return this.#tokenLasts(notice.lastsMs);
      case 'timeUp': {
        const { taskTimeoutMs, watchdogMs } = this.#holder!.limits;
        return this.interrupt(notice.limit === 'task' ? new TaskTimeout(taskTimeoutMs) : new Stuck(watchdogMs));
      }
      case 'reporting':
        if (this.#phase === 'running') this.#holder!.onReport(this.#await(this.#reported()));
        return;
      case 'reported':
        void this.#hub.release(this.#key).catch(() => {});
        void this.#reported();
        return notice.answer ? this.#onReported!.resolve(notice.answer) : this.#onReported!.reject(errorOf(notice.failure!));
      case 'accepted':
        this.#timeoutMs = notice.timeoutMs;
        this.#firstBeatAt ??= notice.at;
        if (notice.sent.mono > this.#accepted.mono) this.#accepted = notice.sent;
    }
  }

  #cancel(reason: string): void {
    if (this.#cancelled || this.#end || this.#phase !== 'running') return;
    this.#cancelled = new Cancelled(reason);
    this.#over.abort(this.#cancelled);
  }

  /** Ends the signal, since the attempt is no longer ours. */
  #close(end: AttemptEnd | ClosedError): void {
    if (this.#end || this.#phase === 'over' || this.#phase === 'ending') return;
    this.#end = end;
    if (end instanceof AttemptEnd) this.#holder?.onLost(end);
    this.#over.abort(end);
  }

  #finish(): void {
    this.#phase = 'over';
    this.#unlink();
    this.#updates.close();
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    this.#over.abort(new EndedError());
    this.#onOver();
  }

  /** Throws the reason if the attempt is over. A strict lease is checked first, since nothing else may have run since the host slept. */
  #throwIfOver(): void {
    this.#look();
    if (this.#end) {
      const end = this.#end;
      this.abandon();
      throw end;
    }
    if (this.#phase === 'ending' || this.#phase === 'over') throw new EndedError();
  }

  #look(): void {
    if (!this.#strict || this.#phase !== 'running' || this.#end) return;
    this.#hub.catchUp();
    const silentMs = elapsed(this.#accepted, read(this.#client.clock));
    if (silentMs >= this.#timeoutMs) this.#close(new LeaseEnded(silentMs));
  }

  #lookLater(): void {
    if (this.#phase !== 'running' || this.#end) return;
    this.#look();
    this.#after(lookEvery, () => this.#lookLater());
  }

  #after(ms: number, f: () => void): void {
    const timer = this.#client.clock.setTimeout(() => {
      this.#timers.delete(timer);
      f();
    }, ms);
    this.#timers.add(timer);
  }

  #path(what: string): string {
    return `/v1/tasks/${seg(this.taskId)}/${what}`;
  }

  /** Sends the completion, unless the heartbeat thread reports it. */
  async #send(body: string, signal?: AbortSignal): Promise<CompletedResponse> {
    const { update, reported } = await this.#hub.release(this.#key, this.#updates.close());
    if (reported) return this.#reported();
    const progress = update && beatOf({ attempt: this.number }, update);
    const call = { base: this.#base, token: this.#token, signal: signal ?? this.#holder?.over };
    const exchange = signal ? undefined : this.#holder?.exchange;
    const exchanged = exchange && (() => exchange.complete(this.#base, this.taskId, body));
    return sendCompletion(this.#client.caller, this.taskId, body, progress, call, this.#persistence(), exchanged);
  }

  /** Waits for the result of a completion that the heartbeat thread reports. */
  #reported(): Promise<CompletedResponse> {
    this.#report ??= new Promise((resolve, reject) => (this.#onReported = { resolve, reject }));
    return this.#report;
  }

  /** Retries a call until it is answered or no token is valid any more. */
  #persist(given: Call, onSent: (at: Moment) => void = () => {}): Promise<unknown> {
    const call: Call = { ...given, base: this.#base, token: this.#token, signal: given.signal ?? this.#holder?.over };
    return persist(this.#client.caller, call, { onSent, ...this.#persistence() });
  }

  #persistence(): Persistence {
    return { expires: () => this.#expires, other: () => this.#holder?.token(), leaseMs: this.#timeoutMs };
  }
}

function checkEnvelope(envelope: TaskEnvelope): void {
  if (envelope?.taskId && envelope.attempt >= 1 && envelope.taskToken) return;
  throw new UsageError('lubdub: this is not a task envelope: it needs taskId, attempt and taskToken, as creations and claims return them');
}
