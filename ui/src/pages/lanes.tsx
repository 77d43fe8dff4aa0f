import type { JSX } from 'preact';
import { serverNow, type Task, type Worker } from '../api';
import { second } from '../data';
import { escape } from '../escape';
import { clockTime, moment, span } from '../format';
import { Short } from '../ids';
import { use } from '../signal';

const most = 20;

interface Lane {
  label: string;
  name: string; // of the label, for screen readers
  from: number;
  started: number | null;
  beat: number | null;
  to: number;
  outcome: string;
  live: boolean;
  silent: boolean;
}

const at = (s: string | null | undefined): number | null => (s ? Date.parse(s) : null);

// Lanes shows a task's attempts on one time axis: waiting to start, running, and the silence at the end.
export function Lanes({ task }: { task: Task }): JSX.Element {
  use(second);
  const lanes: Lane[] = task.history.map((h) => ({
    label: `#${h.attempt}`,
    name: `Attempt ${h.attempt}`,
    from: at(h.dispatchedAt) ?? at(h.startedAt) ?? at(h.endedAt) ?? 0,
    started: at(h.startedAt),
    beat: at(h.lastHeartbeatAt),
    to: at(h.endedAt) ?? 0,
    outcome: h.outcome,
    live: false,
    silent: ['ZOMBIE', 'LOST'].includes(h.outcome),
  }));
  if (['DISPATCHED', 'RUNNING'].includes(task.state)) {
    lanes.push({
      label: `#${task.attempt}`,
      name: `Attempt ${task.attempt}`,
      from: at(task.dispatchedAt) ?? serverNow(),
      started: at(task.startedAt),
      beat: at(task.lastHeartbeatAt),
      to: serverNow(),
      outcome: task.state,
      live: true,
      silent: task.liveness !== null && task.liveness !== 'FRESH',
    });
  }
  if (!lanes.length) return <p class="none">It has not been dispatched yet.</p>;
  return <Chart lanes={lanes} nouns="attempts" />;
}

// Lives shows workers on one time axis, from their registrations to now or to their ends.
export function Lives({ workers }: { workers: Worker[] }): JSX.Element {
  use(second);
  const lanes = workers.map((w): Lane => {
    const label = w.name ?? w.workerId,
      registered = at(w.registeredAt) ?? 0,
      over = w.status === 'OFFLINE';
    return {
      label,
      name: `Worker ${label}`,
      from: registered,
      started: registered,
      beat: at(w.lastHeartbeatAt) ?? registered,
      to: over ? (at(w.deregisteredAt) ?? registered) : serverNow(),
      outcome: w.status,
      live: !over,
      silent: over ? w.endReason === 'HEARTBEAT_TIMEOUT' : w.liveness !== 'FRESH',
    };
  });
  if (!lanes.length) return <p class="none">No worker of this machine is stored.</p>;
  return <Chart lanes={lanes.sort((a, b) => a.from - b.from)} nouns="workers" />;
}

function Chart({ lanes, nouns }: { lanes: Lane[]; nouns: 'attempts' | 'workers' }): JSX.Element {
  const shown = lanes.slice(-most);
  const from = Math.min(...shown.map((l) => l.from)),
    to = Math.max(...shown.map((l) => l.to), from + 1000);
  const x = (t: number): number => Math.max(0, Math.min(100, ((t - from) / (to - from)) * 100));
  const time = to - from > 86_400_000 ? moment : clockTime;
  const summary = shown.map((l) => `${l.name}: from ${time(l.from)}, for ${span(l.to - l.from)}, ${l.outcome}`).join('. ');
  return (
    <div class={`lanes of-${nouns}`} role="img" aria-label={escape(summary)}>
      {lanes.length > most && (
        <p class="dim">
          The newest {most} of {lanes.length} {nouns}.
        </p>
      )}
      {shown.map((l, i) => {
        const silent = l.beat !== null && l.silent ? l.beat : l.to;
        return (
          <div class="lane" key={i}>
            <span class="n" title={l.label}>
              <Short id={l.label} />
            </span>
            <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
              <rect class="track" width="100" height="10" />
              <rect class="wait" x={x(l.from)} y="3" width={Math.max(0.3, x(l.started ?? l.to) - x(l.from))} height="4" />
              {l.started !== null && (
                <rect class={`run o-${l.outcome}`} x={x(l.started)} y="1" width={Math.max(0.4, x(silent) - x(l.started))} height="8" />
              )}
              {silent < l.to && <rect class="silent" x={x(silent)} y="1" width={Math.max(0.3, x(l.to) - x(silent))} height="8" />}
            </svg>
            <span class="what">
              {l.live ? 'for' : l.outcome.toLowerCase() + ' after'} {span(l.to - l.from)}
            </span>
          </div>
        );
      })}
      <div class="lane axis">
        <span class="n" />
        <span class="ends">
          <span>{time(from)}</span>
          <span>{time === moment ? moment(to) : `${clockTime(to)} UTC`}</span>
        </span>
        <span class="what" />
      </div>
      <p class="key">
        {nouns === 'attempts' && (
          <>
            <span class="k wait" />
            waiting to start
          </>
        )}
        <span class="k run" />
        {nouns === 'attempts' ? 'running' : 'alive'}
        <span class="k silent" />
        silent
      </p>
    </div>
  );
}
