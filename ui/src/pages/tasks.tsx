import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { get, type HistoryEntry, type Task } from '../api';
import { ActBar, ActButton, Acts } from '../acts';
import { useData } from '../data';
import { number, span } from '../format';
import { OpenForm } from '../forms';
import { Filters, Pager, useList } from '../lists';
import { Age, Bar, Facts, Id, Json, Liveness, Moment, Read, Section, State, Table, Title } from '../parts';
import { useRoute } from '../route';
import { ended, evidence, outlook } from '../words';
import { EventPanel } from './events';
import { Lanes } from './lanes';

const fields = ['state', 'liveness', 'claimable', 'queue', 'type', 'runId', 'workerId', 'machineId', 'scheduleId', 'label', 'reason'];
const states = ['SCHEDULED', 'QUEUED', 'DISPATCHED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED'];
const causes = [
  'HEARTBEAT_TIMEOUT',
  'CANCEL_TIMEOUT',
  'DEADLINE_EXCEEDED',
  'RUN_TIMEOUT',
  'START_TIMEOUT',
  'WORKER_LOST',
  'WORKER_REPORTED',
  'TERMINATED',
];

export const taskColumns = [
  { name: 'State', cell: (t: Task) => <State of={t.state} /> },
  { name: 'Liveness', cell: (t: Task) => <Liveness of={t.liveness} /> },
  { name: 'Task', cell: (t: Task) => <Id kind="task" id={t.taskId} /> },
  { name: 'Queue', cell: (t: Task) => <Id kind="queue" id={t.queue} /> },
  { name: 'Type', cell: (t: Task) => t.type ?? <span class="dim">–</span> },
  { name: 'Attempt', num: true, cell: (t: Task) => t.attempt },
  { name: 'Progress', cell: (t: Task) => <Bar pct={t.progressPct} label="progress" /> },
  { name: 'Worker', cell: (t: Task) => <Id kind="worker" id={t.workerId} /> },
  { name: 'Last beat', cell: (t: Task) => <Age at={t.lastHeartbeatAt} /> },
  { name: 'Created', cell: (t: Task) => <Age at={t.createdAt} /> },
  { name: 'Reason', cell: (t: Task) => t.reason ?? <span class="dim">–</span> },
];

export function Tasks(): JSX.Element {
  const l = useList<{ tasks: Task[]; nextPageToken?: string; totalCount: number | null }>('v1/tasks', fields, { order: 'desc' });
  const [ids, set] = useState(new Set<string>());
  const selector = Object.fromEntries(Object.entries(l.filter).filter(([k]) => k !== 'liveness' && k !== 'claimable'));
  const nothing = Object.values(selector).every((v) => !v);
  const selects = !nothing && !l.filter.liveness && !l.filter.claimable; // the API's selector has neither of these two
  return (
    <>
      <Title name="Tasks" side={<OpenForm to="task-form" op="createTask" label="Create task" />}>
        Tasks
      </Title>
      <Filters
        of={l}
        fields={[
          { name: 'state', choices: states },
          { name: 'liveness', choices: ['FRESH', 'LATE', 'LOST'] },
          { name: 'claimable', choices: ['true', 'false'] },
          { name: 'queue' },
          { name: 'type' },
          { name: 'runId', label: 'run' },
          { name: 'workerId', label: 'worker' },
          { name: 'machineId', label: 'machine' },
          { name: 'scheduleId', label: 'schedule' },
          { name: 'label', hint: 'key=value' },
          { name: 'reason', choices: causes },
        ]}
      />
      <Read data={l.data} what="the tasks">
        {(v) => (
          <>
            <Table
              label="Tasks"
              rows={v.tasks}
              columns={taskColumns}
              id={(t) => t.taskId}
              chosen={{ ids, set }}
              none={l.none(
                'tasks',
                'No tasks yet: choose Create task above, run lubdub task create, or create them in your program with an SDK.',
              )}
            />
            <Pager of={l} next={v.nextPageToken} shown={v.tasks.length} total={v.totalCount} noun="task" rows={v.tasks} />
          </>
        )}
      </Read>
      <ActBar>
        {ids.size > 0 && (
          <div class="acts" role="group" aria-label="Actions on selected tasks">
            <ActButton act="cancelTask" on={{ ids: [...ids] }} label={`Cancel selected (${ids.size})`} />
            <ActButton act="retryTask" on={{ ids: [...ids] }} label={`Retry selected (${ids.size})`} />
          </div>
        )}
        {selects && (
          <div class="acts" role="group" aria-label="Actions on all matching tasks">
            <ActButton act="cancelTask" on={{ selector }} label="Cancel all that match" />
            <ActButton act="retryTask" on={{ selector }} label="Retry all that match" />
          </div>
        )}
      </ActBar>
    </>
  );
}

export function TaskPage({ id }: { id: string }): JSX.Element {
  useRoute();
  const task = useData('task/' + id, (signal) => get<Task>(`v1/tasks/${encodeURIComponent(id)}`, {}, signal), 3000);
  const t = task.value;
  const over = t && ['SUCCEEDED', 'CANCELLED'].includes(t.state);
  return (
    <>
      <Title
        name={id}
        side={
          t && (
            <Acts
              names={over ? [] : t.state === 'FAILED' ? ['retryTask'] : t.attempt === 0 ? ['cancelTask'] : ['cancelTask', 'retryTask']}
              on={{ ids: [id] }}
              note={over ? 'It has ended: there is nothing to cancel or to retry.' : ''}
            />
          )
        }
      >
        Task <span class="id">{id}</span>
      </Title>
      <Read data={task} what="the task">
        {(v) => (
          <>
            <p class="lead">
              <State of={v.state} /> {v.liveness && <Liveness of={v.liveness} />} {outlook(v)}
            </p>
            <Section title="Attempts">
              <Lanes task={v} />
            </Section>
            <Evidence task={v} />
            <div class="grid2">
              <Section title="Progress">
                <Facts
                  of={[
                    ['Progress', <Bar pct={v.progressPct} label="progress" />],
                    ['Message', v.message],
                    ['Last beat', <Age at={v.lastHeartbeatAt} />],
                    ['Time by the worker’s clock', <Moment at={v.reportedHeartbeatAt} />],
                    ['Started', <Moment at={v.startedAt} />],
                    ['Finished', <Moment at={v.finishedAt} />],
                  ]}
                />
              </Section>
              <Section title="Facts">
                <Facts
                  of={[
                    ['Run', <Id kind="run" id={v.runId} />],
                    ['Queue', <Id kind="queue" id={v.queue} />],
                    ['Type', v.type],
                    ['Worker', <Id kind="worker" id={v.workerId} />],
                    ['Schedule', <Id kind="schedule" id={v.scheduleId} />],
                    ['Created', <Moment at={v.createdAt} />],
                    ['Beats every', span(v.heartbeatIntervalMs)],
                    ['Timeout', v.heartbeatTimeoutMs === null ? 'lives by its worker’s beat' : span(v.heartbeatTimeoutMs)],
                    ['Deadline', <Moment at={v.deadline} />],
                    ['Failures', v.retry ? `${v.failures} of ${v.retry.maxAttempts} attempts` : v.failures],
                    ['Losses', v.retry ? `${v.losses}, ${v.retry.maxLosses} are retried` : v.losses],
                    [
                      'Labels',
                      Object.entries(v.labels)
                        .map(([k, l]) => `${k}=${l}`)
                        .join(', ') || null,
                    ],
                  ]}
                />
              </Section>
            </div>
            {v.error && (
              <Section title="Error">
                <Json of={v.error} label="Error" />
              </Section>
            )}
            {v.output !== null && v.output !== undefined && (
              <Section title="Output">
                <Json of={v.output} label="Output" />
              </Section>
            )}
            {v.details !== null && v.details !== undefined && (
              <Section title="Checkpoint">
                <Json of={v.details} label="Checkpoint" />
              </Section>
            )}
            {v.payload !== null && v.payload !== undefined && (
              <Section title="Payload">
                <Json of={v.payload} label="Payload" />
              </Section>
            )}
          </>
        )}
      </Read>
      <EventPanel of={{ subject: id }} label="Events of this task" />
    </>
  );
}

function Evidence({ task }: { task: Task }): JSX.Element | null {
  const past = [...task.history].reverse();
  if (!past.length) return null;
  return (
    <Section title="Ended attempts">
      <ol class="evidence">
        {past.map((h: HistoryEntry) => (
          <li key={h.attempt}>
            <p>
              <b>{ended(h)}</b>
            </p>
            {h.evidence && (
              <ul>
                {evidence(h.evidence).map((s) => (
                  <li key={s}>{s}</li>
                ))}
              </ul>
            )}
            {h.lastProgress && (
              <p class="dim">
                Last progress: {h.lastProgress.progressPct === null ? '' : `${number(h.lastProgress.progressPct)} % `}
                {h.lastProgress.message}
              </p>
            )}
          </li>
        ))}
      </ol>
    </Section>
  );
}
