import type { Evidence, HistoryEntry, Task, Worker } from './api';
import { clockTime, span } from './format';

// What the API tells, as sentences. Nothing here judges: each sentence says what a field says.

const reasons: Record<string, string> = {
  HEARTBEAT_TIMEOUT: 'it was silent for longer than its heartbeat timeout', CANCEL_TIMEOUT: 'it did not stop within the grace period of its cancel',
  DEADLINE_EXCEEDED: 'its deadline passed', RUN_TIMEOUT: 'it ran for longer than its run timeout', START_TIMEOUT: 'it was handed out and did not start in time',
  WORKER_LOST: 'its worker was lost', WORKER_REPORTED: 'its worker reported that it failed', TERMINATED: 'it was ended at once, without waiting for its worker',
  NOT_IN_INVENTORY: 'its worker lives, and two of its inventories in a row did not list it', SUPERSEDED: 'another one took its place',
  DEREGISTERED: 'it was deregistered', DRAINED: 'it was drained', DRAIN_DEADLINE: 'the deadline of its drain passed', FORCED_OFFLINE: 'it was taken offline',
};
export const because = (reason: string): string => reasons[reason] ?? reason;

export function evidence(e: Evidence): string[] {
  const out = [e.lastHeartbeatAt ? `The last beat was heard at ${clockTime(e.lastHeartbeatAt)} UTC.` : 'No beat was ever heard.'];
  if (e.timeoutMs > 0) out.push(`It was silent for ${span(e.silentMs)}; its timeout is ${span(e.timeoutMs)}.`);
  out.push(e.outageCreditMs ? `${span(e.outageCreditMs)} of outages were not counted as silence.` : 'No outage was credited.');
  if (e.massExpiryHeld) out.push('The mass expiry brake had given it one timeout more.');
  if (e.workerReason) out.push(`Its worker: ${because(e.workerReason)}.`);
  out.push(`${e.sweeper} judged so at ${clockTime(e.detectedAt)} UTC, ${span(e.detectionLagMs)} after it was due.`);
  return out;
}

export function ended(h: HistoryEntry): string {
  const who = h.workerId ? ` on ${h.workerId}` : '';
  const what: Record<string, string> = { SUCCEEDED: 'succeeded', FAILED: 'failed', CANCELLED: 'was cancelled', ZOMBIE: 'became a zombie', TIMED_OUT: 'timed out',
    LOST: 'was lost', SUPERSEDED: 'was superseded' };
  return `Attempt ${h.attempt}${who} ${what[h.outcome] ?? h.outcome}${h.reason ? `: ${because(h.reason)}` : ''}.` +
    (h.willRetry ? ' Another attempt follows.' : h.retriesExhausted ? ' The retry policy allows no more.' : '');
}

export function outlook(t: Task): string {
  switch (t.state) {
    case 'QUEUED': return t.nextAttemptAt ? `It waits for ${clockTime(t.nextAttemptAt)} UTC before it may be handed out again.` : `It waits in the queue ${t.queue ?? ''} for a worker.`;
    case 'DISPATCHED': return `Attempt ${t.attempt} was handed out${t.workerId ? ` to ${t.workerId}` : ''} and has not started yet.`;
    case 'RUNNING': return `Attempt ${t.attempt} runs${t.workerId ? ` on ${t.workerId}` : ''}` +
      (t.liveness === 'LOST' ? ', and is silent beyond its timeout: the next sweep ends it.' : t.liveness === 'LATE' ? ', and is late with its beat.' : ' and beats.') +
      (t.cancelRequested ? ` A cancel is pending${t.cancelReason ? ` (${t.cancelReason})` : ''}.` : '');
    case 'FAILED': return `It failed${t.reason ? `: ${because(t.reason)}` : ''}.` + (t.retriesExhausted ? ' The retry policy allows no more attempts.' : '');
    case 'CANCELLED': return `It was cancelled${t.cancelReason ? ` (${t.cancelReason})` : ''}${t.reason ? `: ${because(t.reason)}` : ''}.`;
    default: return 'It succeeded.';
  }
}

export function hindrances(w: Worker): string[] {
  const why: Record<string, string> = {
    status: `its status is ${w.status}`, cordoned: `it is cordoned${w.cordon?.reason ? ` (${w.cordon.reason})` : ''}`, stale: 'its beat is overdue',
    full: `it holds ${w.heldCount} of at most ${w.maxConcurrent}`,
  };
  return w.unschedulableReasons.map((r) => why[r] ?? r);
}
