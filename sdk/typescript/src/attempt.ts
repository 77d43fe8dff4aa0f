import './dispose.js';
import { link, lookingFirst } from './abort.js';
import { type Call, seg } from './call.js';
import { elapsed, type Moment, read } from './clock.js';
import type { Context, Lease } from './context.js';
import type { Endpoints } from './endpoints.js';
import { type AttemptEnd, Cancelled, EndedError, endOf, endOfError, LeaseEnded, Lost, StoppedError } from './ends.js';
import { ApiError, ClosedError, errorOf, UsageError } from './errors.js';
import { completionOf, cutMessage, Failure, saysStopped, taskErrorOf } from './failure.js';
import type { AttemptEars, Hub } from './heart/hub.js';
import type { Limits, Said } from './heart/messages.js';
import { type Expiry, persist, type Persistence, sendCompletion } from './persist.js';
import { Stuck, TaskTimeout } from './worker/ends.js';
import type { CompletedRequest, CompletedResponse, StartedResponse, TaskEnvelope } from './types.js';

export interface TrackOptions {
  /** What becomes of this attempt while no server answers; unless told, as the client says. */
  lease?: Lease;
  /** Ends the attempt's signal as well. The beats go on until the attempt is completed or given up. */
  signal?: AbortSignal;
}

/** What a worker adds. */
export interface Holder {
  crew: number;
  workerId(): string;
  token(): string;
  timeoutMs(): number;
  /** How long the work may take. */
  limits: { taskTimeoutMs: number; watchdogMs: number };
  /** The attempt is reported as TIMEOUT, since its handler has not ended in time. */
  onReport(outcome: Promise<CompletedResponse>): void;
  /** Ends all that is sent about what it holds. */
  over: AbortSignal;
}

/** How often what was said is passed on at most, in ms: what comes between replaces it. */
const passEvery = 100;

/** How often a strict lease is looked at here. */
const lookEvery = 1000;

/**
 * An attempt that is tracked: beats are sent for it until it is completed (done, fail, stopped, complete) or given up (abandon). Left by
 * `await using` without either, it fails.
 */
export class Attempt {
  readonly taskId: string;
  /** Counts the attempts at the task from 1. */
  readonly number: number;
  readonly envelope: TaskEnvelope;
  /** Is over once a server has answered that the attempt runs, and rejects where it must not begin. */
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
  #expires: Expiry | undefined; // the token
  #accepted: Moment;
  #phase: 'starting' | 'running' | 'ending' | 'over' = 'starting';
  #end: AttemptEnd | ClosedError | undefined; // why it is not ours any more
  #cancelled: Cancelled | undefined;
  #said: Said | undefined; // what was not passed on yet
  #passed = -Infinity; // when something was
  #passing = false; // something will be
  #timers = new Set<{ cancel(): void }>();
  #report: Promise<CompletedResponse> | undefined;
  #onReported: { resolve(answer: CompletedResponse): void; reject(error: Error): void } | undefined;
  readonly #givingUp = new AbortController(); // nobody waits for the start any more

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
    this.#strict = (options.lease ?? client.lease) === 'strict';
    if (this.#strict) lookingFirst(this.#over.signal, () => this.#look());
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
    this.started.catch(() => {}); // whoever completes it is told
  }

  /** Ends with the reason why the work is over: an AttemptEnd, or an EndedError once it is completed. */
  get signal(): AbortSignal {
    this.#look();
    return this.#over.signal;
  }

  /** What the attempt before this one reported last; undefined where it did not. */
  get lastProgress(): { progressPct: number; message: string } | undefined {
    const last = this.envelope.lastProgress;
    return last ? { progressPct: last.progressPct ?? 0, message: last.message ?? '' } : undefined;
  }

  /** The W3C trace context of the task; empty: it has none. */
  get traceparent(): string {
    return this.envelope.traceparent ?? '';
  }

  /**
   * Says how far the work has come, 0 to 100, and says it in words of at most 1,024 bytes; more is cut. It replaces what was not sent yet,
   * goes with the next beat, and never waits. It throws where pct is out of bounds, or why the attempt is over.
   */
  progress(pct: number, message?: string): void {
    if (!(pct >= 0 && pct <= 100)) throw new UsageError(`lubdub: a progress of ${pct} is not between 0 and 100`);
    this.#throwIfOver();
    const said: Said = message === undefined ? { pct } : { pct, message: cutMessage(message) };
    this.#said = { ...this.#said, ...said };
    if (this.#phase === 'starting') return;
    const now = this.#client.clock.now();
    if (now - this.#passed >= passEvery) return this.#pass();
    if (!this.#passing) this.#passLater(passEvery - (now - this.#passed));
  }

  /**
   * Says that the work is done, with an output of any kind that is JSON. It waits until that is answered, asking again with the same body
   * while no server answers, at most until the attempt's token has ended.
   */
  async done(output?: unknown): Promise<CompletedResponse> {
    return this.complete({ outcome: 'SUCCEEDED', ...(output !== undefined && { output: output as CompletedRequest['output'] }) });
  }

  /**
   * Says that the work has failed; a Failure says of which category, every other error is USER_CODE. Where the error is the reason that the
   * signal ended with after a cancel, or an AbortError then, the outcome is CANCELLED. It waits as done does.
   */
  async fail(error: unknown): Promise<CompletedResponse> {
    if (error instanceof StoppedError) return this.stopped(error.phase, error.partial);
    if (this.#cancelled && saysStopped(error, this.#cancelled)) return this.stopped();
    return this.complete({ outcome: 'FAILED', error: taskErrorOf(error) });
  }

  /** Says that the work has stopped after a cancel: in which phase of it, and how far it had come. It waits as done does. */
  async stopped(phase?: string, partial?: unknown): Promise<CompletedResponse> {
    return this.complete({
      outcome: 'CANCELLED',
      ...(phase && { cancelledDuringPhase: phase }),
      ...(partial !== undefined && { partialProgress: partial as CompletedRequest['partialProgress'] }),
    });
  }

  /**
   * Sends a completion; attempt, worker and time are filled in. Once it is on its way no beat is sent any more. Where the attempt is
   * not ours any more nothing is sent, and the error says why; so it is where the server refuses it.
   */
  async complete(request: Omit<CompletedRequest, 'attempt'>, options: { signal?: AbortSignal } = {}): Promise<CompletedResponse> {
    const { workerId } = this.#who();
    const completedAt = new Date(this.#client.clock.wall()).toISOString();
    this.#throwIfOver();
    const body = completionOf({ ...request, attempt: this.number, completedAt, workerId });
    if (this.#phase === 'starting') {
      await this.started;
      this.#throwIfOver();
    }
    if (this.#holder) this.#hub.ending(this.#key, this.#holder.crew);
    try {
      return await this.#await(this.#send(body, options.signal), request.outcome);
    } finally {
      if (this.#holder) this.#hub.settled(this.#key, this.#holder.crew);
    }
  }

  /** Waits for the answer to a completion, with which the attempt is over. */
  async #await(answer: Promise<CompletedResponse>, outcome: CompletedRequest['outcome'] = 'FAILED'): Promise<CompletedResponse> {
    this.#phase = 'ending';
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

  /** Ends the beats and sends nothing: the server will find the attempt lost. After a completion it does nothing. */
  abandon(): void {
    if (this.#phase === 'ending' || this.#phase === 'over') return;
    void this.#hub.release(this.#key).catch(() => {});
    this.#givingUp.abort(new EndedError());
    this.#finish();
  }

  /** Fails the attempt if nobody has completed it: nobody will. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#phase === 'ending' || this.#phase === 'over') return;
    await this.started.catch(() => {});
    if (this.#end || this.#phase !== 'running') return this.abandon();
    if (this.#cancelled) await this.stopped();
    else await this.fail(new Failure('the block that tracked the attempt was left without done() or fail()'));
  }

  /** @internal Ends the signal for a reason that is not the server's; the attempt is still ours. */
  interrupt(reason: Error): void {
    this.#over.abort(reason);
  }

  /** @internal Sends nothing more about the attempt, which stays in its worker's inventory. */
  giveBack(): void {
    if (this.#phase === 'ending' || this.#phase === 'over') return;
    if (this.#said && this.#phase === 'running') this.#pass();
    this.#hub.giveBack(this.#key);
    this.#givingUp.abort(new EndedError());
    this.#finish();
  }

  /** @internal The attempt is not ours any more, since an operator took its worker offline. */
  lose(reason: string): void {
    this.#givingUp.abort(new EndedError());
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
          'so that one lost beat would end it; give it more at its creation',
      );
    }
    if (this.#timeoutMs < 3000) {
      const fields = { taskId, timeoutMs: this.#timeoutMs };
      this.#client.log.warn('A heartbeat timeout this short leaves no room for one Retry-After', fields);
    }
  }

  #tokenLasts(inMs: number): void {
    if (inMs > 0) this.#expires = { at: read(this.#client.clock), inMs };
  }

  /** Ends the signal with another one. */
  #follow(signal: AbortSignal | undefined): () => void {
    if (!signal) return () => {};
    const linked = link(signal);
    const pass = () => this.#over.abort(signal.reason);
    if (linked.signal.aborted) pass();
    linked.signal.addEventListener('abort', pass, { once: true });
    return linked.release;
  }

  /** Says that the attempt has started, until it is answered; then it is beaten for. */
  async #start(intervalMs: number): Promise<void> {
    const startedAt = new Date(this.#client.clock.wall()).toISOString();
    const body = JSON.stringify({ attempt: this.number, startedAt, ...this.#who() });
    try {
      const call = { method: 'POST', path: this.#path('started'), body, signal: this.#givingUp.signal };
      const answer = (await this.#persist(call, (at) => (this.#accepted = at))) as StartedResponse;
      if (this.#phase !== 'starting') throw new EndedError();
      this.#phase = 'running';
      this.#hold(intervalMs);
      if (answer.shouldCancel) this.#cancel(answer.cancelReason ?? '');
    } catch (error) {
      const end = endOfError(error);
      if (end) this.#close(end);
      else this.#over.abort(error);
      this.#finish();
      throw end ?? error;
    }
  }

  #hold(intervalMs: number): void {
    const ears: AttemptEars = { hear: (news) => this.#hear(news) };
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
    this.#hub.hold(hold, this.#holder ? { crew: this.#holder.crew } : { urls: this.#base.urls }, ears);
    if (this.#said) this.#pass();
    if (this.#strict) this.#lookLater();
  }

  #limits(): Limits | undefined {
    if (!this.#holder) return undefined;
    const { taskTimeoutMs, watchdogMs } = this.#holder.limits;
    const graceMs = Math.max(this.envelope.cancelGracePeriodMs, 1000);
    return { since: this.#client.clock.now(), taskTimeoutMs, watchdogMs, graceMs, urls: this.#base.urls, expires: this.#expires };
  }

  #hear(news: Parameters<AttemptEars['hear']>[0]): void {
    switch (news.is) {
      case 'cancel':
        return this.#cancel(news.reason);
      case 'ended':
        return this.#close(endOf(news.code, news.fields) ?? endOf('task_already_terminal', news.fields)!);
      case 'leaseEnded':
        return this.#close(new LeaseEnded(news.silentMs));
      case 'token':
        this.#token = news.token;
        return this.#tokenLasts(news.lastsMs);
      case 'timeUp': {
        const { taskTimeoutMs, watchdogMs } = this.#holder!.limits;
        return this.interrupt(news.limit === 'task' ? new TaskTimeout(taskTimeoutMs) : new Stuck(watchdogMs));
      }
      case 'reporting':
        if (this.#phase === 'running') this.#holder!.onReport(this.#await(this.#reported()));
        return;
      case 'reported':
        void this.#hub.release(this.#key).catch(() => {});
        void this.#reported();
        return news.answer ? this.#onReported!.resolve(news.answer) : this.#onReported!.reject(errorOf(news.failure!));
      case 'accepted':
        this.#timeoutMs = news.timeoutMs;
        if (news.sent.mono > this.#accepted.mono) this.#accepted = news.sent;
    }
  }

  #cancel(reason: string): void {
    if (this.#cancelled || this.#end || this.#phase !== 'running') return;
    this.#cancelled = new Cancelled(reason);
    this.#over.abort(this.#cancelled);
  }

  /** Ends the signal, since the attempt is not ours any more. */
  #close(end: AttemptEnd | ClosedError): void {
    if (this.#end || this.#phase === 'over' || this.#phase === 'ending') return;
    this.#end = end;
    this.#over.abort(end);
  }

  #finish(): void {
    this.#phase = 'over';
    this.#unlink();
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    this.#over.abort(new EndedError());
    this.#onOver();
  }

  /** Says why the attempt is over. After a sleep of the machine nothing else may have looked at a strict lease yet. */
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

  #passLater(ms: number): void {
    this.#passing = true;
    this.#after(ms, () => {
      this.#passing = false;
      if (this.#said && this.#phase === 'running') this.#pass();
    });
  }

  /** Passes on what was said. */
  #pass(): void {
    const said = this.#said!;
    this.#said = undefined;
    this.#passed = this.#client.clock.now();
    this.#hub.progress(this.#key, said);
  }

  #path(what: string): string {
    return `/v1/tasks/${seg(this.taskId)}/${what}`;
  }

  /** Sends the completion, unless it is reported where the beats come from. */
  async #send(body: string, signal?: AbortSignal): Promise<CompletedResponse> {
    const { said, reported } = await this.#hub.release(this.#key, this.#said);
    if (reported) return this.#reported();
    const progress = said && { attempt: this.number, progressPct: said.pct, message: said.message };
    const call = { base: this.#base, token: this.#token, signal: signal ?? this.#holder?.over };
    return sendCompletion(this.#client.caller, this.taskId, body, progress, call, this.#persistence());
  }

  /** Waits for what becomes of a completion that is reported where the beats come from. */
  #reported(): Promise<CompletedResponse> {
    this.#report ??= new Promise((resolve, reject) => (this.#onReported = { resolve, reject }));
    return this.#report;
  }

  /** Makes a call until it is answered, or until nothing can open it any more. */
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
  throw new UsageError(
    'lubdub: this is no envelope of a task: it needs taskId, attempt and taskToken, as creations and claims answer them',
  );
}
