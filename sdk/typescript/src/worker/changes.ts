import { type Clock } from '../clock.js';

/** Wakes waiters when something has changed. */
export class Changes {
  #waiting = new Set<() => void>();

  notify(): void {
    for (const wake of this.#waiting) wake();
  }

  /** Waits until a condition holds, or one of the signals has ended; true: it holds. */
  until(holds: () => boolean, ...ended: AbortSignal[]): Promise<boolean> {
    return new Promise((resolve) => {
      const look = () => {
        const held = holds();
        if (!held && !ended.some((signal) => signal.aborted)) return;
        this.#waiting.delete(look);
        for (const signal of ended) signal.removeEventListener('abort', look);
        resolve(held);
      };
      this.#waiting.add(look);
      for (const signal of ended) signal.addEventListener('abort', look);
      look();
    });
  }
}

/** A signal that ends after ms milliseconds, until it is cancelled. */
export function deadline(clock: Clock, ms: number, reason?: Error): { signal: AbortSignal; cancel(): void } {
  const late = new AbortController();
  const timer = clock.setTimeout(() => late.abort(reason), ms);
  return { signal: late.signal, cancel: () => timer.cancel() };
}
