import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { get, serverNow, type Task } from '../api';
import { Chart } from '../charts';
import { useData } from '../data';
import { number, span } from '../format';
import { Read, Section, Table } from '../parts';
import { Signal } from '../signal';

const sample = 100; // tasks, the newest

// Flow is what the newest tasks of a queue tell about one type of task.
interface Flow {
  type: string;
  created: number;
  finished: number;
  waits: number[]; // ms that first attempts waited for a worker, ascending
}

// waited returns how long a task's first attempt waited to be claimed. Of later attempts only the last claim is known.
function waited(t: Task): number | null {
  if (t.attempt !== 1 || !t.dispatchedAt) return null;
  return Math.max(0, Date.parse(t.dispatchedAt) - Date.parse(t.runAt ?? t.createdAt));
}

function flows(tasks: Task[]): Flow[] {
  const found = new Map<string, Flow>();
  for (const t of tasks) {
    const type = t.type ?? '';
    const f = found.get(type) ?? { type, created: 0, finished: 0, waits: [] };
    found.set(type, f);
    f.created++;
    if (t.finishedAt) f.finished++;
    const ms = waited(t);
    if (ms !== null) f.waits.push(ms);
  }
  for (const f of found.values()) f.waits.sort((a, b) => a - b);
  return [...found.values()].sort((a, b) => b.created - a.created);
}

// quantile is that of the nearest rank.
const quantile = (of: number[], q: number): string => (of.length ? span(of[Math.ceil(q * of.length) - 1]!) : '–');

const claimed = 'DISPATCHED,RUNNING,SUCCEEDED,FAILED,CANCELLED'; // the states of tasks that may have been claimed
const longest = 86_400; // s; times have no date

// Waits draws how long the newest claimed tasks had waited, and how long the oldest waiting task has waited until now. Tasks are claimed
// oldest first, so this is the age of the backlog.
export function Waits({ queue, oldest }: { queue: string; oldest: number | null }): JSX.Element | null {
  const { value } = useData(
    'queue-waits/' + queue,
    (signal) => get<{ tasks: Task[] }>('v1/tasks', { queue, state: claimed, order: 'desc', pageSize: sample }, signal),
    10_000,
  );
  const chosen = useMemo(() => new Signal<number | null>(null), []);
  const now = serverNow() / 1000;
  const byTime = new Map<number, number>(); // the longest wait of the tasks that were claimed at the same time
  for (const t of value?.tasks ?? []) {
    const ms = waited(t),
      at = Date.parse(t.dispatchedAt ?? '') / 1000;
    if (ms !== null && at > now - longest) byTime.set(at, Math.max(ms, byTime.get(at) ?? 0));
  }
  if (oldest !== null) byTime.set(now, oldest);
  const times = [...byTime.keys()].sort((a, b) => a - b);
  const seconds = 60 * Math.ceil((now - (times[0] ?? now)) / 60) || 60;
  const range = useMemo(() => ({ words: span(seconds * 1000), seconds }), [seconds]);
  if (times.length < 2) return null;
  return (
    <Section title="Wait of its tasks">
      <Chart
        label="How long tasks had waited when they were claimed"
        unit={span}
        {...{ times, range, chosen }}
        lines={[{ name: 'wait', colour: '--c-p99', values: times.map((t) => byTime.get(t) ?? null) }]}
      />
    </Section>
  );
}

// The API has no rates of a queue: the newest tasks show them, within the time in which these were created.
export function QueueFlow({ queue }: { queue: string }): JSX.Element {
  const data = useData(
    'queue-flow/' + queue,
    (signal) => get<{ tasks: Task[] }>('v1/tasks', { queue, order: 'desc', pageSize: sample }, signal),
    10_000,
  );
  return (
    <Section title="Newest tasks by type">
      <Read data={data} what="its newest tasks">
        {({ tasks }) => {
          const oldest = tasks[tasks.length - 1];
          const minutes = oldest ? Math.max(1, (serverNow() - Date.parse(oldest.createdAt)) / 60_000) : 1;
          return (
            <>
              {oldest && (
                <p class="dim">
                  Of the newest {number(tasks.length)} tasks, created within {span(minutes * 60_000)}. Waits are those of first attempts.
                </p>
              )}
              <Table
                label="Newest tasks by type"
                rows={flows(tasks)}
                id={(f) => f.type}
                none="This queue has no tasks."
                columns={[
                  { name: 'Type', cell: (f) => f.type || <span class="dim">none</span> },
                  { name: 'In / min', num: true, cell: (f) => number(f.created / minutes) },
                  { name: 'Finished / min', num: true, cell: (f) => number(f.finished / minutes) },
                  { name: 'Started', num: true, cell: (f) => number(f.waits.length) },
                  { name: 'Wait, p50', num: true, cell: (f) => quantile(f.waits, 0.5) },
                  { name: 'Wait, p99', num: true, cell: (f) => quantile(f.waits, 0.99) },
                ]}
              />
            </>
          );
        }}
      </Read>
    </Section>
  );
}
