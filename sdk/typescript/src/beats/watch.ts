import type { Clock, Timer } from '../clock.js';
import type { Emit } from './messages.js';

/** Detects a blocked event loop: one that is not blocked answers a ping. */
export class Watch {
  readonly #clock: Clock;
  readonly #emit: Emit;
  readonly #waiting = new Set<Timer>();

  constructor(clock: Clock, emit: Emit) {
    this.#clock = clock;
    this.#emit = emit;
  }

  /** Sends a ping, and calls blocked if it is not answered within ms milliseconds. */
  ask(ms: number, blocked: () => void): void {
    const timer = this.#clock.setTimeout(() => {
      this.#waiting.delete(timer);
      blocked();
    }, ms);
    this.#waiting.add(timer);
    this.#emit({ is: 'ping' });
  }

  /** Receives the answer to a ping. */
  answered(): void {
    for (const timer of this.#waiting) timer.cancel();
    this.#waiting.clear();
  }
}
