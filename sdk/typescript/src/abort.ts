import { setMaxListeners } from 'node:events';

/**
 * Makes a signal that ends with the first of several. AbortSignal.any came with Node 20.3, and what it makes stays with signals that live
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
    setMaxListeners(0, signal); // each call that is under way is one
    signal.addEventListener('abort', pass, { once: true });
    undo.push(() => signal.removeEventListener('abort', pass));
  }
  if (joined.signal.aborted) release();
  return { signal: joined.signal, release };
}

/** Has something looked at before a signal says whether it has ended. */
export function lookingFirst(signal: AbortSignal, look: () => void): void {
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
