import type { Clock, Timer } from '../clock.js';

/** A clock in the hand of a test: time passes when it says so. */
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
    const timer = { at: this.#mono + Math.max(0, ms), f };
    this.#timers.push(timer);
    return { cancel: () => void (this.#timers = this.#timers.filter((one) => one !== timer)) };
  }

  /** Lets time pass; whatever waits is woken in its order, and has done what it does before time goes on. */
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

  /** Lets time pass as while the machine sleeps: the monotonic clock stands still, and nothing is woken. */
  jump(ms: number): void {
    this.#wall += ms;
  }

  /** Lets time pass, from one moment at which something waits to the next, until a condition holds; fails when it does not within a day. */
  async until(what: string, holds: () => boolean): Promise<void> {
    const end = this.#mono + 24 * 3_600_000;
    for (;;) {
      await settle();
      if (holds()) return;
      const next = this.#next();
      if (!next || next.at > end) throw new Error(`it did not come to pass: ${what}`);
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

/** Gives what is under way in this thread the time to come to where it waits. */
async function settle(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
}
