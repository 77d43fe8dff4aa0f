import { elapsed, type Moment } from '../clock.js';
import { endOf, type AttemptEnd } from '../ends.js';
import type { ErrorFields } from '../errors.js';
import type { Expiry } from '../persist.js';
import type { TaskError } from '../types.js';
import { Stuck, TaskTimeout } from '../worker/ends.js';
import type { Emit, Hold, ProgressUpdate } from './messages.js';
import { beatOf, sizeOf } from './reports.js';

/** An attempt in the heartbeat loop. */
export class Held {
  readonly hold: Hold;
  readonly #emit: Emit;
  accepted: Moment;
  interval: number;
  timeout: number;
  token: string;
  ended = false; // it is no longer ours, or was released
  warned = false; // about a refusal that does not end it
  limited = true; // time limits apply
  reporting = false; // the heartbeat thread completes it
  expires: Expiry | undefined; // of the token
  #cancelRequested = false; // cancellation was requested
  #late = false; // its task timeout has passed
  #beaten = false; // a heartbeat was accepted
  #moved: number; // when progress was last reported

  #unsent: ProgressUpdate = {}; // reported, and not acknowledged by a server
  #sending: ProgressUpdate = {}; // what of it the request in flight includes

  // For the heartbeat loop.
  due = 0;
  fresh = true; // no heartbeat was sent yet
  busy = false; // a request in flight includes it
  waits = 0; // how many requests had no room for its report

  constructor(hold: Hold, emit: Emit) {
    this.hold = hold;
    this.#emit = emit;
    this.accepted = hold.accepted;
    this.interval = hold.intervalMs;
    this.timeout = hold.timeoutMs;
    this.token = hold.token;
    this.expires = hold.limits?.expires;
    this.#moved = hold.limits?.since ?? 0;
  }

  report(update: ProgressUpdate, now: number): void {
    this.#moved = now;
    this.#unsent = { ...this.#unsent, ...update };
  }

  /** What no server has acknowledged; undefined: nothing. */
  get unacknowledged(): ProgressUpdate | undefined {
    return Object.keys(this.#unsent).length > 0 ? this.#unsent : undefined;
  }

  /** Puts what no server has acknowledged into the next heartbeat if that has room for it; returns the bytes that it takes. */
  pack(room: number): number {
    const size = sizeOf(this.#unsent);
    const fits = size <= room;
    this.#sending = fits ? this.#unsent : {};
    this.waits = fits ? 0 : this.waits + 1;
    return fits ? size : 0;
  }

  /** The attempt's item in a heartbeat, with what pack has put into it. */
  beat(more: { taskToken?: string } = {}): string {
    const { taskId, attempt } = this.hold;
    return beatOf({ taskId, attempt, ...more }, this.#sending);
  }

  /**
   * Applies a heartbeat that was sent at a moment and accepted; a lease of 0 means the attempt's own. Returns the share of the lease that
   * was left.
   */
  take(sent: Moment, now: Moment, lease: number): number {
    if (lease > 0 && !this.hold.own) this.timeout = lease;
    const left = Math.max(0, 1 - elapsed(this.accepted, now) / this.timeout);
    if (sent.mono > this.accepted.mono) this.accepted = sent;
    const sentNow = ([name, value]: [string, unknown]) => this.#sending[name as keyof ProgressUpdate] === value;
    this.#unsent = Object.fromEntries(Object.entries(this.#unsent).filter((entry) => !sentNow(entry)));
    this.warned = false;
    const { key, strict, limits } = this.hold;
    if (strict || (limits && !this.#beaten)) this.#emit({ is: 'accepted', key, sent, timeoutMs: this.timeout, at: now.mono });
    this.#beaten = true;
    return left;
  }

  cancel(reason: string): void {
    if (this.#cancelRequested || this.ended) return;
    this.#cancelRequested = true;
    this.#emit({ is: 'cancel', key: this.hold.key, reason });
  }

  /** Ends the attempt if the refusal means that. */
  refuse(code: string, fields: Partial<ErrorFields>): AttemptEnd | undefined {
    const end = endOf(code, fields);
    if (end) this.end(code, fields);
    return end;
  }

  end(code: string, fields: Partial<ErrorFields>): void {
    if (this.ended) return;
    this.ended = true;
    this.#emit({ is: 'ended', key: this.hold.key, code, fields });
  }

  /**
   * Notifies the handler when its time limit has passed. Returns how long until then, or the error to report if the handler has had its
   * grace period.
   */
  lookAtLimits(now: number): number | TaskError {
    const {
      hold: { key, limits },
      ended,
      limited,
      reporting,
    } = this;
    if (!limits || ended || !limited || reporting) return Infinity;
    const { since, taskTimeoutMs, graceMs, watchdogMs } = limits;
    let wait = Infinity;
    if (watchdogMs > 0) {
      wait = this.#moved + watchdogMs - now;
      if (wait <= 0) {
        this.#emit({ is: 'timeUp', key, limit: 'watchdog' });
        return { category: 'TIMEOUT', message: new Stuck(watchdogMs).message };
      }
    }
    if (taskTimeoutMs === 0) return wait;
    const left = since + taskTimeoutMs - now;
    if (left <= 0 && !this.#late) {
      this.#late = true;
      this.#emit({ is: 'timeUp', key, limit: 'task' });
    }
    if (left + graceMs <= 0) return { category: 'TIMEOUT', message: new TaskTimeout(taskTimeoutMs).message };
    return Math.min(wait, this.#late ? left + graceMs : left);
  }

  /** Ends it if its strict lease has expired; otherwise returns how long until then, Infinity if it does not apply. */
  look(now: Moment): number {
    if (!this.hold.strict || this.ended) return Infinity;
    const silentMs = elapsed(this.accepted, now);
    if (silentMs < this.timeout) return Math.min(this.timeout - silentMs, lookEvery);
    this.ended = true;
    this.#emit({ is: 'leaseEnded', key: this.hold.key, silentMs });
    return Infinity;
  }
}

/** The pause between two checks of strict leases, in ms: timers stop while the host sleeps. */
export const lookEvery = 1000;

/** Waits until a request is no longer in flight. */
export class Free {
  #waiting: (() => void)[] = [];

  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  notify(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
