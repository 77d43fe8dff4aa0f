import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { ApiError, serverNow } from './api';
import { second, type Data } from './data';
import { escape } from './escape';
import { stringify } from './exactjson';
import { age, moment, number, span } from './format';
import { CopyId, Short } from './ids';
import { href } from './route';
import { useRows } from './rows';
import { use } from './signal';

type Kids = ComponentChildren;

// Age is computed from the server's clock and updated every second.
export function Age({ at, none = 'never' }: { at: string | null | undefined; none?: string }): JSX.Element {
  use(second);
  if (!at) return <span class="dim">{none}</span>;
  const ms = serverNow() - Date.parse(at);
  return (
    <time dateTime={at} title={moment(at)}>
      {ms < -1500 ? `in ${span(-ms)}` : age(ms)}
    </time>
  );
}

export function Moment({ at, none = '–' }: { at: string | null | undefined; none?: string }): JSX.Element {
  return at ? <time dateTime={at}>{moment(at)}</time> : <span class="dim">{none}</span>;
}

const shapes: Record<string, JSX.Element> = {
  FRESH: <circle cx="6" cy="6" r="4.5" />,
  LATE: <path d="M6 1 11.2 10.5H.8z" />,
  LOST: <path d="M1.5 3 3 1.5l3 3 3-3L10.5 3l-3 3 3 3L9 10.5l-3-3-3 3L1.5 9l3-3z" />,
  DRAINING: <path d="M6 .8 11.2 6 6 11.2.8 6z" />,
  OFFLINE: <path d="M1.5 1.5h9v9h-9zM3 3v6h6V3z" fill-rule="evenodd" />,
};
export function Mark({ of }: { of: string }): JSX.Element {
  return (
    <svg class={`mark m-${of}`} viewBox="0 0 12 12" width="11" height="11" aria-hidden="true">
      {shapes[of] ?? shapes.FRESH}
    </svg>
  );
}
export function Liveness({ of }: { of: string | null | undefined }): JSX.Element {
  return of ? (
    <span class="live">
      <Mark of={of} />
      {of}
    </span>
  ) : (
    <span class="dim">–</span>
  );
}
export function State({ of }: { of: string }): JSX.Element {
  return <span class={`state s-${of}`}>{of}</span>;
}

// An OFFLINE worker is shown as OFFLINE, whatever its liveness.
export const statusOf = (w: { status: string; liveness: string }): string =>
  w.status === 'OFFLINE' ? 'OFFLINE' : w.liveness !== 'FRESH' ? w.liveness : w.status === 'DRAINING' ? 'DRAINING' : 'FRESH';

export { Id, kinds } from './ids';

export const held = 'DISPATCHED,RUNNING'; // the states of tasks that a worker holds

// Num is a number that links to the list of what it counts.
export function Num({ n, to, query }: { n: number; to: string; query: Record<string, string | undefined> }): JSX.Element {
  return (
    <a class="n" href={href(to, query)}>
      {number(n)}
    </a>
  );
}

// Read shows the data, or why it could not be read. It never shows an empty list if the read failed.
export function Read<T>({
  data,
  children,
  what,
  old = false,
}: {
  data: Data<T>;
  what: string;
  old?: boolean;
  children: (v: T) => Kids;
}): JSX.Element {
  const { value, error, at } = data;
  return (
    <>
      {error && <Failed error={error} what={what} at={value === undefined ? undefined : at} retry={data.refresh} />}
      {value !== undefined ? (
        <div class={error || old ? 'old' : ''}>{children(value)}</div>
      ) : (
        !error && (
          <p class="dim" role="status">
            Reading {what} …
          </p>
        )
      )}
    </>
  );
}

export function Failed({ error, what, at, retry }: { error: ApiError; what: string; at?: number; retry: () => void }): JSX.Element {
  use(second);
  return (
    <div class="failed" role="alert">
      <p>
        <strong>{error.status === 404 ? 'Not found' : error.status === 403 ? 'Not allowed' : `Could not read ${what}`}.</strong>{' '}
        {error.message}.
        {at !== undefined && (
          <>
            {' '}
            What is shown below is old: it was read <b>{age(Date.now() - at)}</b>.
          </>
        )}
      </p>
      <button type="button" onClick={retry}>
        Try again
      </button>
    </div>
  );
}

export function Section({ title, children, side }: { title: string; children: Kids; side?: Kids }): JSX.Element {
  const id = 'h-' + title.replace(/\W+/g, '-').toLowerCase();
  return (
    <section class="panel" aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {side}
      </header>
      {children}
    </section>
  );
}

export function Facts({ of }: { of: [string, Kids][] }): JSX.Element {
  return (
    <dl class="facts">
      {of.map(([name, v]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{v ?? <span class="dim">–</span>}</dd>
        </div>
      ))}
    </dl>
  );
}

export interface Column<T> {
  name: string;
  cell: (row: T) => Kids;
  num?: boolean;
  why?: boolean; // it says why, in words: it gets the width that other columns leave
  sort?: { by: string; first: Order }; // the field of the API, and the order that a first click asks for: the worst first
}
export type Order = 'asc' | 'desc';
export interface Sort {
  by: string; // '' is the order of the API
  order: Order;
  set: (by?: string, order?: Order) => void;
}
export interface Chosen {
  ids: Set<string>;
  set: (ids: Set<string>) => void;
}

export function Table<T>({
  rows,
  columns,
  id,
  label,
  none,
  chosen,
  sort,
}: {
  rows: T[];
  columns: Column<T>[];
  id: (row: T) => string;
  label: string;
  none: Kids;
  chosen?: Chosen;
  sort?: Sort;
}): JSX.Element {
  const ids = rows.map(id);
  const all = !!chosen && ids.every((i) => chosen.ids.has(i));
  const toggle = (some: string[], on: boolean): void => {
    const next = new Set(chosen?.ids);
    for (const i of some)
      if (on) next.add(i);
      else next.delete(i);
    chosen?.set(next);
  };
  const keys = useRows(ids, chosen && ((i) => toggle([i], !chosen.ids.has(i))));
  if (rows.length === 0) return <p class="none">{none}</p>;
  return (
    <div class="scroll" role="group" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {chosen && (
              <th class="pick">
                <input
                  type="checkbox"
                  aria-label={`Select all on this page`}
                  checked={all}
                  onChange={(e) => toggle(ids, e.currentTarget.checked)}
                />
              </th>
            )}
            {columns.map((c) => (
              <Head key={c.name} of={c} sort={sort} />
            ))}
          </tr>
        </thead>
        <tbody onKeyDown={keys.press}>
          {rows.map((r, i) => (
            <tr
              key={ids[i]}
              class={chosen?.ids.has(ids[i]!) ? 'picked' : ''}
              tabIndex={i === keys.at ? 0 : -1}
              onFocus={() => keys.focused(ids[i]!)}
            >
              {chosen && (
                <td class="pick">
                  <input
                    type="checkbox"
                    aria-label={`Select ${ids[i]}`}
                    checked={chosen.ids.has(ids[i]!)}
                    onChange={(e) => toggle([ids[i]!], e.currentTarget.checked)}
                  />
                </td>
              )}
              {columns.map((c) => (
                <td key={c.name} class={c.num ? 'num' : c.why ? 'why-column' : ''}>
                  {c.why ? <div>{c.cell(r)}</div> : c.cell(r)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// Head is the head of a column. If the server can sort by it, it is a button: the first order, the opposite one, and then none.
function Head<T>({ of, sort }: { of: Column<T>; sort?: Sort }): JSX.Element {
  const can = sort && of.sort,
    on = !!can && sort.by === can.by;
  const next = (): void => {
    if (!can) return;
    if (!on) sort.set(can.by, can.first);
    else if (sort.order === can.first) sort.set(can.by, can.first === 'asc' ? 'desc' : 'asc');
    else sort.set();
  };
  return (
    <th scope="col" class={of.num ? 'num' : ''} aria-sort={on ? (sort.order === 'asc' ? 'ascending' : 'descending') : undefined}>
      {can ? (
        <button type="button" class="sort" onClick={next}>
          {of.name}
          <span aria-hidden="true">{on ? (sort.order === 'asc' ? '↑' : '↓') : '↕'}</span>
        </button>
      ) : (
        of.name
      )}
    </th>
  );
}

export function Json({ of, label }: { of: unknown; label: string }): JSX.Element {
  const text = stringify(of, 2);
  return (
    <pre tabIndex={0} role="group" aria-label={label}>
      {text.length > 20_000 ? text.slice(0, 20_000) + '\n… cut' : text}
    </pre>
  );
}

export function Bar({ pct, label }: { pct: number | null | undefined; label: string }): JSX.Element {
  if (pct === null || pct === undefined) return <span class="dim">–</span>;
  return (
    <span class="gauge">
      <svg viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label={label}>
        <rect class="track" width="100" height="6" />
        <rect class="fill" width={Math.max(0, Math.min(100, pct))} height="6" />
      </svg>{' '}
      {Math.round(pct * 10) / 10} %
    </span>
  );
}

// Title is the page's heading, with the id of the object if it shows one. It gets the focus when the page changes, so that keyboards and
// screen readers continue there.
export function Title({ children, side, name, id }: { children: Kids; side?: Kids; name: string; id?: string }): JSX.Element {
  const h = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = escape(`${name} · Lubdub`);
    scrollTo(0, 0);
    const at = document.querySelector<HTMLElement>('nav [aria-current]'),
      bar = at?.closest('ul');
    if (at && bar) bar.scrollLeft = at.offsetLeft - (bar.clientWidth - at.offsetWidth) / 2; // if it is one row
    if (!document.activeElement?.closest('header, dialog')) h.current?.focus({ preventScroll: true });
  }, [name]);
  return (
    <div class="title">
      <div class="heading">
        <h1 tabIndex={-1} ref={h}>
          {children}
          {id && (
            <>
              {' '}
              <span class="id" title={id}>
                <Short id={id} />
              </span>
            </>
          )}
        </h1>
        {id && <CopyId id={id} stop />}
      </div>
      {side}
    </div>
  );
}

// More shows that a list is incomplete, and links to the whole list.
export function More({ cut, to }: { cut: boolean; to: string }): JSX.Element | null {
  return cut ? (
    <p class="dim">
      There are more; <a href={to}>see all</a>.
    </p>
  ) : null;
}
