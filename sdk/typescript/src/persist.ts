import { link } from './abort.js';
import { type Call, type Caller, maxPause, operation, seg } from './call.js';
import { backoff, elapsed, firstPause, type Moment, read, sleep } from './clock.js';
import { endOfError } from './ends.js';
import { ApiError, mayRetry, retryAfterOf, UnansweredError } from './errors.js';
import type { CompletedResponse } from './types.js';

/** When a token ends: so long after a moment. */
export interface Expiry {
  at: Moment;
  inMs: number;
}

export interface Persistence {
  /** Is told when what was answered left. */
  onSent?(at: Moment): void;
  /** When nothing opens the call any more; undefined: it is not known. */
  expires(): Expiry | undefined;
  /** Another token that opens it, and is newer. */
  other(): string | undefined;
  /** How long the attempt may be silent. Pauses are short beside it: no beat lists an attempt whose completion is on its way. */
  leaseMs: number;
}

/** Sends the last progress of an attempt, where no beat has brought it yet, and then its completion, until that is answered. */
export async function sendCompletion(
  caller: Caller,
  taskId: string,
  body: string,
  progress: object | undefined,
  call: Pick<Call, 'base' | 'token' | 'signal'>,
  persistence: Persistence,
): Promise<CompletedResponse> {
  const path = `/v1/tasks/${seg(taskId)}/`;
  if (progress) {
    const beat = { ...call, method: 'POST', path: path + 'heartbeat', body: JSON.stringify(progress) };
    await persist(caller, beat, persistence).catch((error: unknown) => {
      if (mayRetry(error) || endOfError(error) || call.signal?.aborted) throw error;
    });
  }
  return (await persist(caller, { ...call, method: 'POST', path: path + 'completed', body }, persistence)) as CompletedResponse;
}

/** Makes a call until it is answered, or until nothing can open it any more; the same each time, byte for byte. */
export async function persist(caller: Caller, given: Call, { onSent, expires, other, leaseMs }: Persistence): Promise<unknown> {
  const { clock } = caller.set;
  const call: Call = { ...given, tries: 1 };
  const most = Math.min(maxPause, Math.max(firstPause, leaseMs / 12));
  for (let n = 0; ; n++) {
    const sent = read(clock);
    try {
      const answer = await caller.do(call);
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
        throw new UnansweredError(operation(call), 'given up, since its token has ended', false, error);
      }
      const ended = link(caller.closing, call.signal);
      const slept = await sleep(clock, pause, ended.signal);
      ended.release();
      if (!slept) throw error;
    }
  }
}
