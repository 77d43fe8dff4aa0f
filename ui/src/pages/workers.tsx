import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Machine, Worker } from '../api';
import { ActBar, ActButton } from '../acts';
import { list, number } from '../format';
import { Filters, Pager, useList, useSort } from '../lists';
import { Age, held, Id, Liveness, Num, Read, State, Table, Title, type Column } from '../parts';
import { whyUnschedulable } from '../words';

const fields = ['status', 'liveness', 'schedulable', 'queue', 'type', 'machineId', 'name', 'version', 'label'];

const workerActs = ['drainWorker', 'cordonWorker', 'uncordonWorker', 'resumeWorker', 'offlineWorker'] as const;

export const workerColumns: Column<Worker>[] = [
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
  { name: 'Last beat', cell: (w: Worker) => <Age at={w.lastHeartbeatAt} />, sort: { by: 'lastHeartbeatAt', first: 'asc' } },
  { name: 'Up 24 h', num: true, cell: (w: Worker) => `${number(w.uptimePct24h)} %`, sort: { by: 'uptimePct24h', first: 'asc' } },
  {
    name: 'Stale 24 h',
    num: true,
    sort: { by: 'staleCount24h', first: 'desc' },
    cell: (w: Worker) => (
      <>
        {w.staleCount24h}
        {w.flapping && <span class="state s-FAILED"> flaps</span>}
      </>
    ),
  },
  { name: 'Not schedulable', why: true, cell: (w: Worker) => list(whyUnschedulable(w)) || <span class="dim">–</span> },
];

export function Workers(): JSX.Element {
  const sort = useSort(workerColumns.flatMap((c) => c.sort?.by ?? []));
  const l = useList<{ workers: Worker[]; nextPageToken?: string; totalCount: number | null }>('v1/workers', fields, sort.more);
  const [ids, set] = useState(new Set<string>());
  const { queue, version, machineId, label } = l.filter;
  const selector = { queue, version, machineId, label };
  const other = fields.some((f) => !(f in selector) && l.filter[f]);
  const selects = !other && Object.values(selector).some(Boolean); // the API's selector has these fields only
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
      <Read data={l.data} what="the workers">
        {(v) => (
          <>
            <Table
              label="Workers"
              rows={v.workers}
              columns={workerColumns}
              id={(w) => w.workerId}
              chosen={{ ids, set }}
              sort={sort}
              none={l.none(
                'workers',
                'No workers yet: start a program that uses an SDK, with LUBDUB_URL and LUBDUB_TOKEN set, and it appears here.',
              )}
            />
            <Pager of={l} next={v.nextPageToken} shown={v.workers.length} total={v.totalCount} noun="worker" rows={v.workers} />
          </>
        )}
      </Read>
      <ActBar>
        {ids.size > 0 && (
          <div class="acts" role="group" aria-label="Actions on selected workers">
            <span class="dim">Selected ({ids.size})</span>
            {workerActs.map((a) => (
              <ActButton key={a} act={a} on={{ ids: [...ids] }} />
            ))}
          </div>
        )}
        {selects && (
          <div class="acts" role="group" aria-label="Actions on all matching workers">
            <span class="dim">All that match</span>
            {workerActs.map((a) => (
              <ActButton key={a} act={a} on={{ selector }} />
            ))}
          </div>
        )}
      </ActBar>
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
            <Pager of={l} next={v.nextPageToken} shown={v.machines.length} total={v.totalCount} noun="machine" rows={v.machines} />
          </>
        )}
      </Read>
      <ActBar>
        {ids.size > 0 && (
          <div class="acts" role="group" aria-label="Actions on selected machines">
            <span class="dim">Selected ({ids.size})</span>
            {(['drainMachine', 'offlineMachine', 'resumeMachine'] as const).map((a) => (
              <ActButton key={a} act={a} on={{ ids: [...ids] }} />
            ))}
          </div>
        )}
      </ActBar>
    </>
  );
}
