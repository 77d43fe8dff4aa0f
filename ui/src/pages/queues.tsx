import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { get, type EventList, type Queue, type Run, type Task } from '../api';
import { ActBar, ActButton, Acts } from '../acts';
import { useData } from '../data';
import { number, span } from '../format';
import { Age, Facts, held, Id, More, Num, Read, Section, State, Table, Title } from '../parts';
import { go, href } from '../route';
import { QueueFlow, Waits } from './flow';
import { taskColumns } from './tasks';

const enc = encodeURIComponent;
const unrunnable = (q: Queue): number => q.types.reduce((n, t) => n + t.unrunnable, 0);

const Of = ({ q, status }: { q: Queue; status: 'online' | 'draining' | 'offline' }): JSX.Element => (
  <Num n={q.workers[status]} to="workers" query={{ queue: q.queue, status: status.toUpperCase() }} />
);

const Waiting = ({ q }: { q: Queue }): JSX.Element => <Num n={q.depth} to="tasks" query={{ queue: q.queue, claimable: 'true' }} />;

export function Queues(): JSX.Element {
  const data = useData('queues', (signal) => get<{ queues: Queue[] }>('v1/queues', {}, signal));
  const [ids, set] = useState(new Set<string>());
  return (
    <>
      <Title name="Queues">Queues</Title>
      <Read data={data} what="the queues">
        {(v) => (
          <Table
            label="Queues"
            rows={v.queues}
            id={(q) => q.queue}
            chosen={{ ids, set }}
            none="There are no queues here."
            columns={[
              { name: 'Queue', cell: (q) => <Id kind="queue" id={q.queue} /> },
              { name: 'Paused', cell: (q) => (q.paused ? <State of="PAUSED" /> : <span class="dim">no</span>) },
              { name: 'Waiting', num: true, cell: (q) => <Waiting q={q} /> },
              {
                name: 'Oldest waits',
                num: true,
                cell: (q) => (q.oldestWaitMs === null ? <span class="dim">–</span> : span(q.oldestWaitMs)),
              },
              { name: 'Running', num: true, cell: (q) => <Num n={q.running} to="tasks" query={{ queue: q.queue, state: held }} /> },
              { name: 'Workers online', num: true, cell: (q) => <Of q={q} status="online" /> },
              { name: 'Draining', num: true, cell: (q) => <Of q={q} status="draining" /> },
              {
                name: 'No eligible worker',
                num: true,
                cell: (q) => (unrunnable(q) ? <b class="bad">{number(unrunnable(q))}</b> : <span class="dim">–</span>),
              },
            ]}
          />
        )}
      </Read>
      <ActBar>
        {ids.size > 0 && (
          <div class="acts" role="group" aria-label="Actions on selected queues">
            <span class="dim">Selected ({ids.size})</span>
            {(['pauseQueue', 'resumeQueue'] as const).map((a) => (
              <ActButton key={a} act={a} on={{ ids: [...ids] }} />
            ))}
          </div>
        )}
      </ActBar>
    </>
  );
}

// Paused shows who paused a queue, when and why, as far as the event of it is still stored.
function Paused({ queue }: { queue: string }): JSX.Element {
  const { value } = useData('paused/' + queue, (signal) =>
    get<EventList>('v1/events', { queue, type: 'queue.paused', order: 'desc', pageSize: 1 }, signal),
  );
  const e = value?.events[0],
    reason = (e?.data as { reason?: string } | undefined)?.reason;
  return (
    <>
      <State of="PAUSED" />{' '}
      {e && (
        <>
          <Age at={e.time} />
          {e.by && ` by ${e.by}`}
          {reason && ` (${reason})`}.
        </>
      )}{' '}
      Nothing is dispatched.{' '}
    </>
  );
}

export function QueuePage({ id }: { id: string }): JSX.Element {
  const queue = useData('queue/' + id, (signal) => get<Queue>(`v1/queues/${enc(id)}`, {}, signal), 3000);
  const tasks = useData('queue-tasks/' + id, (signal) =>
    get<{ tasks: Task[]; nextPageToken?: string }>(
      'v1/tasks',
      { queue: id, state: 'SCHEDULED,QUEUED', order: 'desc', pageSize: 25 },
      signal,
    ),
  );
  const q = queue.value;
  return (
    <>
      <Title name={id} side={q && <Acts names={[q.paused ? 'resumeQueue' : 'pauseQueue']} on={{ ids: [id] }} />}>
        Queue <span class="id">{id}</span>
      </Title>
      <Read data={queue} what="the queue">
        {(v) => (
          <>
            <p class="lead">
              {v.paused && <Paused queue={id} />}
              <Waiting q={v} /> {v.depth === 1 ? 'task' : 'tasks'} could be claimed now
              {v.oldestWaitMs !== null && v.depth > 0 && `, the oldest for ${span(v.oldestWaitMs)}`}.{' '}
              <Num n={v.running} to="tasks" query={{ queue: id, state: held }} /> are dispatched or running.
              {unrunnable(v) > 0 && <b class="bad"> No worker that is online can run {number(unrunnable(v))} of them.</b>}
            </p>
            <div class="grid2">
              <Section title="Waiting by type">
                <Table
                  label="Types"
                  rows={v.types}
                  id={(t) => t.type ?? ''}
                  none="No waiting tasks."
                  columns={[
                    { name: 'Type', cell: (t) => t.type ?? <span class="dim">none</span> },
                    {
                      name: 'Waiting',
                      num: true,
                      cell: (t) =>
                        t.type === null ? (
                          number(t.depth)
                        ) : (
                          <Num n={t.depth} to="tasks" query={{ queue: id, type: t.type, claimable: 'true' }} />
                        ),
                    },
                    { name: 'Oldest waits', num: true, cell: (t) => span(t.oldestWaitMs) },
                    { name: 'No eligible worker', num: true, cell: (t) => number(t.unrunnable) },
                  ]}
                />
              </Section>
              <Section title="Workers" side={<a href={href('workers', { queue: id })}>All workers</a>}>
                <Facts
                  of={[
                    ['Online', <Of q={v} status="online" />],
                    ['Draining', <Of q={v} status="draining" />],
                    ['Offline', <Of q={v} status="offline" />],
                  ]}
                />
              </Section>
            </div>
          </>
        )}
      </Read>
      <Waits queue={id} oldest={q && q.depth > 0 ? q.oldestWaitMs : null} />
      <QueueFlow queue={id} />
      <Section title="Waiting tasks" side={<a href={href('tasks', { queue: id })}>All of its tasks</a>}>
        <Read data={tasks} what="its tasks">
          {(v) => (
            <>
              <Table label="Waiting tasks" rows={v.tasks} columns={taskColumns} id={(t) => t.taskId} none="No waiting tasks." />
              <More cut={!!v.nextPageToken} to={href('tasks', { queue: id, state: 'SCHEDULED,QUEUED' })} />
            </>
          )}
        </Read>
      </Section>
    </>
  );
}

// The API has no list of runs: the page shows the runs of the newest tasks and opens any other by its id.
export function Runs(): JSX.Element {
  const data = useData(
    'runs',
    async (signal) => {
      const { tasks } = await get<{ tasks: Task[] }>('v1/tasks', { order: 'desc', pageSize: 100 }, signal);
      const runs = new Map<string, Task[]>();
      for (const t of tasks) runs.set(t.runId, [...(runs.get(t.runId) ?? []), t]);
      return [...runs].map(([runId, of]) => ({ runId, of })).slice(0, 50);
    },
    10_000,
  );
  return (
    <>
      <Title name="Runs">Runs</Title>
      <form
        class="filters"
        role="search"
        aria-label="Open a run"
        onSubmit={(e) => {
          e.preventDefault();
          const id = (new FormData(e.currentTarget).get('run') as string).trim();
          if (id) go(href('runs/' + id));
        }}
      >
        <label>
          run id
          <input name="run" autoComplete="off" spellcheck={false} />
        </label>
        <button type="submit">Open</button>
      </form>
      <p class="dim">Runs of the 100 newest tasks.</p>
      <Read data={data} what="the newest tasks">
        {(v) => (
          <Table
            label="Runs"
            rows={v}
            id={(r) => r.runId}
            none="There are no tasks here."
            columns={[
              { name: 'Run', cell: (r) => <Id kind="run" id={r.runId} /> },
              { name: 'Of the newest tasks', num: true, cell: (r) => number(r.of.length) },
              { name: 'In states', cell: (r) => [...new Set(r.of.map((t) => t.state))].map((s) => <State key={s} of={s} />) },
              {
                name: 'Queues',
                cell: (r) => [...new Set(r.of.map((t) => t.queue).filter(Boolean))].join(', ') || <span class="dim">–</span>,
              },
            ]}
          />
        )}
      </Read>
    </>
  );
}

export function RunPage({ id }: { id: string }): JSX.Element {
  const run = useData('run/' + id, (signal) => get<Run>(`v1/runs/${enc(id)}`, {}, signal));
  const tasks = useData('run-tasks/' + id, (signal) =>
    get<{ tasks: Task[]; nextPageToken?: string }>('v1/tasks', { runId: id, order: 'desc', pageSize: 50 }, signal),
  );
  return (
    <>
      <Title name={id} id={id} side={run.value && <Acts names={['cancelRun']} on={{ ids: [id] }} />}>
        Run
      </Title>
      <Read data={run} what="the run">
        {(v) => (
          <ul class="tiles">
            {Object.entries(v.counts).map(([state, n]) => (
              <li key={state}>
                <a href={href('tasks', { runId: id, state })}>
                  <b>{number(n)}</b>
                  <span>
                    <State of={state} />
                  </span>
                </a>
              </li>
            ))}
          </ul>
        )}
      </Read>
      <Section title="Tasks" side={<a href={href('tasks', { runId: id })}>All tasks</a>}>
        <Read data={tasks} what="its tasks">
          {(v) => (
            <>
              <Table label="Tasks of this run" rows={v.tasks} columns={taskColumns} id={(t) => t.taskId} none="It has no stored tasks." />
              <More cut={!!v.nextPageToken} to={href('tasks', { runId: id })} />
            </>
          )}
        </Read>
      </Section>
    </>
  );
}
