import { setMaxListeners } from 'node:events';

/**
 * Returns a signal that ends with the first of several. AbortSignal.any needs Node 20.3, and its result stays attached to signals that live
 * as long as the program.
 */
export function link(...signals: (AbortSignal | undefined)[]): { signal: AbortSignal; release(): void } {
  const joined = new AbortController();
  const undo: (() => void)[] = [];
  const release = () => {
    for (const f of undo.splice(0)) f();
  };
  for (const signal of signals) {
    if (!signal) continue;
    if (signal.aborted) {
      joined.abort(signal.reason);
      break;
    }
    const pass = () => {
      joined.abort(signal.reason);
      release();
    };
    setMaxListeners(0, signal); // each call in flight adds a listener
    signal.addEventListener('abort', pass, { once: true });
    undo.push(() => signal.removeEventListener('abort', pass));
  }
  if (joined.signal.aborted) release();
  return { signal: joined.signal, release };
}

/** The outcome of work, or the reason of a signal as soon as that ends. The signal should end the work too; its outcome is then ignored. */
export async function untilAborted<T>(signal: AbortSignal | undefined, work: () => T | Promise<T>): Promise<T> {
  signal?.throwIfAborted();
  if (!signal) return work();
  let stop = () => {};
  const ended = new Promise<never>((_, reject) => (stop = () => reject(signal.reason as Error)));
  setMaxListeners(0, signal);
  signal.addEventListener('abort', stop, { once: true });
  try {
    return await Promise.race([work(), ended]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Yields what an iterable yields, and throws the reason of a signal as soon as that ends. */
export async function* eachUntilAborted<T>(
  items: Iterable<T> | AsyncIterable<T>,
  signal?: AbortSignal,
): AsyncGenerator<T, void, undefined> {
  const from = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  let isOver = false;
  try {
    for (;;) {
      const next = await untilAborted(signal, () => from.next());
      isOver = next.done === true;
      if (next.done) return;
      yield next.value;
    }
  } catch (error) {
    isOver ||= !signal?.aborted; // an iterator that fails has ended
    throw error;
  } finally {
    // An iterator that waits ends only after its wait, for which an aborted signal does not wait.
    const ended = isOver ? undefined : Promise.resolve(from.return?.()).catch(() => {});
    if (!signal?.aborted) await ended;
  }
}

/** Calls look before each read of a signal's state. */
export function checkOnRead(signal: AbortSignal, look: () => void): void {
  const proto = Object.getOwnPropertyDescriptors(AbortSignal.prototype);
  const aborted = () => {
    look();
    return proto.aborted.get!.call(signal) as boolean;
  };
  Object.defineProperty(signal, 'aborted', { configurable: true, enumerable: true, get: aborted });
  Object.defineProperty(signal, 'throwIfAborted', {
    configurable: true,
    value: () => {
      if (aborted()) throw signal.reason;
    },
  });
}
