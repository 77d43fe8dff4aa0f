import { type Caller, maxPause } from '../call.js';
import { backoff, type Moment, read, type Timer } from '../clock.js';
import type { Endpoints } from '../endpoints.js';
import { textOf } from '../failure.js';
import { mayRetry, retryAfterOf } from '../errors.js';
import type { Outage } from '../outage.js';
import { Free, type Held } from './held.js';
import type { Emit } from './messages.js';
import { takeResults } from './results.js';

/** How many beats one request has at most. */
const maxBatch = 1000;

/** How long there is nothing to look at, at most, in ms. */
const longest = 3_600_000;

/**
 * Beats for all attempts of one client whose callbacks go to the same place. Attempts that are due by the next tick go together, so that
 * after its first beat each is part of the crowd: one request a tick for up to maxBatch of them.
 */
export class Batch {
  readonly #caller: Caller;
  readonly #base: Endpoints;
  readonly #emit: Emit;
  readonly #outage: Outage;
  readonly #all = new Set<Held>();
  readonly #free = new Free();
  #timer: Timer | undefined;
  #ticking = false; // some are due that are not new
  #sending: Held[] = []; // a request is under way that names them
  #until = 0; // nothing is sent before: the server does not answer
  #failed = 0; // in a row
  #stretch = 0.5 + Math.random() / 2; // of intervals; the first time by much, so that a fleet that starts together spreads

  constructor(caller: Caller, base: Endpoints, emit: Emit, outage: Outage) {
    this.#outage = outage;
    this.#caller = caller;
    this.#base = base;
    this.#emit = emit;
  }

  /** Has an attempt beaten for, the first time at once. */
  add(held: Held): void {
    held.due = this.#caller.set.clock.now();
    this.#all.add(held);
    queueMicrotask(() => this.#look());
  }

  /** Has nothing more sent for an attempt. It returns once no request is under way that names it. */
  async remove(held: Held): Promise<void> {
    held.ended = true;
    this.#all.delete(held);
    await this.#free.until(() => !held.busy);
  }

  close(): void {
    this.#timer?.cancel();
    this.#all.clear();
  }

  /** Ends leases that are over, and sends what is due. */
  #look(): void {
    this.#timer?.cancel();
    const { clock } = this.#caller.set;
    const now = read(clock);
    let wait = longest;
    let least = longest;
    let ticks = false;
    for (const held of this.#all) {
      wait = Math.min(wait, held.look(now));
      if (held.ended) {
        this.#all.delete(held);
        continue;
      }
      least = Math.min(least, held.interval);
      ticks ||= !held.fresh && held.due <= now.mono;
    }
    if (this.#all.size === 0) return this.#outage.gone(this);
    if (this.#sending.length === 0) {
      if (this.#until > now.mono) wait = Math.min(wait, this.#until - now.mono);
      else wait = Math.min(wait, this.#send(now, least, ticks));
    }
    this.#timer = clock.setTimeout(() => this.#look(), wait);
  }

  /** Sends what is due; how long until something is otherwise. */
  #send(now: Moment, least: number, ticks: boolean): number {
    this.#tick(now.mono, least, ticks);
    let wait = longest;
    const batch: Held[] = [];
    for (const held of this.#all) {
      if (held.due > now.mono) wait = Math.min(wait, held.due - now.mono);
      else if (batch.length < maxBatch) batch.push(held);
    }
    if (batch.length > 0) void this.#beat(batch, now);
    return wait;
  }

  /** Begins or ends a tick. At its beginning whoever would be due before the next one is due: so all come together. */
  #tick(now: number, least: number, ticks: boolean): void {
    if (ticks && !this.#ticking) {
      this.#stretch = 0.9 + Math.random() / 10;
      for (const held of this.#all) if (held.due < now + least) held.due = now;
    }
    this.#ticking = ticks;
  }

  /** Sends a batch and takes the answer in. */
  async #beat(batch: Held[], sent: Moment): Promise<void> {
    this.#sending = batch;
    for (const held of batch) held.busy = true;
    const { clock } = this.#caller.set;
    let left: number[] = [];
    let result: 'ok' | 'refused' | 'unanswered' = 'ok';
    let pause = 0;
    try {
      const limitMs = Math.min(this.#caller.set.timeoutMs, ...batch.map((held) => held.timeout / 3));
      const body = JSON.stringify({ heartbeats: batch.map((held) => ({ ...held.beat(), taskToken: held.token })) });
      const call = { method: 'POST', path: '/v1/heartbeats', base: this.#base, open: true, body, limitMs, tries: 1 };
      const taken = takeResults(batch, await this.#caller.do(call), sent, read(clock), this.#emit);
      for (const held of taken.answered) this.#again(held, sent);
      ({ pause, left } = taken);
      this.#failed = 0;
      this.#outage.answered(this);
    } catch (error) {
      if (this.#caller.closing.aborted) return;
      result = mayRetry(error) ? 'unanswered' : 'refused';
      if (mayRetry(error)) this.#outage.failed(this, 'a heartbeat', error);
      else this.#emit({ is: 'log', level: 'warn', message: 'Heartbeats were not accepted', fields: { error: textOf(error) } });
      pause = retryAfterOf(error) + backoff(this.#failed++, Math.min(4 * maxPause, ...batch.map((held) => held.interval)) / 4);
    }
    this.#emit({ is: 'beat', result, attempts: batch.length, tookMs: clock.now() - sent.mono, left });
    if (pause > 0) this.#until = clock.now() + pause;
    for (const held of batch) held.busy = false;
    this.#sending = [];
    this.#free.tell();
    this.#look();
  }

  #again(held: Held, sent: Moment): void {
    held.fresh = false;
    held.due = sent.mono + held.interval * this.#stretch;
  }
}
