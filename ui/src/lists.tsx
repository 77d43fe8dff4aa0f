import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { get, type Query } from './api';
import { useData, type Data } from './data';
import { download } from './download';
import { count } from './format';
import type { Sort } from './parts';
import { change, useRoute } from './route';

// A list of the API, page by page. The filter is in the address, so a link shows everyone the same.
export interface List<T> {
  data: Data<T>;
  filter: Record<string, string>;
  page: number;
  next: (token: string) => void;
  back: () => void;
  none: (nouns: string, begin?: string) => string; // begin: how to begin, if nothing is stored
}

// pages defines how to read the next page, if that differs from most lists.
export function useList<T>(
  path: string,
  fields: string[],
  more: Record<string, string | number> = {},
  every = 5000,
  pages: { token: string; read: (path: string, query: Query, signal: AbortSignal) => Promise<T> } = { token: 'pageToken', read: get },
): List<T> {
  const { query } = useRoute();
  const filter = Object.fromEntries(fields.map((f) => [f, query.get(f) ?? '']));
  const key = path + JSON.stringify([filter, more]);
  const [been, set] = useState<{ key: string; tokens: string[] }>({ key, tokens: [] });
  const tokens = been.key === key ? been.tokens : [];
  const token = tokens[tokens.length - 1];
  const read = useData(
    key + (token ?? ''),
    (signal) => pages.read(path, { pageSize: 50, ...more, ...filter, [pages.token]: token }, signal),
    every,
  );
  // Rows in another order stay until the new order is read: otherwise the clicked head would lose the focus.
  const kept = useRef<{ of: string; value?: T }>({ of: '' });
  const of = JSON.stringify(filter);
  if (read.value !== undefined) kept.current = { of, value: read.value };
  const sorting = read.value === undefined && !read.error && tokens.length === 0 && kept.current.of === of;
  const data = sorting ? { ...read, value: kept.current.value } : read;
  return {
    data,
    filter,
    page: tokens.length + 1,
    next: (to) => {
      if (!sorting) set({ key, tokens: [...tokens, to] });
    },
    back: () => set({ key, tokens: tokens.slice(0, -1) }),
    none: (nouns, begin) => {
      const by = Object.entries(filter)
        .filter(([, v]) => v)
        .map(([k, v]) => `${k}=${v}`);
      return by.length ? `No ${nouns} on this page match ${by.join(', ').replaceAll('=', ' = ')}.` : (begin ?? `No ${nouns}.`);
    },
  };
}

// useSort returns the order of a list, by one of these fields. It is in the address, like the filter.
export function useSort(fields: string[]): Sort & { more: Record<string, string> } {
  const { query } = useRoute();
  const by = fields.find((f) => f === query.get('sort')) ?? '',
    order = query.get('order') === 'desc' ? 'desc' : 'asc';
  return { by, order, set: (sort, to) => change({ sort, order: to }), more: by ? { sort: by, order } : {} };
}

export interface Field {
  name: string;
  label?: string;
  choices?: string[];
  hint?: string;
}

export function Filters<T>({ of, fields }: { of: List<T>; fields: Field[] }): JSX.Element {
  const set = Object.values(of.filter).filter(Boolean).length;
  const [open, setOpen] = useState(false);
  return (
    <form class={open ? 'filters' : 'filters folded'} role="search" aria-label="Filter" onSubmit={(e) => e.preventDefault()}>
      <button type="button" class="unfold" aria-expanded={open} onClick={() => setOpen(!open)}>
        Filters{set > 0 && ` (${set})`}
      </button>
      {fields.map((f) => (
        <label key={f.name}>
          {f.label ?? f.name}
          {f.choices ? (
            <select value={of.filter[f.name]} onChange={(e) => change({ [f.name]: e.currentTarget.value })}>
              <option value="">any</option>
              {[...new Set([...f.choices, of.filter[f.name]!])].filter(Boolean).map((c) => (
                <option key={c} value={c}>
                  {c}
                </option>
              ))}
            </select>
          ) : (
            <input
              value={of.filter[f.name]}
              placeholder={f.hint}
              autoComplete="off"
              spellcheck={false}
              onChange={(e) => change({ [f.name]: e.currentTarget.value.trim() })}
            />
          )}
        </label>
      ))}
      {set > 0 && (
        <button type="button" onClick={() => change(Object.fromEntries(fields.map((f) => [f.name, undefined])))}>
          Show all
        </button>
      )}
    </form>
  );
}

export function Pager<T>({
  of,
  next,
  shown,
  total,
  noun,
  more = 'there are more',
  rows = [],
}: {
  of: List<T>;
  next?: string;
  shown: number;
  total?: number | null;
  noun: string;
  more?: string;
  rows?: object[]; // what can be downloaded
}): JSX.Element {
  const text =
    total !== null && total !== undefined
      ? `${shown} of ${count(total, noun)}`
      : next
        ? `${shown} on this page, and ${more}`
        : count(shown, noun);
  return (
    <div class="pager">
      <span role="status">{text}</span>
      {of.page > 1 && (
        <button type="button" onClick={of.back}>
          Previous page
        </button>
      )}
      {next && (
        <button type="button" onClick={() => of.next(next)}>
          Next page
        </button>
      )}
      {of.page > 1 && <span class="dim">page {of.page}</span>}
      {rows.length > 0 && (
        <span class="acts saves">
          {(['csv', 'json'] as const).map((f) => (
            <button key={f} type="button" title="Downloads the rows on this page" onClick={() => download(noun, rows, f)}>
              Download {f.toUpperCase()}
            </button>
          ))}
        </span>
      )}
    </div>
  );
}
