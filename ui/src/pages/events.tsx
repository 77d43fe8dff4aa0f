import type { JSX } from 'preact';
import type { LubdubEvent } from '../api';
import { paused } from '../data';
import { clockTime, number } from '../format';
import { Filters, useList } from '../lists';
import { Id, kinds, More, Read, Section, Table, Title } from '../parts';
import { change } from '../route';
import { streaming, told } from '../stream';
import { use } from '../signal';

const kindOf = (e: LubdubEvent): keyof typeof kinds | null => {
  const k = e.type.split('.')[0] ?? '';
  return k in kinds ? k as keyof typeof kinds : null;
};
const brief = (data: unknown): string => {
  const text = data && typeof data === 'object' ? Object.entries(data).map(([k, v]) => `${k}: ${typeof v === 'object' ? JSON.stringify(v) : v}`).join(', ') : '';
  return text.length > 160 ? text.slice(0, 160) + ' …' : text;
};

export const beside = 50; // events on a page of something else

export function EventTable({ events, label, all }: { events: LubdubEvent[]; label: string; all?: string }): JSX.Element {
  return <><Table label={label} rows={events} id={(e) => e.id} none="No event is kept." columns={[
    { name: 'Time', cell: (e) => <time dateTime={e.time} title={e.time}>{clockTime(e.time)}</time> },
    { name: 'Event', cell: (e) => <span class={`ev ev-${e.type.replace('.', '-')}`}>{e.type}</span> },
    { name: 'About', cell: (e) => { const k = kindOf(e); return k && e.subject ? <Id kind={k} id={e.subject} /> : e.subject ?? <span class="dim">–</span>; } },
    { name: 'Worker', cell: (e) => e.workerId && e.workerId !== e.subject ? <Id kind="worker" id={e.workerId} /> : <span class="dim">–</span> },
    { name: 'By', cell: (e) => e.by ?? <span class="dim">–</span> },
    { name: 'Cause', cell: (e) => e.cause ?? <span class="dim">–</span> },
    { name: 'More', cell: (e) => <span class="more">{brief(e.data)}</span> },
  ]} />{all && <More cut={events.length >= beside} to={all} />}</>;
}

export const eventFields = ['type', 'subject', 'runId', 'queue', 'taskType', 'workerId', 'machineId'];
const families = ['task.*', 'worker.*', 'machine.*', 'schedule.*', 'webhook.*', 'system.*', 'task.zombie', 'task.retrying', 'task.failed', 'worker.late', 'worker.offline'];

export function Events(): JSX.Element {
  const l = useList<{ events: LubdubEvent[] }>('v1/events', eventFields, { order: 'desc' }, 0);
  const live = use(told), how = use(streaming), held = use(paused);
  const seen = new Set(live.events.map((e) => e.id));
  return <>
    <Title name="Events" side={<span class="dim" role="status">{held ? 'Paused' : how === 'open' ? `${number(live.perSecond)} events / s, the newest 100 are shown` : 'The stream is not open'}</span>}>Events</Title>
    <Filters of={l} fields={[{ name: 'type', hint: 'task.zombie,worker.*' }, { name: 'subject' }, { name: 'runId', label: 'run' }, { name: 'queue' }, { name: 'taskType', label: 'task type' },
      { name: 'workerId', label: 'worker' }, { name: 'machineId', label: 'machine' }]} />
    <div class="acts bar" role="group" aria-label="Often looked for">{families.map((f) =>
      <button key={f} type="button" aria-pressed={l.filter.type === f} onClick={() => change({ type: l.filter.type === f ? undefined : f })}>{f}</button>)}</div>
    <Section title="As they come, newest first">
      <Read data={l.data} what="earlier events">{(v) => <EventTable label="Events" events={[...live.events, ...v.events.filter((e) => !seen.has(e.id))].slice(0, 100)} />}</Read>
    </Section>
  </>;
}
