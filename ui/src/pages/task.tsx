import type { JSX } from 'preact';
import { call, type HistoryEntry, type Task } from '../api';
import { Acts } from '../acts';
import { useData } from '../data';
import { number, span } from '../format';
import { WithIds } from '../ids';
import { Age, Bar, Id, Liveness, Moment, Read, Section, State, Title } from '../parts';
import { Logs } from '../logs';
import { useRoute } from '../route';
import { ended, evidence, outlook, reported } from '../words';
import { EventPanel } from './events';
import { Known, labels, Value } from './known';
import { Lanes } from './lanes';

export function TaskPage({ id }: { id: string }): JSX.Element {
  useRoute();
  const task = useData('task/' + id, (signal) => call<Task>('GET', `v1/tasks/${encodeURIComponent(id)}`, { signal, exact: true }), 3000);
  const t = task.value;
  const over = t && ['SUCCEEDED', 'CANCELLED'].includes(t.state);
  return (
    <>
      <Title
        name={id}
        id={id}
        side={
          t && (
            <Acts
              names={over ? [] : t.state === 'FAILED' ? ['retryTask'] : t.attempt === 0 ? ['cancelTask'] : ['cancelTask', 'retryTask']}
              on={{ ids: [id] }}
              note={over ? 'It has ended: there is nothing to cancel or to retry.' : ''}
            />
          )
        }
      >
        Task
      </Title>
      <Read data={task} what="the task">
        {(v) => (
          <>
            <p class="lead">
              <State of={v.state} /> {v.liveness && <Liveness of={v.liveness} />} <WithIds text={outlook(v)} />
            </p>
            <Section title="Timeline" side={<Logs ids={{ taskId: id, workerId: v.workerId ?? '' }} from={v.createdAt} to={v.finishedAt} />}>
              <Lanes task={v} />
              <Progress task={v} />
            </Section>
            <Evidence task={v} />
            <Value title="Error" of={v.error} />
            <Value title="Payload" of={v.payload} />
            <Value title="Output" of={v.output} />
            <Value title="Checkpoint" of={v.details} />
            <Section title="Facts">
              <Known
                of={[
                  ['Run', v.runId && <Id kind="run" id={v.runId} />],
                  ['Queue', v.queue && <Id kind="queue" id={v.queue} />],
                  ['Type', v.type],
                  ['Worker', v.workerId && <Id kind="worker" id={v.workerId} />],
                  ['Schedule', v.scheduleId && <Id kind="schedule" id={v.scheduleId} />],
                  ['Created', <Moment at={v.createdAt} />],
                  ['Started', v.startedAt && <Moment at={v.startedAt} />],
                  ['Finished', v.finishedAt && <Moment at={v.finishedAt} />],
                  ['Deadline', v.deadline && <Moment at={v.deadline} />],
                  ['Beats every', span(v.heartbeatIntervalMs)],
                  ['Timeout', v.heartbeatTimeoutMs === null ? 'lives by its worker’s beat' : span(v.heartbeatTimeoutMs)],
                  ['Failures', v.retry ? `${v.failures} of ${v.retry.maxAttempts} attempts` : v.failures],
                  ['Losses', v.retry ? `${v.losses}, ${v.retry.maxLosses} are retried` : v.losses],
                  ['Labels', labels(v.labels)],
                ]}
              />
            </Section>
          </>
        )}
      </Read>
      <EventPanel of={{ subject: id }} label="Events of this task" />
    </>
  );
}

// Progress is what the last heartbeats reported.
function Progress({ task: t }: { task: Task }): JSX.Element | null {
  if (!t.lastHeartbeatAt && t.progressPct === null && !t.message) return null;
  return (
    <Known
      of={[
        ['Progress', t.progressPct !== null && <Bar pct={t.progressPct} label="progress" />],
        ['Message', t.message],
        ['Last beat', t.lastHeartbeatAt && <Age at={t.lastHeartbeatAt} />],
        ['By its worker’s clock', t.reportedHeartbeatAt && <Moment at={t.reportedHeartbeatAt} />],
      ]}
    />
  );
}

function Evidence({ task }: { task: Task }): JSX.Element | null {
  const past = [...task.history].reverse();
  if (!past.length) return null;
  return (
    <Section title="Evidence">
      <ul class="evidence attempts">
        {past.map((h: HistoryEntry, i) => (
          <li key={past.length - i}>
            <p>
              <b>
                <WithIds text={ended(h)} />
              </b>{' '}
              {!h.evidence && reported(h.error)}
            </p>
            {h.evidence && (
              <ul>
                {evidence(h.evidence).map((s) => (
                  <li key={s}>
                    <WithIds text={s} />
                  </li>
                ))}
              </ul>
            )}
            {h.lastProgress && (
              <p class="dim">
                Last progress: {h.lastProgress.progressPct === null ? '' : `${number(h.lastProgress.progressPct)} % `}
                {h.lastProgress.message}
              </p>
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}
