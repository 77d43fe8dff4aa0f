import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Task } from '../api';
import { ActBar, ActButton } from '../acts';
import { OpenForm } from '../forms';
import { Filters, Pager, useList } from '../lists';
import { Age, Bar, Id, Liveness, Read, State, Table, Title } from '../parts';
import { errorText } from '../words';

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
  {
    name: 'Reason',
    why: true,
    cell: (t: Task) => (
      <>
        {t.reason} <span class="dim">{t.reason ? errorText(t.error) : '–'}</span>
      </>
    ),
  },
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
