import type { Evidence, HistoryEntry, Machine, Task, Worker } from './api';
import { clockTime, count, moment, number, span } from './format';
import { sentences, unschedulable } from './words.gen';

// Sentences for the fields of the API. They decide nothing: each states one field. Those that lubdub why has too are in words.gen.ts.

const fill = (sentence: string, values: object): string =>
  sentence.replace(/\{(\w+)\}/g, (all, name: string) => String((values as Record<string, unknown>)[name] ?? all));

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
  const utc = (at: string): string => `${clockTime(at)} UTC`;
  const outages = e.outageCreditMs ? fill(sentences.outages, { credit: span(e.outageCreditMs) }) : sentences.noOutages;
  const silent = e.timeoutMs > 0 ? sentences.silent : sentences.silentNoTimeout;
  return [
    e.lastHeartbeatAt
      ? fill(e.workerReason ? sentences.workerHeartbeat : sentences.lastHeartbeat, { at: utc(e.lastHeartbeatAt) })
      : sentences.noHeartbeat,
    fill(silent, { silent: span(e.silentMs), timeout: span(e.timeoutMs), outages }),
    fill(sentences.decided, { sweeper: e.sweeper, at: utc(e.detectedAt), lag: span(e.detectionLagMs) }),
    ...(e.workerReason ? [fill(sentences.workerLost, { reason: because(e.workerReason) })] : []),
    ...(e.massExpiryHeld ? [sentences.massExpiryHeld] : []),
  ];
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
    SNOOZED: 'was snoozed by its handler',
    SUPERSEDED: 'was superseded',
  };
  return (
    `Attempt ${h.attempt}${who} ${what[h.outcome] ?? h.outcome}${h.reason ? `: ${because(h.reason)}` : ''}.` +
    (h.willRetry ? ' Another attempt follows.' : h.retriesExhausted ? ` ${sentences.retriesExhausted}` : '')
  );
}

export function errorText(error: object | null | undefined): string {
  const { category, message } = (error ?? {}) as { category?: unknown; message?: unknown };
  return [category, message].filter((p) => typeof p === 'string' && p !== '').join(': ');
}

// reported states the error that a worker reported with the end of an attempt.
export function reported(error: object | null | undefined): string {
  const text = errorText(error);
  return text && `Its worker reported ${text}${/[.!?]$/.test(text) ? '' : '.'}`;
}

export function outlook(t: Task): string {
  switch (t.state) {
    case 'SCHEDULED':
      return `It starts at ${t.nextAttemptAt ? moment(t.nextAttemptAt) : ''}.`;
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
      return `It failed${t.reason ? `: ${because(t.reason)}` : ''}.` + (t.retriesExhausted ? ` ${sentences.retriesExhausted}` : '');
    case 'CANCELLED':
      return `It was cancelled${t.cancelReason ? ` (${t.cancelReason})` : ''}${t.reason ? `: ${because(t.reason)}` : ''}.`;
    default:
      return 'It succeeded.';
  }
}

export function whyUnschedulable(w: Worker): string[] {
  return w.unschedulableReasons.map((r) => fill((unschedulable as Record<string, string>)[r] ?? r, w));
}

const since = (what: string, of: { since: string | null; reason: string | null } | null, effect: string): string[] =>
  of ? [`${what}${of.since ? ` since ${moment(of.since)}` : ''}${of.reason ? ` (${of.reason})` : ''}: ${effect}.`] : [];
const stale = (n: number): string[] => (n ? [`It went stale ${count(n, 'time')} in the last 24 h.`] : []);

// workerEvidence states what a worker's status follows from.
export function workerEvidence(w: Worker): string[] {
  const beats = `it sends heartbeats every ${span(w.heartbeatIntervalMs)} and times out after ${span(w.heartbeatTimeoutMs)}`;
  const cause = w.endReason ? `: ${because(w.endReason)}` : '';
  const given = w.statusReason && w.statusReason !== w.endReason ? ` (${w.statusReason})` : '';
  return [
    w.lastHeartbeatAt ? `Last heartbeat at ${moment(w.lastHeartbeatAt)}; ${beats}.` : `${sentences.noHeartbeat.slice(0, -1)}; ${beats}.`,
    ...(w.status === 'OFFLINE' ? [`It ended${w.deregisteredAt ? ` at ${moment(w.deregisteredAt)}` : ''}${cause}${given}.`] : []),
    ...(w.status === 'DRAINING'
      ? [`It is draining${w.drainDeadline ? ` until ${moment(w.drainDeadline)}` : ''}${given}: it takes no new tasks.`]
      : []),
    ...since('It has been cordoned', w.cordon, 'it takes no new tasks'),
    ...since('It has been held offline', w.hold, 'its registrations are refused'),
    ...stale(w.staleCount24h),
    `It was up for ${number(w.uptimePct24h)} % of the last 24 h.`,
  ];
}

export function machineEvidence(m: Machine): string[] {
  return [
    m.lastHeartbeatAt ? `Last heartbeat of its workers at ${moment(m.lastHeartbeatAt)}.` : sentences.noHeartbeat,
    ...(m.drain?.deadline ? [`The drain ends at ${moment(m.drain.deadline)}: tasks still held then go to other workers.`] : []),
    ...stale(m.staleCount24h),
    `It was up for ${number(m.uptimePct24h)} % of the last 24 h.`,
  ];
}
