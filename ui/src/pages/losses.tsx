import type { JSX } from 'preact';
import { get, type Verdicts } from '../api';
import { useData } from '../data';
import { count, number } from '../format';
import { Filters, type List } from '../lists';
import { Age, Id, Read, Table, Title } from '../parts';
import { useRoute } from '../route';
import { because } from '../words';

type Group = Verdicts['groups'][number];

const groups = ['reason', 'queue', 'type', 'workerId', 'machineId', 'version'] as const; // the server filters by the first three

// Losses lists the attempts that Lubdub ended in the last hour, grouped by reason, queue, type, worker, machine and version.
export function Losses(): JSX.Element {
  const { query } = useRoute();
  const filter = Object.fromEntries(groups.map((g) => [g, query.get(g) ?? '']));
  const { reason, queue, type } = filter;
  const data = useData('losses/' + JSON.stringify([reason, queue, type]), (signal) =>
    get<Verdicts>('v1/stats/verdicts', { by: groups.join(), sinceMs: 3_600_000, reason, queue, type }, signal),
  );
  const dash = <span class="dim">–</span>;
  return (
    <>
      <Title name="Losses">Losses of the last hour</Title>
      <Filters
        of={{ filter } as unknown as List<Verdicts>}
        fields={[
          { name: 'reason' },
          { name: 'queue' },
          { name: 'type' },
          { name: 'workerId', label: 'worker' },
          { name: 'machineId', label: 'machine' },
          { name: 'version' },
        ]}
      />
      <Read data={data} what="the losses">
        {(v) => {
          const rows = v.groups.filter((g) => groups.every((by) => !filter[by] || g[by] === filter[by]));
          const listed = rows.reduce((n, g) => n + g.count, 0),
            all = filter.workerId || filter.machineId || filter.version ? listed : v.total;
          return (
            <>
              <Table
                label="Losses"
                rows={rows}
                id={(g) => groups.map((by) => g[by] ?? '').join('\t')}
                none="Lubdub ended no such attempt in the last hour."
                columns={[
                  { name: 'Attempts', num: true, cell: (g: Group) => number(g.count) },
                  { name: 'Last', cell: (g: Group) => <Age at={g.lastAt} /> },
                  { name: 'Because', why: true, cell: (g: Group) => because(g.reason ?? '') },
                  { name: 'Worker', cell: (g: Group) => <Id kind="worker" id={g.workerId} /> },
                  { name: 'Machine', cell: (g: Group) => <Id kind="machine" id={g.machineId} /> },
                  { name: 'Queue', cell: (g: Group) => <Id kind="queue" id={g.queue} /> },
                  { name: 'Type', cell: (g: Group) => g.type || dash },
                  { name: 'Version', cell: (g: Group) => g.version || dash },
                ]}
              />
              <div class="pager">
                <span role="status">
                  {all > listed ? `${number(listed)} of ` : ''}
                  {count(all, 'attempt')}
                  {v.truncated && '; the oldest are not included'}
                </span>
              </div>
            </>
          );
        }}
      </Read>
    </>
  );
}
