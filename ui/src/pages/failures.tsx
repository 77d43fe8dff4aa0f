import type { JSX } from 'preact';
import { ActButton } from '../acts';
import type { System } from '../api';
import { number } from '../format';
import { Age, Id, Section, Table } from '../parts';
import { href } from '../route';

type Failures = System['recentFailures'];

const shown = 8;
const reported = (g: Failures['groups'][number]): Record<string, string> => ({
  state: 'FAILED',
  reason: 'WORKER_REPORTED',
  ...(g.queue && { queue: g.queue }),
  ...(g.type && { type: g.type }),
});

// FailuresReported lists the failures that workers reported, grouped by the server. Retrying concerns all FAILED tasks of the group's queue and
// type: the dialog first counts them.
export function FailuresReported({ of }: { of: Failures }): JSX.Element {
  const rows = of.groups.slice(0, shown);
  return (
    <Section title="Reported as failed" side={<a href={href('tasks', { state: 'FAILED', reason: 'WORKER_REPORTED' })}>All failed tasks</a>}>
      <Table
        label="Failures that workers reported in the last hour"
        rows={rows}
        id={(g) => [g.queue, g.type, g.error].join('/')}
        none="Workers reported no failure in the last hour."
        columns={[
          { name: 'Error', why: true, cell: (g) => g.error || <span class="dim">no error given</span> },
          { name: 'Last 5 min', num: true, cell: (g) => number(g.lastFiveMinutes) },
          { name: 'Last hour', num: true, cell: (g) => number(g.count) },
          { name: 'Queue', cell: (g) => <Id kind="queue" id={g.queue} /> },
          { name: 'Type', cell: (g) => g.type ?? <span class="dim">–</span> },
          {
            name: 'Versions',
            cell: (g) => (
              <>
                {g.versions.join(', ') || <span class="dim">–</span>}
                {g.suspectVersion && (
                  <b class="bad"> {`(only ${number(g.suspectVersion.workers)} of ${number(g.suspectVersion.of)} workers)`}</b>
                )}
              </>
            ),
          },
          { name: 'First', cell: (g) => <Age at={g.firstAt} /> },
          { name: 'Last', cell: (g) => <Age at={g.lastAt} /> },
          { name: 'Example', cell: (g) => <Id kind="task" id={g.taskId} /> },
          { name: 'Retry', cell: (g) => <ActButton act="retryTask" on={{ selector: reported(g) }} label="Retry …" /> },
        ]}
      />
      {of.groups.length > rows.length && <p class="dim">and {number(of.groups.length - rows.length)} more groups</p>}
      {of.truncated && <p class="dim">There were more failures: the oldest are not counted.</p>}
    </Section>
  );
}
