/** Is told what happens; adapt it to what you count with. All are optional. What they throw is ignored. */
export interface Metrics {
  /** A request with beats: ok, refused or unanswered; for how many attempts, and how long it took. */
  beat?(result: 'ok' | 'refused' | 'unanswered', attempts: number, tookMs: number): void;
  /** A beat or completion that was refused with a code. */
  refused?(code: string): void;
  /** What was left of the lease when a beat was accepted: 1 is all, 0 nothing. */
  leaseLeft?(ratio: number): void;
  /** A completion that was answered. */
  completed?(outcome: string): void;
  /** An answer to a claim, with how many tasks. */
  claimed?(result: 'ok' | 'refused' | 'unanswered', tasks: number): void;
  /** How many attempts a worker works on now. */
  running?(n: number): void;
}

/** What is logged to, shaped as console. */
export interface Logger {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
}

export type Level = keyof Logger;

/** Writes to standard error, one line for each message, all but debug. */
export const plain: Logger = { debug() {}, info: write('info'), warn: write('warn'), error: write('error') };

function write(level: Level) {
  return (message: string, fields: object = {}) => {
    const known = Object.entries(fields).filter(([, value]) => value !== undefined && value !== '');
    console.error([`${level}: ${message}`, ...known.map(([name, value]) => `${name}=${JSON.stringify(value)}`)].join(' '));
  };
}

/** Has whatever a logger or a counter throws end nothing: a full disk must not stop beats. */
export function guarded<T extends object>(inner: T): T {
  return new Proxy(inner, {
    get(target, name) {
      const f: unknown = Reflect.get(target, name);
      if (typeof f !== 'function') return f;
      return (...given: unknown[]) => {
        try {
          (f as (...all: unknown[]) => void).apply(target, given);
        } catch {
          // It is the logger's trouble.
        }
      };
    },
  });
}
