import type { JSX } from 'preact';
import { get, type HistoryEntry, type Task } from '../api';
import { Acts } from '../acts';
import { useData } from '../data';
import { number, span } from '../format';
import { Age, Bar, Facts, Id, Json, Liveness, Moment, Read, Section, State, Title } from '../parts';
import { useRoute } from '../route';
import { ended, evidence, outlook } from '../words';
import { EventPanel } from './events';
import { Lanes } from './lanes';

export function TaskPage({ id }: { id: string }): JSX.Element {
  useRoute();
  const task = useData('task/' + id, (signal) => get<Task>(`v1/tasks/${encodeURIComponent(id)}`, {}, signal), 3000);
  const t = task.value;
  const over = t && ['SUCCEEDED', 'CANCELLED'].includes(t.state);
  return (
    <>
      <Title
        name={id}
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
        Task <span class="id">{id}</span>
      </Title>
      <Read data={task} what="the task">
        {(v) => (
          <>
            <p class="lead">
              <State of={v.state} /> {v.liveness && <Liveness of={v.liveness} />} {outlook(v)}
            </p>
            <Section title="Attempts">
              <Lanes task={v} />
            </Section>
            <Evidence task={v} />
            <div class="grid2">
              <Section title="Progress">
                <Facts
                  of={[
                    ['Progress', <Bar pct={v.progressPct} label="progress" />],
                    ['Message', v.message],
                    ['Last beat', <Age at={v.lastHeartbeatAt} />],
                    ['Time by the worker’s clock', <Moment at={v.reportedHeartbeatAt} />],
                    ['Started', <Moment at={v.startedAt} />],
                    ['Finished', <Moment at={v.finishedAt} />],
                  ]}
                />
              </Section>
              <Section title="Facts">
                <Facts
                  of={[
                    ['Run', <Id kind="run" id={v.runId} />],
                    ['Queue', <Id kind="queue" id={v.queue} />],
                    ['Type', v.type],
                    ['Worker', <Id kind="worker" id={v.workerId} />],
                    ['Schedule', <Id kind="schedule" id={v.scheduleId} />],
                    ['Created', <Moment at={v.createdAt} />],
                    ['Beats every', span(v.heartbeatIntervalMs)],
                    ['Timeout', v.heartbeatTimeoutMs === null ? 'lives by its worker’s beat' : span(v.heartbeatTimeoutMs)],
                    ['Deadline', <Moment at={v.deadline} />],
                    ['Failures', v.retry ? `${v.failures} of ${v.retry.maxAttempts} attempts` : v.failures],
                    ['Losses', v.retry ? `${v.losses}, ${v.retry.maxLosses} are retried` : v.losses],
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
            {v.error && (
              <Section title="Error">
                <Json of={v.error} label="Error" />
              </Section>
            )}
            {v.output !== null && v.output !== undefined && (
              <Section title="Output">
                <Json of={v.output} label="Output" />
              </Section>
            )}
            {v.details !== null && v.details !== undefined && (
              <Section title="Checkpoint">
                <Json of={v.details} label="Checkpoint" />
              </Section>
            )}
            {v.payload !== null && v.payload !== undefined && (
              <Section title="Payload">
                <Json of={v.payload} label="Payload" />
              </Section>
            )}
          </>
        )}
      </Read>
      <EventPanel of={{ subject: id }} label="Events of this task" />
    </>
  );
}

function Evidence({ task }: { task: Task }): JSX.Element | null {
  const past = [...task.history].reverse();
  if (!past.length) return null;
  return (
    <Section title="Ended attempts">
      <ol class="evidence">
        {past.map((h: HistoryEntry) => (
          <li key={h.attempt}>
            <p>
              <b>{ended(h)}</b>
            </p>
            {h.evidence && (
              <ul>
                {evidence(h.evidence).map((s) => (
                  <li key={s}>{s}</li>
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
      </ol>
    </Section>
  );
}
