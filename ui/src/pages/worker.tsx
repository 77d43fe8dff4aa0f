import type { JSX } from 'preact';
import { get, type Machine, type Task, type Worker } from '../api';
import { Acts } from '../acts';
import { useData } from '../data';
import { list, number } from '../format';
import { Age, held, Id, Liveness, Moment, More, Num, Read, Section, State, Table, Title } from '../parts';
import { Logs } from '../logs';
import { href } from '../route';
import { machineEvidence, whyUnschedulable, workerEvidence } from '../words';
import { EventPanel } from './events';
import { Known, labels } from './known';
import { Lives } from './lanes';
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
        id={id}
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
        Worker
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
            <Section
              title="Timeline"
              side={<Logs ids={{ workerId: id, machineId: v.machineId }} from={v.registeredAt} to={v.deregisteredAt} />}
            >
              <Lives workers={[v]} />
            </Section>
            <Sentences of={workerEvidence(v)} />
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
      {w && (
        <Section title="Facts">
          <Known
            of={[
              [
                'Holds',
                <>
                  <Num n={w.heldCount} to="tasks" query={{ workerId: id, state: held }} /> of at most {number(w.maxConcurrent)}
                </>,
              ],
              ['Queued for it', number(w.placedCount)],
              ['Self-reported active', number(w.activeCount)],
              ['Self-reported completed', number(w.totalCompleted)],
              ['Self-reported failed', number(w.totalFailed)],
              [
                'Tasks that ended here',
                <>
                  <a href={href('tasks', { workerId: id, state: 'SUCCEEDED' })}>succeeded</a>,{' '}
                  <a href={href('tasks', { workerId: id, state: 'FAILED' })}>failed</a>
                </>,
              ],
              ['Queue', <Id kind="queue" id={w.queue} />],
              ['Types', w.types.join(', ') || 'any type'],
              ['Runtimes', w.runtimes.join(', ')],
              ['Machine', <Id kind="machine" id={w.machineId} />],
              ['Name', w.name],
              ['Process', w.hostname && w.pid && `${w.hostname}, pid ${w.pid}`],
              ['Version', w.version],
              ['Registered', <Moment at={w.registeredAt} />],
              ['Labels', labels(w.labels)],
            ]}
          />
        </Section>
      )}
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
        id={id}
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
        Machine
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
            {workers.value && (
              <Section title="Timeline" side={<Logs ids={{ machineId: id }} to={v.status === 'OFFLINE' ? v.lastHeartbeatAt : null} />}>
                <Lives workers={workers.value.workers} />
              </Section>
            )}
            <Sentences of={machineEvidence(v)} />
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

const Sentences = ({ of }: { of: string[] }): JSX.Element => (
  <Section title="Evidence">
    <ul class="evidence sentences">
      {of.map((s) => (
        <li key={s}>{s}</li>
      ))}
    </ul>
  </Section>
);
