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
