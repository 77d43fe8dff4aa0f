/** The clock of the SDK: the system's, or one that a test controls. */
export interface Clock {
  /** Milliseconds of a monotonic clock, the same in all threads of a process. */
  now(): number;
  /** Milliseconds since 1970. */
  wall(): number;
  /** Calls f once, after ms milliseconds; cancel prevents it. */
  setTimeout(f: () => void, ms: number): Timer;
}

export interface Timer {
  cancel(): void;
  /** Lets the process end before the call; a clock that never keeps the process alive needs none. */
  unref?(): void;
}

/** The readings of both clocks at one moment. */
export interface Moment {
  mono: number;
  wall: number;
}

/** The longest timeout that Node supports, roughly. */
const longest = 2 ** 31 - 1;

/** The system's clock. */
export const machineClock: Clock = {
  now: () => Number(process.hrtime.bigint()) / 1e6,
  wall: () => Date.now(),
  setTimeout(f, ms) {
    const timer = setTimeout(f, Math.min(Math.max(0, Math.ceil(ms)), longest));
    return { cancel: () => clearTimeout(timer), unref: () => void timer.unref() };
  },
};

export function read(clock: Clock): Moment {
  return { mono: clock.now(), wall: clock.wall() };
}

/**
 * The time from one moment to a later one, including the time while the host slept: then the wall clock advances and the monotonic clock
 * does not. A wall clock that was set back is ignored.
 */
export function elapsed(from: Moment, to: Moment): number {
  return Math.max(to.mono - from.mono, to.wall - from.wall);
}

/** Waits for ms milliseconds, or until the signal ends; true: the time has passed. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve(false);
    const stop = () => {
      timer.cancel();
      resolve(false);
    };
    const timer = clock.setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve(true);
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}

/** The upper bound of the first pause of backoff, in ms. */
export const firstPause = 100;

/** The pause before retry n, counted from 0: uniform between 0 and a bound that doubles, so that clients do not retry in step. */
export function backoff(n: number, most: number): number {
  return Math.random() * Math.min(most, firstPause * 2 ** Math.min(n, 20));
}

/** Shortens an interval slightly at random, so that a fleet that was started at the same time does not send its heartbeats in step. */
export function spread(interval: number): number {
  return interval * (0.9 + Math.random() / 10);
}
