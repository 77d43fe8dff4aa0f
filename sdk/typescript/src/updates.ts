import type { ProgressUpdate } from './beats/messages.js';
import type { Clock, Timer } from './clock.js';
import { UsageError } from './errors.js';
import { checkpointOf, cutMessage } from './failure.js';
import type { TaskEnvelope } from './types.js';

/** The minimum pause between two updates of one kind, in ms; a later one replaces an earlier one. */
const passEvery = 100;

/** Progress and checkpoints on their way from a handler to the heartbeats, without pauses for each: the newest of each kind. */
export class Updates {
  readonly #clock: Clock;
  readonly #pass: (update: ProgressUpdate) => void;
  #unpassed: ProgressUpdate | undefined;
  #passedAt = { pct: -Infinity, details: -Infinity }; // when progress and a checkpoint were last passed on
  #timer: Timer | undefined;
  #isOpen = false;

  /** pass receives updates, once open was called. */
  constructor(clock: Clock, pass: (update: ProgressUpdate) => void) {
    this.#clock = clock;
    this.#pass = pass;
  }

  /** Passes an update on, at once if its kind was not passed on recently: the handler may block the event loop afterwards. */
  add(update: ProgressUpdate): void {
    this.#unpassed = { ...this.#unpassed, ...update };
    if (!this.#isOpen) return;
    const since = this.#clock.now() - this.#passedAt[update.details === undefined ? 'pct' : 'details'];
    if (since >= passEvery) return this.flush();
    this.#timer ??= this.#clock.setTimeout(() => this.flush(), passEvery - since);
  }

  /** Passes on what waits, and from now on what is added. */
  open(): void {
    this.#isOpen = true;
    this.flush();
  }

  /** Passes on what waits, if it is open. */
  flush(): void {
    if (!this.#isOpen) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    const update = this.#unpassed;
    if (!update) return;
    this.#unpassed = undefined;
    const now = this.#clock.now();
    if (update.pct !== undefined) this.#passedAt.pct = now;
    if (update.details !== undefined) this.#passedAt.details = now;
    this.#pass(update);
  }

  /** Passes nothing on any more, and returns what waits. */
  close(): ProgressUpdate | undefined {
    this.#isOpen = false;
    this.#timer?.cancel();
    return this.#unpassed;
  }
}

/** The update for progress that a handler reports. */
export function progressOf(pct: number, message?: string): ProgressUpdate {
  if (!(pct >= 0 && pct <= 100)) throw new UsageError(`lubdub: progress ${pct} is not between 0 and 100`);
  return message === undefined ? { pct } : { pct, message: cutMessage(message) };
}

/** The update for a checkpoint that a handler sets. */
export function detailsOf(checkpoint: unknown): ProgressUpdate {
  return { details: checkpointOf(checkpoint) };
}

/** The last progress in an envelope; undefined if there was none. */
export function lastProgressOf({ lastProgress }: TaskEnvelope): { progressPct: number; message: string } | undefined {
  const { progressPct = null, message = null } = lastProgress ?? {};
  return progressPct === null && message === null ? undefined : { progressPct: progressPct ?? 0, message: message ?? '' };
}
