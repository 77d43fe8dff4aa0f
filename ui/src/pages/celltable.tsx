import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { number } from '../format';
import { Age, Id, Mark, Table } from '../parts';
import { order, type Cell } from './fleet';

const rows = 50;

// CellTable lists the workers of the picture, page by page.
export function CellTable({ cells, none }: { cells: Cell[]; none: string }): JSX.Element {
  const [page, setPage] = useState(0);
  const of = [...cells].sort((a, b) => order.indexOf(a.how) - order.indexOf(b.how));
  const last = Math.max(0, Math.ceil(of.length / rows) - 1),
    at = Math.min(page, last);
  return (
    <div class="cell-table">
      <Table
        label="Workers, the most silent first"
        rows={of.slice(at * rows, at * rows + rows)}
        id={(c) => c.id}
        none={none}
        columns={[
          {
            name: 'Liveness',
            cell: (c) => (
              <span class="live">
                <Mark of={c.how} />
                <span>
                  {c.how}
                  {c.ended && (
                    <div class="dim">
                      <Age at={c.ended} />
                    </div>
                  )}
                </span>
              </span>
            ),
          },
          {
            name: 'Worker',
            cell: (c) => (
              <>
                <Id kind="worker" id={c.id} />
                {c.name && <div class="dim">{c.name}</div>}
              </>
            ),
          },
          { name: 'Machine', cell: (c) => <Id kind="machine" id={c.machine} /> },
          { name: 'Last beat', cell: (c) => <Age at={c.beat} /> },
        ]}
      />
      {last > 0 && (
        <div class="pager">
          <span>
            {at * rows + 1} to {Math.min(of.length, at * rows + rows)} of {number(of.length)}
          </span>
          <button type="button" disabled={at === 0} onClick={() => setPage(at - 1)}>
            Previous page
          </button>
          <button type="button" disabled={at === last} onClick={() => setPage(at + 1)}>
            Next page
          </button>
        </div>
      )}
    </div>
  );
}
