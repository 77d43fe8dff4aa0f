/** Time as the SDK sees it: the machine's, or one in the hand of a test. */
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
}

/** What both clocks said at one moment. */
export interface Moment {
  mono: number;
  wall: number;
}

/** The longest that timers of Node can wait, about. */
const longest = 2 ** 31 - 1;

/** The machine's clock. */
export const machineClock: Clock = {
  now: () => Number(process.hrtime.bigint()) / 1e6,
  wall: () => Date.now(),
  setTimeout(f, ms) {
    const timer = setTimeout(f, Math.min(Math.max(0, Math.ceil(ms)), longest));
    return { cancel: () => clearTimeout(timer) };
  },
};

export function read(clock: Clock): Moment {
  return { mono: clock.now(), wall: clock.wall() };
}

/**
 * How much time has passed from one moment to a later one, time in which the machine slept included: there the monotonic clock stands
 * still and the wall clock does not. A wall clock that was put back does not count.
 */
export function elapsed(from: Moment, to: Moment): number {
  return Math.max(to.mono - from.mono, to.wall - from.wall);
}

/** Waits until ms have passed, or until the signal ends; true: they have passed. */
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

/** Bounds the first pause of backoff, in ms. */
export const firstPause = 100;

/**
 * How long to wait before repeat n, counted from 0: evenly from nothing to a bound that doubles, so that a crowd does not come back as
 * one.
 */
export function backoff(n: number, most: number): number {
  return Math.random() * Math.min(most, firstPause * 2 ** Math.min(n, 20));
}

/** Makes an interval a little shorter, by chance, so that a fleet that was started together does not beat as one. */
export function spread(interval: number): number {
  return interval * (0.9 + Math.random() / 10);
}
