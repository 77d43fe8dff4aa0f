import { link } from '../abort.js';
import { type Caller, maxPause, seg } from '../call.js';
import { backoff, sleep } from '../clock.js';
import { copyOf } from '../copies.js';
import { isGone, mayRetry, retryAfterOf } from '../errors.js';
import type { Outage } from '../outage.js';
import { envelopesOf, isObject } from '../answers.js';
import type { Claimed, ClaimCommand, Emit, Session } from './messages.js';

/**
 * Sends a claim until it is answered, with the same claimId. It runs in the heartbeat thread, so that the claimed tasks are in the
 * inventory even while the program blocks its event loop.
 */
export async function claimUntilAnswered(
  caller: Caller,
  command: ClaimCommand,
  session: () => Session | undefined,
  ended: AbortSignal,
  emit: Emit,
  outage: Outage,
): Promise<Claimed> {
  const { queue, request } = command;
  const body = JSON.stringify(request);
  for (let n = 0; ; n++) {
    const current = session();
    if (!current) return { gone: 'the registration has ended' };
    try {
      const answer = await caller.do({
        method: 'POST',
        path: `/v1/queues/${seg(queue)}/claim`,
        token: current.token,
        body,
        waitMs: request.waitMs,
        tries: 1,
        signal: ended,
      });
      outage.answered(ended);
      const tasks = envelopesOf(isObject(answer) ? answer['tasks'] : undefined);
      emit({ is: 'claimed', result: 'ok', tasks: tasks.length });
      return { tasks };
    } catch (error) {
      if (ended.aborted || !mayRetry(error)) outage.gone(ended);
      if (ended.aborted) return {};
      if (isGone(error)) return { gone: error instanceof Error ? error.message : String(error), failure: copyOf(error) };
      emit({ is: 'claimed', result: mayRetry(error) ? 'unanswered' : 'refused', tasks: 0 });
      if (!mayRetry(error)) return { failure: copyOf(error) };
      outage.failed(ended, 'a claim', error);
      const over = link(ended, caller.closing);
      const slept = await sleep(caller.set.clock, retryAfterOf(error) + backoff(n, maxPause), over.signal);
      over.release();
      if (!slept) {
        outage.gone(ended);
        return {};
      }
    }
  }
}
