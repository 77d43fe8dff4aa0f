import { elapsed, type Moment } from '../clock.js';
import { endOf, type AttemptEnd } from '../ends.js';
import type { ErrorFields } from '../errors.js';
import type { Expiry } from '../persist.js';
import type { TaskError } from '../types.js';
import { Stuck, TaskTimeout } from '../worker/ends.js';
import type { Emit, Hold, Said } from './messages.js';

/** An attempt as the one sees it that beats for it. */
export class Held {
  readonly hold: Hold;
  readonly #emit: Emit;
  accepted: Moment;
  interval: number;
  timeout: number;
  token: string;
  ended = false; // it is not ours any more, or released
  warned = false; // of a refusal that ends nothing
  limited = true; // by the limits of the work
  reporting = false; // it is completed from here
  expires: Expiry | undefined; // the token
  #asked = false; // for its end
  #late = false; // its task timeout is over
  #moved: number; // when progress was reported last

  #said: Said | undefined; // replaces what was not sent yet
  #version = 0; // of what was said
  #delivered = 0; // of what a server has acknowledged

  // Of the one who beats.
  due = 0;
  fresh = true; // there was no beat yet
  busy = false; // a request that is under way names it
  sending = 0; // the version of the progress in there

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

  say(said: Said, now: number): void {
    this.#moved = now;
    this.#said = { ...this.#said, ...said };
    this.#version++;
  }

  /** What no server has acknowledged; undefined: nothing. */
  get unsaid(): Said | undefined {
    return this.#version === this.#delivered ? undefined : this.#said;
  }

  /** What a beat says of it. */
  beat(): { taskId: string; attempt: number; progressPct?: number; message?: string } {
    this.sending = this.#version;
    const { taskId, attempt } = this.hold;
    const said = this.unsaid;
    return { taskId, attempt, ...(said && { progressPct: said.pct }), ...(said?.message !== undefined && { message: said.message }) };
  }

  /** The beat that is about to be sent names it at most; what was said waits. */
  sayNothing(): void {
    this.sending = this.#delivered;
  }

  /** A beat was accepted that left at a moment; a lease of 0 is the attempt's own. What was left of the lease is returned. */
  take(sent: Moment, now: Moment, lease: number): number {
    if (lease > 0 && !this.hold.own) this.timeout = lease;
    const left = Math.max(0, 1 - elapsed(this.accepted, now) / this.timeout);
    if (sent.mono > this.accepted.mono) this.accepted = sent;
    this.#delivered = Math.max(this.#delivered, this.sending);
    this.warned = false;
    if (this.hold.strict) this.#emit({ is: 'accepted', key: this.hold.key, sent, timeoutMs: this.timeout });
    return left;
  }

  cancel(reason: string): void {
    if (this.#asked || this.ended) return;
    this.#asked = true;
    this.#emit({ is: 'cancel', key: this.hold.key, reason });
  }

  /** Ends it where a refusal says so. */
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

  /** Tells the handler when its time is over. How long until then, or the error to report where the handler has had its grace. */
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

  /** Ends it if its strict lease is over; how long until then otherwise, Infinity where that does not matter. */
  look(now: Moment): number {
    if (!this.hold.strict || this.ended) return Infinity;
    const silentMs = elapsed(this.accepted, now);
    if (silentMs < this.timeout) return Math.min(this.timeout - silentMs, lookEvery);
    this.ended = true;
    this.#emit({ is: 'leaseEnded', key: this.hold.key, silentMs });
    return Infinity;
  }
}

/** How often strict leases are looked at, in ms: timers stand still while a machine sleeps. */
export const lookEvery = 1000;

/** What waits until something is not under way any more. */
export class Free {
  #waiting: (() => void)[] = [];

  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  tell(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
