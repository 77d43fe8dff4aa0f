import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { count, number } from '../format';
import { Failed, Id, Mark, Title } from '../parts';
import { change, useRoute } from '../route';
import { Cells } from './cells';
import { CellTable } from './celltable';
import { atMost, order, stays, useFleet, type Cell } from './fleet';
import { grouped, groupings, groupOf, type By } from './groups';

const mostChoices = 500; // groups in the list of choices
const kindOf = { machine: 'machine', queue: 'queue' } as const;

// Pulse shows every worker. How they are grouped and filtered is in the address.
export function Pulse(): JSX.Element {
  const { query } = useRoute();
  const offline = query.get('offline') === 'true',
    only = query.get('only') ?? '',
    group = query.get('group') ?? '';
  const by: By = groupings.find((g) => g === query.get('by')) ?? 'machine';
  const fleet = useFleet(offline);
  const cells = useMemo(() => fleet.cells.filter((c) => !group || groupOf(c, by) === group), [fleet.cells, group, by]);
  const counts = countsOf(cells),
    live = cells.length - (counts.OFFLINE ?? 0);
  const shown = useMemo(() => cells.filter((c) => !only || c.how === only), [cells, only]);
  const text = order
    .filter((o) => counts[o])
    .map((o) => `${number(counts[o]!)} ${o.toLowerCase()}`)
    .join(', ');
  const none = !fleet.whole ? 'Reading the workers …' : only ? `No worker is ${only.toLowerCase()}.` : 'There are no workers here.';
  return (
    <>
      <Title name="Pulse">Pulse</Title>
      <div class="acts bar" role="group" aria-label="Filter by state">
        {order.map((o) => (
          <button key={o} type="button" aria-pressed={only === o} onClick={() => change({ only: only === o ? undefined : o })}>
            <Mark of={o} />
            {o.toLowerCase()} <b>{number(counts[o] ?? 0)}</b>
          </button>
        ))}
        <span class="dim" role="status">
          {fleet.whole ? count(live, 'worker') : `reading, ${number(live)} so far`}
          {!offline && counts.OFFLINE ? `; ${number(counts.OFFLINE)} went offline in the last ${stays} min` : ''}
          {fleet.capped && `; more than ${number(atMost)} are not drawn`}
        </span>
      </div>
      <div class="acts bar pulse-groups">
        <label class="check">
          Group by
          <select value={by} onChange={(e) => change({ by: e.currentTarget.value, group: undefined })}>
            {groupings.map((g) => (
              <option key={g} value={g}>
                {g}
              </option>
            ))}
          </select>
        </label>
        <Choice cells={fleet.cells} by={by} group={group} />
        <label class="check">
          <input type="checkbox" checked={offline} onChange={(e) => change({ offline: e.currentTarget.checked ? 'true' : undefined })} />
          show offline workers
        </label>
      </div>
      {fleet.error && <Failed error={fleet.error} what="the workers" at={fleet.at || undefined} retry={fleet.again} />}
      <div class={`pulse ${fleet.error ? 'old' : ''}`}>
        <Cells
          cells={cells}
          by={by}
          only={only}
          label={`${count(live, 'worker')} by ${by}: ${text || 'none'}. The table next to it lists them.`}
          choose={(to) => change({ group: to })}
        />
        <CellTable cells={shown} none={none} />
      </div>
    </>
  );
}

function countsOf(cells: Cell[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const c of cells) counts[c.how] = (counts[c.how] ?? 0) + 1;
  return counts;
}

// Choice shows one group alone, or all.
function Choice({ cells, by, group }: { cells: Cell[]; by: By; group: string }): JSX.Element {
  const groups = useMemo(
    () =>
      [...grouped(cells, by)]
        .sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))
        .map(([name, of]) => [name, of.length] as const),
    [cells, by],
  );
  const listed = groups.slice(0, mostChoices);
  const kind = by in kindOf ? kindOf[by as keyof typeof kindOf] : null;
  return (
    <>
      <label class="check">
        Show
        <select value={group} onChange={(e) => change({ group: e.currentTarget.value })}>
          <option value="">all ({number(groups.length)})</option>
          {group && !listed.some(([name]) => name === group) && <option value={group}>{group}</option>}
          {listed.map(([name, n]) => (
            <option key={name} value={name}>
              {name} ({number(n)})
            </option>
          ))}
        </select>
      </label>
      {group && (
        <>
          {kind && <Id kind={kind} id={group} />}
          <button type="button" onClick={() => change({ group: undefined })}>
            Show all
          </button>
        </>
      )}
    </>
  );
}
