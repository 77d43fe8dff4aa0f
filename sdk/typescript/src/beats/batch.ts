import { type Caller, maxPause } from '../call.js';
import { backoff, type Moment, read, type Timer } from '../clock.js';
import type { Endpoints } from '../endpoints.js';
import { textOf } from '../failure.js';
import { mayRetry, retryAfterOf } from '../errors.js';
import type { Outage } from '../outage.js';
import { Free, type Held } from './held.js';
import type { Emit } from './messages.js';
import { bodyOf } from './reports.js';
import { takeResults } from './results.js';

/** Heartbeats per request. */
const maxBatch = 1000;

/** The longest pause between two checks, in ms. */
const longest = 3_600_000;

/**
 * Heartbeats for all attempts of one client whose callbacks go to the same endpoints. Attempts due by the next tick share a request, so
 * after its first heartbeat each attempt is part of the batch: one request per tick for up to maxBatch attempts.
 */
export class Batch {
  readonly #caller: Caller;
  readonly #base: Endpoints;
  readonly #emit: Emit;
  readonly #outage: Outage;
  readonly #all = new Set<Held>();
  readonly #free = new Free();
  #timer: Timer | undefined;
  #ticking = false; // some attempts that are due are not new
  #sending: Held[] = []; // attempts in the request in flight
  #until = 0; // nothing is sent before this time, because of Retry-After
  #failed = 0; // in a row
  // the share of an interval until the next tick; the first varies widely, to spread a fleet that starts at the same time
  #stretch = 0.5 + Math.random() / 2;

  constructor(caller: Caller, base: Endpoints, emit: Emit, outage: Outage) {
    this.#outage = outage;
    this.#caller = caller;
    this.#base = base;
    this.#emit = emit;
  }

  /** Starts heartbeats for an attempt, the first one at once. */
  add(held: Held): void {
    held.due = this.#caller.set.clock.now();
    this.#all.add(held);
    queueMicrotask(() => this.#look());
  }

  /** Stops heartbeats for an attempt, and waits until no request in flight includes it. */
  async remove(held: Held): Promise<void> {
    held.ended = true;
    this.#all.delete(held);
    await this.#free.until(() => !held.busy);
  }

  close(): void {
    this.#timer?.cancel();
    this.#all.clear();
  }

  /** Ends expired leases, and sends heartbeats that are due. */
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

  /** Sends heartbeats that are due; returns how long to wait if there are none. */
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

  /** Starts or ends a tick. At its start, attempts that would be due before the next one become due, so that they share a request. */
  #tick(now: number, least: number, ticks: boolean): void {
    if (ticks && !this.#ticking) {
      this.#stretch = 0.9 + Math.random() / 10;
      for (const held of this.#all) if (held.due < now + least) held.due = now;
    }
    this.#ticking = ticks;
  }

  /** Sends a batch and applies the answer. */
  async #beat(batch: Held[], sent: Moment): Promise<void> {
    this.#sending = batch;
    for (const held of batch) held.busy = true;
    const { clock } = this.#caller.set;
    let left: number[] = [];
    let result: 'ok' | 'refused' | 'unanswered' = 'ok';
    let pause = 0;
    try {
      const limitMs = Math.min(this.#caller.set.timeoutMs, ...batch.map((held) => held.timeout / 3));
      const call = { method: 'POST', path: '/v1/heartbeats', base: this.#base, open: true, body: bodyOf(batch), limitMs, tries: 1 };
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
    this.#free.notify();
    this.#look();
  }

  #again(held: Held, sent: Moment): void {
    held.fresh = false;
    held.due = sent.mono + held.interval * this.#stretch;
  }
}
