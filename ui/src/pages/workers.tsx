import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { get, type Machine, type Task, type Worker } from '../api';
import { ActBar, ActButton, Acts } from '../acts';
import { useData } from '../data';
import { count, list, number, span } from '../format';
import { Filters, Pager, useList, useSort } from '../lists';
import { Age, Facts, held, Id, Liveness, Moment, More, Num, Read, Section, State, Table, Title, type Column } from '../parts';
import { href } from '../route';
import { whyUnschedulable } from '../words';
import { EventPanel } from './events';
import { taskColumns } from './tasks';

const fields = ['status', 'liveness', 'schedulable', 'queue', 'type', 'machineId', 'name', 'version', 'label'];
const enc = encodeURIComponent;

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
  { name: 'Not schedulable', cell: (w: Worker) => list(whyUnschedulable(w)) || <span class="dim">–</span> },
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

export function WorkerPage({ id }: { id: string }): JSX.Element {
  const worker = useData('worker/' + id, (signal) => get<Worker>(`v1/workers/${enc(id)}`, {}, signal), 3000);
  const tasks = useData('held/' + id, (signal) =>
    get<{ tasks: Task[]; nextPageToken?: string }>('v1/tasks', { workerId: id, state: held, order: 'desc', pageSize: 50 }, signal),
  );
  const w = worker.value;
  return (
    <>
      <Title
        name={id}
        side={
          w && (
            <Acts
              on={{ ids: [id] }}
              note={
                w.status !== 'OFFLINE'
                  ? ''
                  : w.hold
                    ? 'Held offline: it cannot register until it is resumed.'
                    : 'Offline. If the process is alive it re-registers automatically.'
              }
              names={
                w.hold
                  ? ['resumeWorker']
                  : w.status === 'OFFLINE'
                    ? ['offlineWorker']
                    : [
                        w.status === 'DRAINING' ? 'resumeWorker' : 'drainWorker',
                        w.cordon ? 'uncordonWorker' : 'cordonWorker',
                        'offlineWorker',
                      ]
              }
            />
          )
        }
      >
        Worker <span class="id">{id}</span>
      </Title>
      <Read data={worker} what="the worker">
        {(v) => (
          <>
            <p class="lead">
              <State of={v.status} /> {v.status !== 'OFFLINE' && <Liveness of={v.liveness} />}{' '}
              {v.status === 'OFFLINE'
                ? `Offline${v.endReason ? ` (${v.endReason})` : ''}${v.statusReason && v.statusReason !== v.endReason ? `: ${v.statusReason}` : ''}.`
                : v.schedulable
                  ? 'Schedulable.'
                  : `Not schedulable: ${list(whyUnschedulable(v))}.`}
              {v.flapping && ' Flapping: it repeatedly goes silent and comes back.'}
            </p>
            <div class="grid2">
              <Section title="Work">
                <Facts
                  of={[
                    [
                      'Holds',
                      <>
                        <Num n={v.heldCount} to="tasks" query={{ workerId: id, state: held }} /> of at most {number(v.maxConcurrent)}
                      </>,
                    ],
                    ['Self-reported active', number(v.activeCount)],
                    ['Queued for it', number(v.placedCount)],
                    [
                      'Tasks that ended here',
                      <>
                        <a href={href('tasks', { workerId: id, state: 'SUCCEEDED' })}>succeeded</a>,{' '}
                        <a href={href('tasks', { workerId: id, state: 'FAILED' })}>failed</a>
                      </>,
                    ],
                    ['Self-reported completed', number(v.totalCompleted)],
                    ['Self-reported failed', number(v.totalFailed)],
                    ['Queue', <Id kind="queue" id={v.queue} />],
                    ['Types', v.types.join(', ') || 'any type'],
                    ['Runtimes', v.runtimes.join(', ') || null],
                  ]}
                />
              </Section>
              <Section title="Life">
                <Facts
                  of={[
                    ['Last beat', <Age at={v.lastHeartbeatAt} />],
                    ['Beats every', span(v.heartbeatIntervalMs)],
                    ['Timeout', span(v.heartbeatTimeoutMs)],
                    ['Up, last 24 h', `${number(v.uptimePct24h)} %`],
                    ['Went stale, last 24 h', count(v.staleCount24h, 'time')],
                    ['Registered', <Moment at={v.registeredAt} />],
                    ['Drain deadline', <Moment at={v.drainDeadline} />],
                    ['Machine', <Id kind="machine" id={v.machineId} />],
                    ['Name', v.name],
                    ['Process', v.hostname && v.pid ? `${v.hostname}, pid ${v.pid}` : null],
                    ['Version', v.version],
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
          </>
        )}
      </Read>
      <Section title="Held now">
        <Read data={tasks} what="what it holds">
          {(v) => (
            <>
              <Table label="Tasks that it holds" rows={v.tasks} columns={taskColumns} id={(t) => t.taskId} none="It holds nothing." />
              <More cut={!!v.nextPageToken} to={href('tasks', { workerId: id, state: held })} />
            </>
          )}
        </Read>
      </Section>
      <EventPanel of={{ subject: id }} label="Events of this worker" />
    </>
  );
}

const Of = ({ m, status }: { m: Machine; status: 'online' | 'draining' | 'offline' }): JSX.Element => (
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

export function MachinePage({ id }: { id: string }): JSX.Element {
  const machine = useData('machine/' + id, (signal) => get<Machine>(`v1/machines/${enc(id)}`, {}, signal));
  const workers = useData('machine-workers/' + id, (signal) =>
    get<{ workers: Worker[]; nextPageToken?: string }>('v1/workers', { machineId: id, pageSize: 50 }, signal),
  );
  const m = machine.value;
  return (
    <>
      <Title
        name={id}
        side={
          m && (
            <Acts
              names={
                m.hold
                  ? ['resumeMachine']
                  : m.drain
                    ? ['resumeMachine', 'offlineMachine']
                    : ['drainMachine', 'offlineMachine', 'resumeMachine']
              }
              on={{ ids: [id] }}
            />
          )
        }
      >
        Machine <span class="id">{id}</span>
      </Title>
      <Read data={machine} what="the machine">
        {(v) => (
          <>
            <p class="lead">
              <State of={v.status} /> <Of m={v} status="online" /> {v.workers.online === 1 ? 'worker' : 'workers'} online,{' '}
              <Of m={v} status="draining" /> draining, <Of m={v} status="offline" /> offline.
              {v.drain && (
                <>
                  {' '}
                  Draining since <Age at={v.drain.since} />
                  {v.drain.reason ? ` (${v.drain.reason})` : ''} and takes no new workers.
                </>
              )}
              {v.hold && (
                <>
                  {' '}
                  Held offline since <Age at={v.hold.since} />
                  {v.hold.reason ? ` (${v.hold.reason})` : ''}: no worker can register until it is resumed.
                </>
              )}
              {v.flapping && ' Flapping.'}
            </p>
            <Section title="Life">
              <Facts
                of={[
                  ['Last beat', <Age at={v.lastHeartbeatAt} />],
                  ['Up, last 24 h', `${number(v.uptimePct24h)} %`],
                  ['Went stale, last 24 h', count(v.staleCount24h, 'time')],
                  ['Drain deadline', <Moment at={v.drain?.deadline} />],
                ]}
              />
            </Section>
          </>
        )}
      </Read>
      <Section title="Workers">
        <Read data={workers} what="its workers">
          {(v) => (
            <>
              <Table
                label="Workers of this machine"
                rows={v.workers}
                columns={workerColumns}
                id={(w) => w.workerId}
                none="No worker of this machine is stored."
              />
              <More cut={!!v.nextPageToken} to={href('workers', { machineId: id })} />
            </>
          )}
        </Read>
      </Section>
      <EventPanel of={{ machineId: id }} label="Events of this machine" />
    </>
  );
}
