import type { JSX } from 'preact';
import { get, type Stats, type System, type Verdicts } from '../api';
import { Chart } from '../charts';
import { useData } from '../data';
import { count, number, span } from '../format';
import { Age, Id, Read, Section, Table, Title, type kinds } from '../parts';
import { href } from '../route';
import { banner } from '../words';

const sum = (of: Record<string, number>): number => Object.values(of).reduce((a, b) => a + b, 0);

export function Overview(): JSX.Element {
  const data = useData('overview', async (signal) => {
    const [stats, system] = await Promise.all([get<Stats>('v1/stats', {}, signal), get<System>('v1/system', {}, signal)]);
    return { stats, system };
  });
  return <>
    <Title name="Overview">Overview</Title>
    <Read data={data} what="the state of the deployment">{({ stats, system }) => <>
      <Them stats={stats} system={system} />
      <Numbers stats={stats} />
      <Charts stats={stats} />
    </>}</Read>
    <Losses />
  </>;
}

function Them({ stats, system }: { stats: Stats; system: System }): JSX.Element {
  const b = banner(system, stats);
  return <section class={`banner b-${b.side}`} aria-label="Them or us" role="status"><h2>{b.title}</h2><p>{b.text}</p></section>;
}

function Numbers({ stats }: { stats: Stats }): JSX.Element {
  const lost = sum(stats.lastHour.verdicts);
  const tiles: [string, string, string, string?][] = [
    ['Workers late', number(stats.workers.late), href('workers', { liveness: 'LATE' }), stats.workers.late ? 'late' : ''],
    ['Workers lost', number(stats.workers.lost), href('workers', { liveness: 'LOST' }), stats.workers.lost ? 'lost' : ''],
    ['Oldest overdue', stats.oldestOverdueMs ? span(stats.oldestOverdueMs) : 'none', href('system'), stats.oldestOverdueMs >= 5000 ? 'lost' : ''],
    ['Ended in the last hour, everywhere', number(lost), href('tasks', { state: 'FAILED' })],
    ['Tasks running', number(stats.tasks.RUNNING ?? 0), href('tasks', { state: 'RUNNING' })],
    ['Tasks queued', number(stats.tasks.QUEUED ?? 0), href('tasks', { state: 'QUEUED' })],
    ['Workers online', number(stats.workers.online), href('workers', { status: 'ONLINE' })],
    ['Machines online', number(stats.machines.online), href('machines')],
  ];
  return <ul class="tiles">{tiles.map(([name, n, to, tone]) =>
    <li key={name}><a href={to} class={tone ? `t-${tone}` : ''}><b>{n}</b><span>{name}</span></a></li>)}</ul>;
}

function Charts({ stats }: { stats: Stats }): JSX.Element {
  const steps = stats.series.steps, per = stats.series.stepMs / 1000;
  const times = steps.map((s) => Date.parse(s.at ?? '') / 1000);
  const r = stats.rates;
  return <div class="charts">
    <Section title="Beats" side={<b>{number(r.beatsPerSecond)} / s</b>}>
      <Chart label="Accepted beats a second" unit="a second" times={times} lines={[{ name: 'beats', colour: '--c-beats', values: steps.map((s) => s.beats / per) }]} />
    </Section>
    <Section title="Time of a beat, p99" side={<b>{r.beatP99Ms === null ? 'no beats' : `${number(r.beatP99Ms)} ms`}</b>}>
      <Chart label="How long 99 of 100 beats take at most" unit="ms" times={times} lines={[{ name: 'p99', colour: '--c-p99', values: steps.map((s) => s.beatP99Ms) }]} />
    </Section>
    <Section title="Refused beats" side={<b>{number(r.refusedPerSecond)} / s</b>}>
      <Chart label="Refused beats a second" unit="a second" times={times}
        lines={[{ name: 'refusals', colour: '--c-refused', values: steps.map((s) => sum(s.refused) / per) }]} />
    </Section>
  </div>;
}

const groups: [string, string, keyof typeof kinds | null][] = [['machineId', 'Machine', 'machine'], ['version', 'Version', null], ['queue', 'Queue', 'queue'],
  ['type', 'Type', null]];

function Losses(): JSX.Element {
  const data = useData('losses', (signal) =>
    Promise.all(groups.map(([by]) => get<Verdicts>('v1/stats/verdicts', { by, sinceMs: 3_600_000 }, signal))), 15_000);
  return <Section title="Losses of the last hour">
    <Read data={data} what="the losses">{(all) => <>
      <p class="dim">{count(all[0]?.total ?? 0, 'attempt')} ended by Lubdub{all[0]?.truncated ? ', of which the oldest are left out' : ''}.</p>
      <div class="grid4">{groups.map(([by, name, kind], i) => <div key={by}><h3>By {name.toLowerCase()}</h3>
        <Table label={`Losses by ${name.toLowerCase()}`} rows={(all[i]?.groups ?? []).slice(0, 8)} id={(g) => String(g[by as 'type'] ?? '')}
          none="None in the last hour." columns={[
            { name, cell: (g) => { const v = g[by as 'type']; return v ? kind ? <Id kind={kind} id={v} /> : v : <span class="dim">none</span>; } },
            { name: 'Lost', num: true, cell: (g) => number(g.count) },
            { name: 'Last', cell: (g) => <Age at={g.lastAt} /> },
          ]} /></div>)}</div>
    </>}</Read>
  </Section>;
}
