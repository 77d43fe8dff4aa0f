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
