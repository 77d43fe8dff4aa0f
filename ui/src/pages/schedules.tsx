import type { JSX } from 'preact';
import { call, get, type Delivery, type Schedule, type Webhook } from '../api';
import { ActButton, Acts } from '../acts';
import { useData } from '../data';
import { number } from '../format';
import { OpenForm } from '../forms';
import { kindOf } from '../ids';
import { Filters, Pager, useList } from '../lists';
import { Age, Facts, Id, Json, Moment, Read, Section, State, Table, Title } from '../parts';
import { href } from '../route';
import { TestAnswer } from './webhooktest';

const enc = encodeURIComponent;

const CreateSchedule = (): JSX.Element => <OpenForm to="schedule-form" op="createSchedule" label="Create schedule" />;
const CreateWebhook = (): JSX.Element => <OpenForm to="webhook-form" op="createWebhook" label="Create webhook" />;

export function Schedules(): JSX.Element {
  const l = useList<{ schedules: Schedule[]; nextPageToken?: string; totalCount: number }>('v1/schedules', []);
  return (
    <>
      <Title name="Schedules" side={<CreateSchedule />}>
        Schedules
      </Title>
      <Read data={l.data} what="the schedules">
        {(v) => (
          <>
            <Table
              label="Schedules"
              rows={v.schedules}
              id={(s) => s.scheduleId}
              none={
                <>
                  A schedule creates a task at each of its times. None has been created here. <CreateSchedule />
                </>
              }
              columns={[
                { name: 'Schedule', cell: (s) => <Id kind="schedule" id={s.scheduleId} /> },
                { name: 'Cron', cell: (s) => <code>{s.cron}</code> },
                { name: 'State', cell: (s) => <State of={s.paused ? 'PAUSED' : 'ACTIVE'} /> },
                { name: 'Queue', cell: (s) => <Id kind="queue" id={s.task?.queue} /> },
                { name: 'Next', cell: (s) => (s.paused ? <span class="dim">–</span> : <Age at={s.next} none="never" />) },
                { name: 'Fired', num: true, cell: (s) => number(s.fired) },
                { name: 'Skipped', num: true, cell: (s) => number(s.skipped) },
                {
                  name: 'Actions',
                  cell: (s) => (
                    <Acts names={[s.paused ? 'resumeSchedule' : 'pauseSchedule', 'fireSchedule']} on={{ ids: [s.scheduleId] }} />
                  ),
                },
              ]}
            />
            <Pager of={l} next={v.nextPageToken} shown={v.schedules.length} total={v.totalCount} noun="schedule" />
          </>
        )}
      </Read>
    </>
  );
}

export function SchedulePage({ id }: { id: string }): JSX.Element {
  const data = useData('schedule/' + id, (signal) => call<Schedule>('GET', `v1/schedules/${enc(id)}`, { signal, exact: true }));
  const next = useData('next/' + id, (signal) => get<{ next: string[] }>(`v1/schedules/${enc(id)}/next`, { count: 5 }, signal), 30_000);
  const s = data.value;
  return (
    <>
      <Title
        name={id}
        id={id}
        side={
          s && (
            <div class="acts">
              <OpenForm to={`schedule-form/${id}`} op="changeSchedule" label="Edit" quiet />
              <Acts names={[s.paused ? 'resumeSchedule' : 'pauseSchedule', 'fireSchedule']} on={{ ids: [id] }} />
            </div>
          )
        }
      >
        Schedule
      </Title>
      <Read data={data} what="the schedule">
        {(v) => (
          <>
            <p class="lead">
              <State of={v.paused ? 'PAUSED' : 'ACTIVE'} /> <code>{v.cron}</code> in UTC.{' '}
              {v.paused ? (
                'It creates nothing until it is resumed.'
              ) : (
                <>
                  The next fire is <Age at={v.next} none="never" />.
                </>
              )}
            </p>
            <div class="grid2">
              <Section title="Facts">
                <Facts
                  of={[
                    ['Fired', number(v.fired)],
                    ['Skipped', number(v.skipped)],
                    ['Pending', number(v.pending)],
                    ['Overlap', v.overlap],
                    ['Catches up at most', number(v.maxCatchup)],
                    ['Last', <Moment at={v.last} />],
                    ['Created', <Moment at={v.createdAt} />],
                  ]}
                />
              </Section>
              <Section title="What it creates">
                <Json of={v.task} label="The task" />
              </Section>
            </div>
            <Section title="Fires" side={<a href={href('tasks', { scheduleId: id })}>All its tasks</a>}>
              <Table
                label="Fires"
                rows={[...v.fires].reverse()}
                id={(f) => f.fireAt + f.kind}
                none="It has not fired yet."
                columns={[
                  { name: 'At', cell: (f) => <Moment at={f.fireAt} /> },
                  { name: 'Kind', cell: (f) => f.kind },
                  { name: 'Outcome', cell: (f) => f.outcome },
                  { name: 'Task', cell: (f) => <Id kind="task" id={f.taskId} /> },
                  { name: 'State', cell: (f) => (f.state ? <State of={f.state} /> : <span class="dim">–</span>) },
                  { name: 'Why', why: true, cell: (f) => f.error ?? f.reason ?? <span class="dim">–</span> },
                ]}
              />
            </Section>
          </>
        )}
      </Read>
      <Section title="Next fires">
        <Read data={next} what="the next fires">
          {(v) =>
            v.next.length ? (
              <ul class="plain">
                {v.next.map((t) => (
                  <li key={t}>
                    <Moment at={t} /> (<Age at={t} />)
                  </li>
                ))}
              </ul>
            ) : (
              <p class="none">None.</p>
            )
          }
        </Read>
      </Section>
    </>
  );
}

const health = (w: Webhook): string => (!w.enabled ? 'DISABLED' : w.failingSince ? 'FAILING' : 'ENABLED');

export function Webhooks(): JSX.Element {
  const l = useList<{ webhooks: Webhook[]; nextPageToken?: string; totalCount: number }>('v1/webhooks', []);
  return (
    <>
      <Title name="Webhooks" side={<CreateWebhook />}>
        Webhooks
      </Title>
      <Read data={l.data} what="the webhooks">
        {(v) => (
          <>
            <Table
              label="Webhooks"
              rows={v.webhooks}
              id={(w) => w.webhookId}
              none={
                <>
                  A webhook posts events to a URL of yours. None has been created here. <CreateWebhook />
                </>
              }
              columns={[
                { name: 'Webhook', cell: (w) => <Id kind="webhook" id={w.webhookId} /> },
                { name: 'URL', cell: (w) => w.url },
                { name: 'State', cell: (w) => <State of={health(w)} /> },
                { name: 'Events', cell: (w) => w.events.join(', ') },
                { name: 'Pending', num: true, cell: (w) => number(w.pending) },
                { name: 'Dead', num: true, cell: (w) => number(w.dead) },
                { name: 'Failing for', cell: (w) => (w.failingSince ? <Age at={w.failingSince} /> : <span class="dim">–</span>) },
              ]}
            />
            <Pager of={l} next={v.nextPageToken} shown={v.webhooks.length} total={v.totalCount} noun="webhook" />
          </>
        )}
      </Read>
    </>
  );
}

export function WebhookPage({ id }: { id: string }): JSX.Element {
  const data = useData('webhook/' + id, (signal) => get<Webhook>(`v1/webhooks/${enc(id)}`, {}, signal));
  const l = useList<{ deliveries: Delivery[]; nextPageToken?: string }>(`v1/webhooks/${enc(id)}/deliveries`, ['status'], { order: 'desc' });
  return (
    <>
      <Title
        name={id}
        id={id}
        side={
          data.value && (
            <div class="acts">
              <OpenForm
                to={`webhook-form/${id}`}
                op="updateWebhook"
                label="Edit"
                why={data.value.managed ? "It comes from the deployment's configuration, and is changed there." : ''}
                quiet={!data.value.managed}
              />
              <Acts names={['testWebhook']} on={{ ids: [id] }} />
            </div>
          )
        }
      >
        Webhook
      </Title>
      <Read data={data} what="the webhook">
        {(v) => (
          <>
            <p class="lead">
              <State of={health(v)} /> {v.url}
              {v.disabledReason && ` was switched off: ${v.disabledReason}`}
            </p>
            <Section title="Facts">
              <Facts
                of={[
                  ['Events', v.events.join(', ')],
                  ['Description', v.description],
                  ['Pending', number(v.pending)],
                  ['Dead', number(v.dead)],
                  ['Failing since', <Moment at={v.failingSince} />],
                  ['Managed by a file', v.managed ? 'yes' : 'no'],
                  ['Changed', <Moment at={v.updatedAt} />],
                ]}
              />
            </Section>
          </>
        )}
      </Read>
      <TestAnswer id={id} />
      <Section title="Deliveries">
        <Filters of={l} fields={[{ name: 'status', choices: ['PENDING', 'DELIVERED', 'DEAD'] }]} />
        <Read data={l.data} what="its deliveries">
          {(v) => (
            <>
              <Table
                label="Deliveries"
                rows={v.deliveries}
                id={(d) => d.deliveryId}
                none={l.none('deliveries')}
                columns={[
                  { name: 'Delivery', cell: (d) => <Id id={d.deliveryId} /> },
                  { name: 'Status', cell: (d) => <State of={d.status} /> },
                  { name: 'Event', cell: (d) => d.type },
                  { name: 'Subject', cell: (d) => <Id kind={kindOf(d.subject ?? '')} id={d.subject} /> },
                  { name: 'Tries', num: true, cell: (d) => d.attempts },
                  { name: 'Created', cell: (d) => <Age at={d.createdAt} /> },
                  { name: 'Next try', cell: (d) => <Age at={d.nextAttemptAt} none="–" /> },
                  {
                    name: 'Last answer',
                    why: true,
                    cell: (d) =>
                      d.response ? (d.response.error ?? `${d.response.status} in ${d.response.tookMs} ms`) : <span class="dim">–</span>,
                  },
                  { name: 'Actions', cell: (d) => <ActButton act="redeliver" on={{ ids: [`${id} ${d.deliveryId}`] }} /> },
                ]}
              />
              <Pager of={l} next={v.nextPageToken} shown={v.deliveries.length} noun="delivery" />
            </>
          )}
        </Read>
      </Section>
    </>
  );
}
