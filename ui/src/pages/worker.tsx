import type { JSX } from 'preact';
import { get, type Machine, type Task, type Worker } from '../api';
import { Acts } from '../acts';
import { useData } from '../data';
import { count, list, number, span } from '../format';
import { Age, Facts, held, Id, Liveness, Moment, More, Num, Read, Section, State, Table, Title } from '../parts';
import { href } from '../route';
import { whyUnschedulable } from '../words';
import { EventPanel } from './events';
import { taskColumns } from './tasks';
import { Of, workerColumns } from './workers';

const enc = encodeURIComponent;

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
