import { link } from './abort.js';
import { type Call, type Caller, maxPause, operation } from './call.js';
import { backoff, elapsed, type Moment, read, sleep } from './clock.js';
import { ApiError, mayRetry, retryAfterOf, UnansweredError } from './errors.js';

/** When a token ends: so long after a moment. */
export interface Expiry {
  at: Moment;
  inMs: number;
}

export interface Persistence {
  /** Is told when what was answered left. */
  onSent(at: Moment): void;
  /** When nothing opens the call any more; undefined: it is not known. */
  expires(): Expiry | undefined;
  /** Another token that opens it, and is newer. */
  other(): string | undefined;
}

/** Makes a call until it is answered, or until nothing can open it any more; the same each time, byte for byte. */
export async function persist(caller: Caller, given: Call, { onSent, expires, other }: Persistence): Promise<unknown> {
  const { clock } = caller.set;
  const call: Call = { ...given, tries: 1 };
  for (let n = 0; ; n++) {
    const sent = read(clock);
    try {
      const answer = await caller.do(call);
      onSent(sent);
      return answer;
    } catch (error) {
      const opens = other();
      if (error instanceof ApiError && error.status === 401 && opens && call.token !== opens) {
        call.token = opens;
        continue;
      }
      if (!mayRetry(error)) throw error;
      const pause = retryAfterOf(error) + backoff(n, maxPause);
      const until = expires();
      if (until && elapsed(until.at, read(clock)) + pause > until.inMs) {
        throw new UnansweredError(operation(call), 'given up, since its token has ended', false, error);
      }
      const ended = link(caller.closing, call.signal);
      const slept = await sleep(clock, pause, ended.signal);
      ended.release();
      if (!slept) throw error;
    }
  }
}
