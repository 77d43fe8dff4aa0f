import type { Evidence, HistoryEntry, Stats, System, Task, Worker } from './api';
import { clockTime, count, list, number, span } from './format';

// What the API tells, as sentences. Nothing here judges: each sentence says what a field says.

export interface Banner { side: 'fine' | 'us' | 'them' | 'both'; title: string; text: string }

// Refusals that say something of the server; the others tell a worker that its attempt is over.
const ours = ['overloaded', 'store_unavailable', 'internal'];

const overdue = 5000; // ms; a moment of it is ordinary

// us lists what is wrong with Lubdub itself, or with what it stands on.
export function us(system: System, stats: Stats): string[] {
  const wrong: string[] = [];
  for (const r of system.redis) if (r.error) wrong.push(`Redis ${r.address ?? 'inside the process'} is in trouble: ${r.error}`);
  const stopped = system.shards.filter((s) => s.stoppedMs >= 1000);
  if (stopped.length) {
    wrong.push(`time stands still on ${stopped.length} of ${count(system.shards.length, 'shard')}, for ${span(Math.max(...stopped.map((s) => s.stoppedMs)))}: ` +
      'beats do not land there, so nobody is judged silent');
  }
  const nobody = system.shards.filter((s) => !s.sweeper);
  if (nobody.length) wrong.push(`nobody sweeps ${nobody.length} of ${count(system.shards.length, 'shard')}, so the silent are not found there`);
  if (stats.rates.sweepLagMs >= 1000) wrong.push(`sweeps lag ${span(stats.rates.sweepLagMs)}`);
  if (stats.oldestOverdueMs >= overdue) wrong.push(`what sweepers should have taken first is ${span(stats.oldestOverdueMs)} overdue`);
  const step = stats.series.steps[stats.series.steps.length - 1];
  const turnedAway = ours.reduce((n, code) => n + (step?.refused[code] ?? 0), 0);
  if (turnedAway) wrong.push(`${number(turnedAway * 1000 / stats.series.stepMs)} beats a second are turned away`);
  if (system.brake.enabled && system.brake.held > 0) wrong.push(`the mass expiry brake remembers ${count(system.brake.held, 'entry', 'entries')}`);
  return wrong;
}

export function them(stats: Stats): string[] {
  const silent: string[] = [];
  if (stats.workers.lost) silent.push(`${count(stats.workers.lost, 'worker')} ${stats.workers.lost === 1 ? 'is' : 'are'} lost`);
  if (stats.workers.late) silent.push(`${count(stats.workers.late, 'worker')} ${stats.workers.late === 1 ? 'is' : 'are'} late`);
  return silent;
}

export function standing(system: System, stats: Stats): string {
  const slowest = Math.max(0, ...system.redis.map((r) => r.roundTripMs));
  const credit = Math.max(0, ...system.shards.map((s) => s.outageCreditMs));
  const still = Math.max(0, ...system.shards.map((s) => s.stoppedMs));
  return [
    still < 1000 ? 'Shard time moves' : '',
    credit ? `outages of the last hour took ${span(credit)} out of everyone's silence` : 'no outage credit in the last hour',
    system.brake.enabled ? `the brake is at ${system.brake.sharePct} % and remembers ${number(system.brake.held)}` : 'the brake is off',
    `sweeps lag ${span(stats.rates.sweepLagMs)}`,
    `Redis answers in ${number(slowest)} ms`,
  ].filter(Boolean).join(', ') + '.';
}

export function banner(system: System, stats: Stats): Banner {
  const ours = us(system, stats), theirs = them(stats), how = standing(system, stats);
  const upper = (s: string): string => s.charAt(0).toUpperCase() + s.slice(1);
  if (ours.length && theirs.length) return { side: 'both', title: 'Us, and perhaps them', text: `${upper(list(ours))}. Meanwhile ${list(theirs)}. ${how}` };
  if (ours.length) return { side: 'us', title: 'It is us', text: `${upper(list(ours))}. ${how}` };
  if (theirs.length) return { side: 'them', title: 'It is them', text: `${upper(list(theirs))}; Lubdub itself is well. ${how}` };
  return { side: 'fine', title: 'All is well', text: `Nobody is late. ${how}` };
}

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
