import type { Clock } from './clock.js';
import type { Level } from './metrics.js';

/** Logs an outage once when it begins and once when it ends, however many calls fail. */
export class Outage {
  readonly #clock: Clock;
  readonly #log: (level: Level, message: string, fields: object) => void;
  readonly #failing = new Set<unknown>();
  #since = 0;

  constructor(clock: Clock, log: (level: Level, message: string, fields: object) => void) {
    this.#clock = clock;
    this.#log = log;
  }

  /** A call was not answered, or with 503. The outage ends when every caller has been answered. */
  failed(caller: unknown, what: string, error: unknown): void {
    if (this.#failing.size === 0) {
      this.#since = this.#clock.now();
      this.#log('warn', `No answer from Lubdub: ${what} failed and is retried`, {
        error: error instanceof Error ? error.message : String(error),
      });
    }
    this.#failing.add(caller);
  }

  answered(caller: unknown): void {
    if (!this.#failing.delete(caller) || this.#failing.size > 0) return;
    this.#log('info', 'Lubdub answers again', { afterSeconds: Math.round((this.#clock.now() - this.#since) / 100) / 10 });
  }

  /** The caller makes no more calls. */
  gone(caller: unknown): void {
    this.#failing.delete(caller);
  }
}
