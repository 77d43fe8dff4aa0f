import type { Clock, Timer } from '../clock.js';

/**
 * A clock that a test controls: time moves only when the test moves it. Waits are rounded up to whole milliseconds, as Node's are; the clock
 * would not advance by a wait that is smaller than the precision of its time.
 */
export class HandClock implements Clock {
  #mono = 1000;
  #wall = Date.UTC(2026, 0, 1);
  #timers: { at: number; f: () => void }[] = [];

  now(): number {
    return this.#mono;
  }

  wall(): number {
    return this.#wall;
  }

  setTimeout(f: () => void, ms: number): Timer {
    const timer = { at: this.#mono + Math.max(0, Math.ceil(ms)), f };
    this.#timers.push(timer);
    return { cancel: () => void (this.#timers = this.#timers.filter((one) => one !== timer)) };
  }

  /** Advances the clock, and wakes waiters in the order of their times; each runs before time moves on. */
  async advance(ms: number): Promise<void> {
    const end = this.#mono + ms;
    await settle();
    for (let next = this.#next(); next && next.at <= end; next = this.#next()) {
      this.#goTo(next.at);
      this.#timers = this.#timers.filter((one) => one !== next);
      next.f();
      await settle();
    }
    this.#goTo(end);
  }

  /** Advances the clock as if the host had slept: the monotonic clock is stopped, and no waiter is woken. */
  jump(ms: number): void {
    this.#wall += ms;
  }

  /** Advances the clock, from one waiter to the next, until a condition holds; fails if it does not hold within a day. */
  async until(what: string, holds: () => boolean): Promise<void> {
    const end = this.#mono + 24 * 3_600_000;
    for (;;) {
      await settle();
      if (holds()) return;
      const next = this.#next();
      if (!next || next.at > end) throw new Error(`it did not happen: ${what}`);
      await this.advance(Math.max(0, next.at - this.#mono));
    }
  }

  #next(): { at: number; f: () => void } | undefined {
    let first = this.#timers[0];
    for (const timer of this.#timers) if (timer.at < first!.at) first = timer;
    return first;
  }

  #goTo(at: number): void {
    if (at <= this.#mono) return;
    this.#wall += at - this.#mono;
    this.#mono = at;
  }
}

/** Lets pending work in this thread run until it waits. */
async function settle(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
}
