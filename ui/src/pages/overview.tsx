import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { get, type Queue, type Stats, type System, type Verdicts, type Worker } from '../api';
import { Chart } from '../charts';
import { useData, type Data } from '../data';
import { count, list, number, span } from '../format';
import { HealthBanner, HealthyParts, stale, useHealth } from '../health';
import { useHour } from '../hour';
import { Age, Failed, held, Id, Liveness, Num, Read, Section, State, Table, Title, type kinds } from '../parts';
import type { Chosen } from '../plot';
import { RangeChoice, useRange } from '../range';
import { href } from '../route';
import { Signal } from '../signal';
import { FailuresReported } from './failures';
import { because } from '../words';

const sum = (of: Record<string, number>): number => Object.values(of).reduce((a, b) => a + b, 0);

const shown = 8; // rows of each list

export function Overview(): JSX.Element {
  const health = useHealth(),
    lost = health.value?.recentlyLost ?? [],
    failures = health.value?.recentFailures as System['recentFailures'] | undefined; // absent: the server is older
  const stats = useData('stats', (signal) => get<Stats>('v1/stats', { steps: 1 }, signal));
  const losses = useLosses();
  return (
    <>
      <Title name="Overview">Overview</Title>
      <HealthBanner of={health} />
      <Read data={stats} what="the numbers" old={stale(health)}>
        {(v) => (
          <>
            <Numbers stats={v} lost={losses.value?.[0]?.total} />
            {v.workers.late + v.workers.lost > 0 && <Silent of={v.workers.late + v.workers.lost} />}
            {lost.length > 0 && <RecentlyLost workers={lost} />}
            {!!failures?.total && <FailuresReported of={failures} />}
            {(v.tasks.QUEUED ?? 0) > 0 && <Backlog />}
            {(health.value || health.error) && <Charts rates={v.rates} />}
          </>
        )}
      </Read>
      <Losses data={losses} />
      <HealthyParts of={health} />
    </>
  );
}

function Numbers({ stats, lost }: { stats: Stats; lost: number | undefined }): JSX.Element {
  const tiles: [string, string, string, string?][] = [
    [
      'Workers late',
      number(stats.workers.late),
      href('workers', { status: 'ONLINE,DRAINING', liveness: 'LATE' }),
      stats.workers.late ? 'late' : '',
    ],
    [
      'Workers lost',
      number(stats.workers.lost),
      href('workers', { status: 'ONLINE,DRAINING', liveness: 'LOST' }),
      stats.workers.lost ? 'lost' : '',
    ],
    ['Oldest overdue', stats.oldestOverdueMs ? span(stats.oldestOverdueMs) : 'none', href('system')],
    ['Losses, last hour', lost === undefined ? '…' : number(lost), href('losses')],
    ['Tasks running', number(stats.tasks.RUNNING ?? 0), href('tasks', { state: 'RUNNING' })],
    ['Tasks queued', number(stats.tasks.QUEUED ?? 0), href('tasks', { state: 'QUEUED' })],
    ['Workers online', number(stats.workers.online), href('workers', { status: 'ONLINE' })],
    ['Machines online', number(stats.machines.online), href('machines', { status: 'ONLINE' })],
  ];
  return (
    <ul class="tiles">
      {tiles.map(([name, n, to, tone]) => (
        <li key={name}>
          <a href={to} class={tone ? `t-${tone}` : ''}>
            <b>{n}</b>
            <span>{name}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

// Silent lists the workers that have been silent longest and are late or lost.
function Silent({ of }: { of: number }): JSX.Element {
  const data = useData('silent', (signal) =>
    get<{ workers: Worker[] }>('v1/workers', { status: 'ONLINE', sort: 'lastHeartbeat', pageSize: 50 }, signal),
  );
  return (
    <Section title="Silent now" side={<a href={href('pulse')}>All, by machine</a>}>
      <Read data={data} what="the silent workers">
        {({ workers }) => {
          const silent = workers.filter((w) => w.liveness !== 'FRESH').slice(0, shown);
          return (
            <>
              <Table
                label="Silent workers"
                rows={silent}
                id={(w) => w.workerId}
                none="All of them have sent heartbeats again."
                columns={[
                  { name: 'Liveness', cell: (w) => <Liveness of={w.liveness} /> },
                  { name: 'Name', cell: (w) => w.name ?? <span class="dim">–</span> },
                  { name: 'Worker', cell: (w) => <Id kind="worker" id={w.workerId} /> },
                  { name: 'Last beat', cell: (w) => <Age at={w.lastHeartbeatAt} /> },
                  {
                    name: 'Holds',
                    num: true,
                    cell: (w) => <Num n={w.heldCount} to="tasks" query={{ workerId: w.workerId, state: held }} />,
                  },
                  { name: 'Machine', cell: (w) => <Id kind="machine" id={w.machineId} /> },
                  { name: 'Queue', cell: (w) => <Id kind="queue" id={w.queue} /> },
                  { name: 'Version', cell: (w) => w.version ?? <span class="dim">–</span> },
                ]}
              />
              {of > silent.length && silent.length > 0 && <p class="dim">and {number(of - silent.length)} more</p>}
            </>
          );
        }}
      </Read>
    </Section>
  );
}

function RecentlyLost({ workers }: { workers: System['recentlyLost'] }): JSX.Element {
  const rows = workers.slice(0, shown);
  return (
    <Section title="Recently lost" side={<a href={href('workers', { status: 'OFFLINE' })}>All offline workers</a>}>
      <Table
        label="Workers lost in the last hour"
        rows={rows}
        id={(w) => w.workerId}
        none="No worker was lost in the last hour."
        columns={[
          { name: 'Lost', cell: (w) => <Age at={w.lostAt} /> },
          { name: 'Name', cell: (w) => w.name ?? <span class="dim">–</span> },
          {
            name: 'Attempts',
            num: true,
            cell: (w) => <Num n={w.attempts} to="losses" query={{ workerId: w.workerId, reason: 'WORKER_LOST' }} />,
          },
          { name: 'Requeued', num: true, cell: (w) => number(w.requeued) },
          { name: 'Failed', num: true, cell: (w) => number(w.failed + w.exhausted) },
          { name: 'Worker', cell: (w) => <Id kind="worker" id={w.workerId} /> },
          { name: 'Machine', cell: (w) => <Id kind="machine" id={w.machineId} /> },
          { name: 'Queue', cell: (w) => <Id kind="queue" id={w.queue} /> },
          { name: 'Reason', why: true, cell: (w) => w.reason },
          { name: 'Last heartbeat', cell: (w) => <Age at={w.lastHeartbeatAt} /> },
        ]}
      />
      {workers.length > rows.length && <p class="dim">and {number(workers.length - rows.length)} more</p>}
    </Section>
  );
}

// Backlog lists the queues whose oldest task has waited longest.
function Backlog(): JSX.Element {
  const data = useData('backlog', (signal) => get<{ queues: Queue[] }>('v1/queues', {}, signal));
  return (
    <Section title="Waiting longest" side={<a href={href('queues')}>All queues</a>}>
      <Read data={data} what="the queues">
        {({ queues }) => (
          <Table
            label="Queues by the wait of their oldest task"
            rows={queues
              .filter((q) => q.depth > 0)
              .sort((a, b) => (b.oldestWaitMs ?? 0) - (a.oldestWaitMs ?? 0))
              .slice(0, 5)}
            id={(q) => q.queue}
            none="No task waits to be claimed."
            columns={[
              { name: 'Queue', cell: (q) => <Id kind="queue" id={q.queue} /> },
              { name: 'Oldest waits', num: true, cell: (q) => (q.oldestWaitMs === null ? '–' : span(q.oldestWaitMs)) },
              { name: 'Waiting', num: true, cell: (q) => <Num n={q.depth} to="tasks" query={{ queue: q.queue, claimable: 'true' }} /> },
              { name: 'Running', num: true, cell: (q) => <Num n={q.running} to="tasks" query={{ queue: q.queue, state: held }} /> },
              {
                name: 'Workers online',
                num: true,
                cell: (q) => <Num n={q.workers.online} to="workers" query={{ queue: q.queue, status: 'ONLINE' }} />,
              },
              { name: 'Paused', cell: (q) => (q.paused ? <State of="PAUSED" /> : <span class="dim">no</span>) },
            ]}
          />
        )}
      </Read>
    </Section>
  );
}

// Charts reads the hour, the largest of all responses. It is rendered once the health is shown.
function Charts({ rates: r }: { rates: Stats['rates'] }): JSX.Element {
  const range = useRange(),
    hour = useHour(range.seconds);
  const chosen: Chosen = useMemo(() => new Signal<number | null>(null), []);
  const steps = hour.value ?? [],
    per = 10; // seconds of a step
  const shared = { times: steps.map((s) => Date.parse(s.at ?? '') / 1000), range, chosen };
  return (
    <>
      {hour.error && <Failed error={hour.error} what="the last hour" at={hour.at} retry={hour.refresh} />}
      <RangeChoice range={range} />
      <div class={hour.error ? 'charts old' : 'charts'}>
        <Section title="Beats" side={<b>{number(r.beatsPerSecond)} / s</b>}>
          <Chart
            label="Accepted beats a second"
            unit="a second"
            {...shared}
            lines={[{ name: 'beats', colour: '--c-beats', values: steps.map((s) => s.beats / per) }]}
          />
        </Section>
        <Section title="Time of a beat, p99" side={<b>{r.beatP99Ms === null ? 'no beats' : `${number(r.beatP99Ms)} ms`}</b>}>
          <Chart
            label="How long 99 of 100 beats take at most"
            unit="ms"
            {...shared}
            lines={[{ name: 'p99', colour: '--c-p99', values: steps.map((s) => s.beatP99Ms) }]}
          />
        </Section>
        <Section title="Refused beats" side={<b>{number(r.refusedPerSecond)} / s</b>}>
          <Chart
            label="Refused beats a second"
            unit="a second"
            {...shared}
            lines={[{ name: 'refusals', colour: '--c-refused', values: steps.map((s) => sum(s.refused) / per) }]}
          />
        </Section>
      </div>
    </>
  );
}

const groups: [string, string, keyof typeof kinds | null][] = [
  ['machineId', 'Machine', 'machine'],
  ['version', 'Version', null],
  ['queue', 'Queue', 'queue'],
  ['type', 'Type', null],
];

// useLosses counts the attempts that Lubdub ended, by each group and, last, by reason.
function useLosses(): Data<Verdicts[]> {
  return useData(
    'losses',
    (signal) =>
      Promise.all(
        [...groups.map(([by]) => by), 'reason'].map((by) => get<Verdicts>('v1/stats/verdicts', { by, sinceMs: 3_600_000 }, signal)),
      ),
    15_000,
  );
}

function Losses({ data }: { data: Data<Verdicts[]> }): JSX.Element {
  const why = (of: Verdicts | undefined): string =>
    list((of?.groups ?? []).map((g) => `${number(g.count)} because ${because(g.reason ?? '')}`));
  return (
    <Section title="Losses of the last hour">
      <Read data={data} what="the losses">
        {(all) => (
          <>
            <p>
              Lubdub ended {count(all[0]?.total ?? 0, 'attempt')}
              {all[0]?.truncated ? '; the oldest are not included' : ''}
              {all[0]?.total ? `: ${why(all[groups.length])}` : ''}.
            </p>
            {!!all[0]?.total && (
              <div class="grid4">
                {groups.map(([by, name, kind], i) => (
                  <div key={by}>
                    <h3>By {name.toLowerCase()}</h3>
                    <Table
                      label={`Losses by ${name.toLowerCase()}`}
                      rows={(all[i]?.groups ?? []).slice(0, shown)}
                      id={(g) => String(g[by as 'type'] ?? '')}
                      none="None in the last hour."
                      columns={[
                        {
                          name,
                          cell: (g) => {
                            const v = g[by as 'type'];
                            return v ? kind ? <Id kind={kind} id={v} /> : v : <span class="dim">none</span>;
                          },
                        },
                        {
                          name: 'Lost',
                          num: true,
                          cell: (g) => {
                            const v = g[by as 'type'];
                            return v ? <Num n={g.count} to="losses" query={{ [by]: v }} /> : number(g.count);
                          },
                        },
                        { name: 'Last', cell: (g) => <Age at={g.lastAt} /> },
                      ]}
                    />
                    {(all[i]?.groups.length ?? 0) > shown && <p class="dim">and {number((all[i]?.groups.length ?? 0) - shown)} more</p>}
                  </div>
                ))}
              </div>
            )}
          </>
        )}
      </Read>
    </Section>
  );
}
