import { textOf } from './failure.js';
import type { Logger } from './metrics.js';

const form = /^([\da-f]{2})-(?!0+-)([\da-f]{32})-(?!0+-)([\da-f]{16})-([\da-f]{2})(-[\x21-\x7e]{0,456})?$/;

/** The parts of a W3C traceparent; undefined: it is not one. Versions after 00 may have more parts. */
export function parseTraceparent(text: unknown): { traceId: string; spanId: string; flags: number } | undefined {
  const [, version, traceId, spanId, flags, more] = (typeof text === 'string' && form.exec(text)) || [];
  if (!traceId || !spanId || version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  return { traceId, spanId, flags: parseInt(flags!, 16) };
}

/** Returns a function that calls f for a valid traceparent, and logs its first error. */
export function traceparentOf(f: () => string | undefined, log: Logger): () => string | undefined {
  let hasFailed = false;
  return () => {
    try {
      const text = f();
      return parseTraceparent(text) && text;
    } catch (error) {
      if (!hasFailed) log.warn('The option traceparent has thrown an error; tasks are created without a trace', { error: textOf(error) });
      hasFailed = true;
      return undefined;
    }
  };
}
