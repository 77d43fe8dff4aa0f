import { type Call, type Caller, maxPause, operation, seg } from './call.js';
import { backoff, elapsed, firstPause, type Moment, read } from './clock.js';
import { endOfError } from './ends.js';
import { ApiError, mayRetry, retryAfterOf, UnansweredError } from './errors.js';
import type { CompletedResponse } from './types.js';

/** When a token expires: this long after a moment. */
export interface Expiry {
  at: Moment;
  inMs: number;
}

export interface Persistence {
  /** Called with the time when the answered request was sent. */
  onSent?(at: Moment): void;
  /** When the token expires; undefined: unknown. */
  expires(): Expiry | undefined;
  /** Another, newer token that is valid for the call. */
  other(): string | undefined;
  /** The heartbeat timeout. Pauses are short compared with it: an attempt that is being completed is in no inventory. */
  leaseMs: number;
  /** Makes the first try in another way; undefined: it did not. */
  instead?(): Promise<unknown>;
}

/** Sends the last progress and checkpoint of an attempt, if no heartbeat has, and then its completion, until it is answered. */
export async function sendCompletion(
  caller: Caller,
  taskId: string,
  body: string,
  progress: string | undefined,
  call: Pick<Call, 'base' | 'token' | 'signal'>,
  persistence: Persistence,
  exchanged?: () => Promise<CompletedResponse | undefined>,
): Promise<CompletedResponse> {
  const path = `/v1/tasks/${seg(taskId)}/`;
  if (progress) {
    const beat = { ...call, method: 'POST', path: path + 'heartbeat', body: progress };
    await persist(caller, beat, persistence).catch((error: unknown) => {
      if (mayRetry(error) || endOfError(error) || call.signal?.aborted) throw error;
    });
  }
  const completed = { ...call, method: 'POST', path: path + 'completed', body };
  return (await persist(caller, completed, { ...persistence, instead: exchanged })) as CompletedResponse;
}

/** Retries a call until it is answered or no token is valid any more; each try is byte for byte the same. */
export async function persist(caller: Caller, given: Call, { onSent, expires, other, leaseMs, instead }: Persistence): Promise<unknown> {
  const { clock } = caller.set;
  const call: Call = { ...given, tries: 1 };
  const most = Math.min(maxPause, Math.max(firstPause, leaseMs / 12));
  for (let n = 0; ; n++) {
    const sent = read(clock);
    try {
      const answer = (n === 0 && (await instead?.())) || (await caller.do(call));
      onSent?.(sent);
      return answer;
    } catch (error) {
      const opens = other();
      if (error instanceof ApiError && error.status === 401 && opens && call.token !== opens) {
        call.token = opens;
        continue;
      }
      if (!mayRetry(error)) throw error;
      const pause = retryAfterOf(error) + backoff(n, most);
      const until = expires();
      if (until && elapsed(until.at, read(clock)) + pause > until.inMs) {
        throw new UnansweredError(operation(call), 'abandoned, since its token has expired', false, error);
      }
      await caller.pause(pause, call.signal);
    }
  }
}
