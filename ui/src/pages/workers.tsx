import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Machine, Worker } from '../api';
import { ActButton } from '../acts';
import { list, number } from '../format';
import { Filters, Pager, useList } from '../lists';
import { Age, held, Id, Liveness, Num, Read, State, Table, Title } from '../parts';
import { whyUnschedulable } from '../words';

const fields = ['status', 'liveness', 'schedulable', 'queue', 'type', 'machineId', 'name', 'version', 'label'];

export const workerColumns = [
  { name: 'Liveness', cell: (w: Worker) => (w.status === 'OFFLINE' ? <span class="dim">–</span> : <Liveness of={w.liveness} />) },
  { name: 'Name', cell: (w: Worker) => w.name ?? <span class="dim">–</span> },
  { name: 'Worker', cell: (w: Worker) => <Id kind="worker" id={w.workerId} /> },
  { name: 'Status', cell: (w: Worker) => <State of={w.status} /> },
  {
    name: 'Holds',
    num: true,
    cell: (w: Worker) => (
      <>
        <Num n={w.heldCount} to="tasks" query={{ workerId: w.workerId, state: held }} /> / {w.maxConcurrent}
      </>
    ),
  },
  { name: 'Machine', cell: (w: Worker) => <Id kind="machine" id={w.machineId} /> },
  { name: 'Queue', cell: (w: Worker) => <Id kind="queue" id={w.queue} /> },
  { name: 'Version', cell: (w: Worker) => w.version ?? <span class="dim">–</span> },
  { name: 'Last beat', cell: (w: Worker) => <Age at={w.lastHeartbeatAt} /> },
  { name: 'Up 24 h', num: true, cell: (w: Worker) => `${number(w.uptimePct24h)} %` },
  {
    name: 'Stale 24 h',
    num: true,
    cell: (w: Worker) => (
      <>
        {w.staleCount24h}
        {w.flapping && <span class="state s-FAILED"> flaps</span>}
      </>
    ),
  },
  { name: 'Not schedulable', cell: (w: Worker) => list(whyUnschedulable(w)) || <span class="dim">–</span> },
];

export function Workers(): JSX.Element {
  const l = useList<{ workers: Worker[]; nextPageToken?: string; totalCount: number | null }>('v1/workers', fields);
  const [ids, set] = useState(new Set<string>());
  const { queue, version, machineId, label } = l.filter;
  const selector = { queue, version, machineId, label };
  const other = fields.find((f) => !(f in selector) && l.filter[f]);
  const why = other
    ? `An action on all workers can filter by queue, version, machine and label only; remove the filter ${other}, or select workers.`
    : Object.values(selector).every((v) => !v)
      ? 'Filter by queue, version, machine or label first.'
      : '';
  const none = ids.size ? '' : 'Select workers first.';
  return (
    <>
      <Title name="Workers">Workers</Title>
      <Filters
        of={l}
        fields={[
          { name: 'status', choices: ['ONLINE', 'DRAINING', 'ONLINE,DRAINING', 'OFFLINE'] },
          { name: 'liveness', choices: ['FRESH', 'LATE', 'LOST'] },
          { name: 'schedulable', choices: ['true', 'false'] },
          { name: 'queue' },
          { name: 'type' },
          { name: 'machineId', label: 'machine' },
          { name: 'name' },
          { name: 'version' },
          { name: 'label', hint: 'key=value' },
        ]}
      />
      <div class="acts bar" role="group" aria-label="Actions on selected workers">
        <span class="dim">Selected ({ids.size})</span>
        {(['drainWorker', 'cordonWorker', 'uncordonWorker', 'resumeWorker', 'offlineWorker'] as const).map((a) => (
          <ActButton key={a} act={a} on={{ ids: [...ids] }} why={none} />
        ))}
      </div>
      <div class="acts bar" role="group" aria-label="Actions on all matching workers">
        <span class="dim">All that match</span>
        {(['drainWorker', 'cordonWorker', 'uncordonWorker', 'resumeWorker', 'offlineWorker'] as const).map((a) => (
          <ActButton key={a} act={a} on={{ selector }} why={why} />
        ))}
      </div>
      <Read data={l.data} what="the workers">
        {(v) => (
          <>
            <Table
              label="Workers"
              rows={v.workers}
              columns={workerColumns}
              id={(w) => w.workerId}
              chosen={{ ids, set }}
              none={l.none('workers')}
            />
            <Pager of={l} next={v.nextPageToken} shown={v.workers.length} total={v.totalCount} noun="worker" />
          </>
        )}
      </Read>
    </>
  );
}

export const Of = ({ m, status }: { m: Machine; status: 'online' | 'draining' | 'offline' }): JSX.Element => (
  <Num n={m.workers[status]} to="workers" query={{ machineId: m.machineId, status: status.toUpperCase() }} />
);

const machineColumns = [
  { name: 'Machine', cell: (m: Machine) => <Id kind="machine" id={m.machineId} /> },
  { name: 'Status', cell: (m: Machine) => <State of={m.status} /> },
  { name: 'Online', num: true, cell: (m: Machine) => <Of m={m} status="online" /> },
  { name: 'Draining', num: true, cell: (m: Machine) => <Of m={m} status="draining" /> },
  { name: 'Offline', num: true, cell: (m: Machine) => <Of m={m} status="offline" /> },
  { name: 'Last beat', cell: (m: Machine) => <Age at={m.lastHeartbeatAt} /> },
  { name: 'Up 24 h', num: true, cell: (m: Machine) => `${number(m.uptimePct24h)} %` },
  {
    name: 'Stale 24 h',
    num: true,
    cell: (m: Machine) => (
      <>
        {m.staleCount24h}
        {m.flapping && <span class="state s-FAILED"> flaps</span>}
      </>
    ),
  },
  {
    name: 'Drain',
    cell: (m: Machine) =>
      m.drain ? (
        <>
          since <Age at={m.drain.since} />
          {m.drain.reason && ` (${m.drain.reason})`}
        </>
      ) : (
        <span class="dim">–</span>
      ),
  },
];

export function Machines(): JSX.Element {
  const l = useList<{ machines: Machine[]; nextPageToken?: string; totalCount: number }>('v1/machines', ['status']);
  const [ids, set] = useState(new Set<string>());
  return (
    <>
      <Title name="Machines">Machines</Title>
      <Filters of={l} fields={[{ name: 'status', choices: ['ONLINE', 'DRAINING', 'OFFLINE'] }]} />
      <div class="acts bar" role="group" aria-label="Acts">
        <span class="dim">Selected ({ids.size})</span>
        {(['drainMachine', 'offlineMachine', 'resumeMachine'] as const).map((a) => (
          <ActButton key={a} act={a} on={{ ids: [...ids] }} why={ids.size ? '' : 'Select machines first.'} />
        ))}
      </div>
      <Read data={l.data} what="the machines">
        {(v) => (
          <>
            <Table
              label="Machines"
              rows={v.machines}
              columns={machineColumns}
              id={(m) => m.machineId}
              chosen={{ ids, set }}
              none={l.none('machines')}
            />
            <Pager of={l} next={v.nextPageToken} shown={v.machines.length} total={v.totalCount} noun="machine" />
          </>
        )}
      </Read>
    </>
  );
}
