import type { CompletedResponse } from './types.js';

/** Receives events to count; connect it to your metrics library. All methods are optional, and errors in them are ignored. */
export interface Metrics {
  /** A heartbeat request: ok, refused or unanswered; for how many attempts, and its duration. */
  beat?(result: 'ok' | 'refused' | 'unanswered', attempts: number, tookMs: number): void;
  /** A heartbeat or completion was refused with a code. */
  refused?(code: string): void;
  /** The share of the lease that was left when a heartbeat was accepted: 1 is all, 0 nothing. */
  leaseLeft?(ratio: number): void;
  /** A completion was answered. */
  completed?(outcome: string): void;
  /** A claim was answered or failed; with how many tasks. */
  claimed?(result: 'ok' | 'refused' | 'unanswered', tasks: number): void;
  /** How many tasks a worker is running. */
  running?(n: number): void;
  /** An attempt is over that a worker has begun. */
  ended?(attempt: EndedAttempt): void;
}

/** How an attempt of a worker has ended, and its times in ms. */
export interface EndedAttempt {
  /** The task's type; empty if it has none, or one for which the worker has no handler. */
  type: string;
  queue: string;
  /** The number of the attempt, counted from 1. */
  attempt: number;
  /** LOST: the attempt was no longer the worker's. RETURNED: it was returned to its queue, since the worker stops. */
  outcome: CompletedResponse['finalState'] | 'LOST' | 'RETURNED';
  willRetry: boolean;
  /** From when the handler began until it returned; or until now, if the attempt is over before that. */
  durationMs: number;
  /** How long the task could be claimed before this attempt; undefined: unknown. */
  queueWaitMs: number | undefined;
  /** From the begin of the attempt until a server had accepted a heartbeat of it; undefined: none was accepted. */
  firstHeartbeatMs: number | undefined;
}

/** A logger, with the methods of console. */
export interface Logger {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
}

export type Level = keyof Logger;

/** Writes one line per message to standard error, except debug messages. */
export const plain: Logger = { debug() {}, info: write('info'), warn: write('warn'), error: write('error') };

function write(level: Level) {
  return (message: string, fields: object = {}) => {
    const known = Object.entries(fields).filter(([, value]) => value !== undefined && value !== '');
    console.error([`${level}: ${message}`, ...known.map(([name, value]) => `${name}=${JSON.stringify(value)}`)].join(' '));
  };
}

/** Catches errors of a logger or of metrics: a full disk must not stop heartbeats. */
export function guarded<T extends object>(inner: T): T {
  return new Proxy(inner, {
    get(target, name) {
      const f: unknown = Reflect.get(target, name);
      if (typeof f !== 'function') return f;
      return (...given: unknown[]) => {
        try {
          (f as (...all: unknown[]) => void).apply(target, given);
        } catch {
          // The logger's own problem.
        }
      };
    },
  });
}
