import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { get, type EventList, type LubdubEvent, type Query } from '../api';
import { forbidden } from '../acts';
import { paused, useData } from '../data';
import { clockTime, number } from '../format';
import { Filters, Pager, useList } from '../lists';
import { WithIds } from '../ids';
import { Id, kinds, Read, Section, Table, Title } from '../parts';
import { change, href } from '../route';
import { received, streaming } from '../stream';
import { use } from '../signal';

const kindOf = (e: LubdubEvent): keyof typeof kinds | undefined => {
  const k = e.type.split('.')[0] ?? '';
  return k in kinds ? (k as keyof typeof kinds) : undefined;
};
const brief = (data: unknown): string => {
  const text =
    data && typeof data === 'object'
      ? Object.entries(data)
          .map(([k, v]) => `${k}: ${typeof v === 'object' ? JSON.stringify(v) : v}`)
          .join(', ')
      : '';
  return text.length > 160 ? text.slice(0, 160) + ' …' : text;
};

function EventTable({
  events,
  label,
  none = 'No events are stored.',
}: {
  events: LubdubEvent[];
  label: string;
  none?: string;
}): JSX.Element {
  return (
    <Table
      label={label}
      rows={events}
      id={(e) => e.id}
      none={none}
      columns={[
        {
          name: 'Time',
          cell: (e) => (
            <time dateTime={e.time} title={e.time}>
              {clockTime(e.time)}
            </time>
          ),
        },
        { name: 'Event', cell: (e) => <span class={`ev ev-${e.type.replace('.', '-')}`}>{e.type}</span> },
        {
          name: 'About',
          cell: (e) => <Id kind={kindOf(e)} id={e.subject} />,
        },
        {
          name: 'Worker',
          cell: (e) => (e.workerId && e.workerId !== e.subject ? <Id kind="worker" id={e.workerId} /> : <span class="dim">–</span>),
        },
        { name: 'By', cell: (e) => (e.by ? <WithIds text={e.by} /> : <span class="dim">–</span>) },
        { name: 'Cause', cell: (e) => e.cause ?? <span class="dim">–</span> },
        {
          name: 'More',
          why: true,
          cell: (e) => (
            <span class="more">
              <WithIds text={brief(e.data)} />
            </span>
          ),
        },
      ]}
    />
  );
}

const panelSize = 50; // events on the page of another object

// EventPanel shows the newest events of an object. The server searches a limited number at a time; if older ones were not searched, the
// panel says so.
export function EventPanel({ of, label }: { of: Record<string, string>; label: string }): JSX.Element | null {
  const no = forbidden('listEvents');
  const data = useData<EventList>(
    'events/' + JSON.stringify(of),
    (signal) =>
      no
        ? Promise.resolve({ events: [], next: '', more: false })
        : get<EventList>('v1/events', { ...of, order: 'desc', pageSize: panelSize }, signal),
    10_000,
  );
  return no ? null : (
    <Section title="Events">
      <Read data={data} what="its events">
        {(v) => {
          const full = v.events.length >= panelSize;
          return (
            <>
              <EventTable events={v.events} label={label} none={v.more ? 'No matching events among the newest.' : undefined} />
              {v.more && (
                <p class="dim">
                  {full ? `The newest ${panelSize} are shown; ` : 'Older events were not searched; '}
                  <a href={href('events', of)}>{full ? 'see all' : 'search further back'}</a>.
                </p>
              )}
            </>
          );
        }}
      </Read>
    </Section>
  );
}

// searchBack reads pages of events, further and further back, until it finds one: pages are empty if few events match the filter.
async function searchBack(path: string, query: Query, signal: AbortSignal): Promise<EventList> {
  let list = await get<EventList>(path, query, signal);
  for (let i = 1; i < furthest && !list.events.length && list.more; i++)
    list = await get<EventList>(path, { ...query, after: list.next }, signal);
  return list;
}
const furthest = 20; // pages at once; the server searches thousands of events for each

export const eventFields = ['type', 'subject', 'runId', 'queue', 'taskType', 'workerId', 'machineId'];
const families = [
  'task.*',
  'worker.*',
  'machine.*',
  'schedule.*',
  'webhook.*',
  'system.*',
  'task.zombie',
  'task.retrying',
  'task.failed',
  'worker.late',
  'worker.offline',
];

export function Events(): JSX.Element {
  const l = useList<EventList>('v1/events', eventFields, { order: 'desc' }, 0, { token: 'after', read: searchBack });
  const live = use(received),
    how = use(streaming),
    held = use(paused);
  const first = l.page === 1,
    dropped = live.total > live.events.length,
    oldest = live.events[live.events.length - 1];
  const was = useRef(how);
  useEffect(() => {
    if (how === 'open' && was.current !== how) l.data.refresh(); // events between the first read and the start of the stream
    was.current = how;
  }, [how]);
  const seen = new Set(live.events.map((e) => e.id));
  // The first page grows at its top. Once more events have arrived than it holds, there is a gap before those that were read first.
  const shown = (v: EventList): LubdubEvent[] =>
    !first ? v.events : dropped ? live.events : [...live.events, ...v.events.filter((e) => !seen.has(e.id))];
  const older = (v: EventList): string | undefined =>
    first && dropped && oldest ? new Date(Date.parse(oldest.time) + 1).toISOString() : v.more ? v.next : undefined;
  return (
    <>
      <Title
        name="Events"
        side={
          <span class="dim" role="status">
            {!first
              ? 'Older events; not live'
              : held
                ? 'Paused'
                : how === 'open'
                  ? `${number(live.perSecond)} events / s, the newest are shown`
                  : 'The stream is not open'}
          </span>
        }
      >
        Events
      </Title>
      <Filters
        of={l}
        fields={[
          { name: 'type', hint: 'task.zombie,worker.*' },
          { name: 'subject' },
          { name: 'runId', label: 'run' },
          { name: 'queue' },
          { name: 'taskType', label: 'task type' },
          { name: 'workerId', label: 'worker' },
          { name: 'machineId', label: 'machine' },
        ]}
      />
      <div class="acts bar" role="group" aria-label="Common filters">
        {families.map((f) => (
          <button
            key={f}
            type="button"
            aria-pressed={l.filter.type === f}
            onClick={() => change({ type: l.filter.type === f ? undefined : f })}
          >
            {f}
          </button>
        ))}
      </div>
      <Section title={first ? 'Live, newest first' : 'Older events, newest first'}>
        <Read data={l.data} what="earlier events">
          {(v) => (
            <>
              <EventTable
                label="Events"
                events={shown(v)}
                none={older(v) ? 'No matching events so far; there may be older ones.' : undefined}
              />
              <Pager of={l} next={older(v)} shown={shown(v).length} noun="event" more="there may be older ones" />
            </>
          )}
        </Read>
      </Section>
    </>
  );
}
