import type { Moment } from '../clock.js';
import { AnswerError } from '../errors.js';
import { intervalOf, isObject, millis, objects, plain, text } from '../answers.js';
import type { HeartbeatResult } from '../types.js';
import type { Held } from './held.js';
import type { Emit } from './messages.js';

/** The longest pause that is honoured, in ms. */
const maxPause = 3_600_000;

/** The result of a POST /v1/heartbeats. */
export interface Taken {
  /** How long the server asks to wait, in ms. */
  pause: number;
  /** The shares of the renewed leases that were left. */
  left: number[];
  /** Attempts whose heartbeat was answered; the others are sent again. */
  answered: Held[];
}

/** Applies the answer to POST /v1/heartbeats. */
export function takeResults(batch: Held[], answer: unknown, sent: Moment, now: Moment, emit: Emit): Taken {
  const results = objects(isObject(answer) ? answer['results'] : undefined);
  if (results.length !== batch.length || results.some((result, i) => result['taskId'] !== batch[i]!.hold.taskId)) {
    throw new AnswerError(`lubdub: POST /v1/heartbeats: expected one result for each of ${batch.length} heartbeats`);
  }
  const taken: Taken = { pause: 0, left: [], answered: [] };
  batch.forEach((held, i) => {
    const result = results[i] as Partial<HeartbeatResult>;
    if (result.status === 503 || result.status === 429) {
      taken.pause = Math.max(taken.pause, 100, Math.min(maxPause, millis(result.retryAfterMs)));
      return;
    }
    taken.answered.push(held);
    if (result.status === 200) taken.left.push(accepted(held, result, sent, now, emit));
    else refused(held, result, emit);
  });
  return taken;
}

function accepted(held: Held, result: Partial<HeartbeatResult>, sent: Moment, now: Moment, emit: Emit): number {
  const left = held.take(sent, now, 0);
  held.interval = intervalOf(result.nextHeartbeatMs, held.timeout, held.interval);
  const token = plain(result.taskToken);
  if (token) {
    held.token = token;
    const lastsMs = Date.parse(text(result.tokenExpiresAt)) - Date.parse(text(result.serverTime));
    if (lastsMs > 0) held.expires = { at: now, inMs: lastsMs };
    emit({ is: 'token', key: held.hold.key, token, lastsMs });
  }
  if (result.shouldCancel) held.cancel(text(result.cancelReason));
  return left;
}

function refused(held: Held, result: Partial<HeartbeatResult>, emit: Emit): void {
  const code = text(result.error);
  emit({ is: 'refused', code });
  if (held.refuse(code, result) || held.warned) return;
  // A refusal of this kind does not concern the attempt.
  held.warned = true;
  const { taskId, attempt } = held.hold;
  const fields = { taskId, attempt, status: result.status, code, message: text(result.message) };
  emit({ is: 'log', level: 'error', message: 'A heartbeat is refused; the work continues', fields });
}
