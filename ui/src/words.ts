import type { Evidence, HistoryEntry, Task, Worker } from './api';
import { clockTime, span } from './format';

// Sentences for the fields of the API: each states one field.

const reasons: Record<string, string> = {
  HEARTBEAT_TIMEOUT: 'it was silent for longer than its heartbeat timeout',
  CANCEL_TIMEOUT: 'it did not stop within the grace period of its cancel',
  DEADLINE_EXCEEDED: 'its deadline passed',
  RUN_TIMEOUT: 'it ran for longer than its run timeout',
  START_TIMEOUT: 'it was dispatched and did not start in time',
  WORKER_LOST: 'its worker was lost',
  WORKER_REPORTED: 'its worker reported that it failed',
  TERMINATED: 'it was terminated without waiting for its worker',
  NOT_IN_INVENTORY: 'its worker is alive, but two consecutive inventories did not list it',
  SUPERSEDED: 'it was superseded by another one',
  DEREGISTERED: 'it was deregistered',
  DRAINED: 'it was drained',
  DRAIN_DEADLINE: 'the deadline of its drain passed',
  FORCED_OFFLINE: 'it was taken offline',
};
export const because = (reason: string): string => reasons[reason] ?? reason;

export function evidence(e: Evidence): string[] {
  const out = [e.lastHeartbeatAt ? `Last heartbeat at ${clockTime(e.lastHeartbeatAt)} UTC.` : 'No heartbeat was received.'];
  if (e.timeoutMs > 0) out.push(`It was silent for ${span(e.silentMs)}; its timeout is ${span(e.timeoutMs)}.`);
  out.push(e.outageCreditMs ? `${span(e.outageCreditMs)} of outages excluded.` : 'No outage time excluded.');
  if (e.massExpiryHeld) out.push('The mass-expiry brake had held it for one more timeout.');
  if (e.workerReason) out.push(`Its worker: ${because(e.workerReason)}.`);
  out.push(`Decided by sweeper ${e.sweeper} at ${clockTime(e.detectedAt)} UTC, ${span(e.detectionLagMs)} after it was due.`);
  return out;
}

export function ended(h: HistoryEntry): string {
  const who = h.workerId ? ` on ${h.workerId}` : '';
  const what: Record<string, string> = {
    SUCCEEDED: 'succeeded',
    FAILED: 'failed',
    CANCELLED: 'was cancelled',
    ZOMBIE: 'became a zombie',
    TIMED_OUT: 'timed out',
    LOST: 'was lost',
    SUPERSEDED: 'was superseded',
  };
  return (
    `Attempt ${h.attempt}${who} ${what[h.outcome] ?? h.outcome}${h.reason ? `: ${because(h.reason)}` : ''}.` +
    (h.willRetry ? ' Another attempt follows.' : h.retriesExhausted ? ' Its retry policy is exhausted.' : '')
  );
}

export function outlook(t: Task): string {
  switch (t.state) {
    case 'QUEUED':
      return t.nextAttemptAt
        ? `It waits for its next attempt at ${clockTime(t.nextAttemptAt)} UTC.`
        : `It waits in the queue ${t.queue ?? ''} for a worker.`;
    case 'DISPATCHED':
      return `Attempt ${t.attempt} was dispatched${t.workerId ? ` to ${t.workerId}` : ''} and has not started yet.`;
    case 'RUNNING':
      return (
        `Attempt ${t.attempt} runs${t.workerId ? ` on ${t.workerId}` : ''}` +
        (t.liveness === 'LOST'
          ? ', and has been silent beyond its timeout: the next sweep ends it.'
          : t.liveness === 'LATE'
            ? ', and its heartbeat is late.'
            : ' and sends heartbeats.') +
        (t.cancelRequested ? ` A cancel is pending${t.cancelReason ? ` (${t.cancelReason})` : ''}.` : '')
      );
    case 'FAILED':
      return `It failed${t.reason ? `: ${because(t.reason)}` : ''}.` + (t.retriesExhausted ? ' Its retry policy is exhausted.' : '');
    case 'CANCELLED':
      return `It was cancelled${t.cancelReason ? ` (${t.cancelReason})` : ''}${t.reason ? `: ${because(t.reason)}` : ''}.`;
    default:
      return 'It succeeded.';
  }
}

export function hindrances(w: Worker): string[] {
  const why: Record<string, string> = {
    status: `its status is ${w.status}`,
    cordoned: `it is cordoned${w.cordon?.reason ? ` (${w.cordon.reason})` : ''}`,
    stale: 'its heartbeat is overdue',
    full: `it holds ${w.heldCount} of at most ${w.maxConcurrent}`,
  };
  return w.unschedulableReasons.map((r) => why[r] ?? r);
}
