import type { JSX } from 'preact';
import { copy } from './copy';
import { href } from './route';

export const kinds = {
  task: 'tasks',
  run: 'runs',
  worker: 'workers',
  machine: 'machines',
  queue: 'queues',
  schedule: 'schedules',
  webhook: 'webhooks',
} as const;
export type Kind = keyof typeof kinds;

const prefixes: [string, Kind][] = [
  ['task_', 'task'],
  ['fire_', 'task'],
  ['run_', 'run'],
  ['wkr_', 'worker'],
  ['whk_', 'webhook'],
  ['sch_', 'schedule'],
];
export const kindOf = (id: string): Kind | undefined => prefixes.find(([p]) => id.startsWith(p))?.[1];

// Generated ids are shortened: a ULID, after which a worker's has three digits of its shard, or hexadecimal digits, or a UUID. Their last
// characters are random. Ids that people chose are shown whole.
const words = '(?:[A-Za-z]+[_-])*',
  digits = '[0-9A-Z]{26}(?:[0-9A-F]{3})?|[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const whole = new RegExp(`^(${words})(${digits})$`),
  within = new RegExp(`(?<![\\w-])(${words}(?:${digits}))(?![\\w-])`);

// cut returns the beginning of an id, what is not drawn, and the end.
function cut(id: string): [string, string, string] {
  const [, first = '', random = ''] = whole.exec(id) ?? [];
  const at = id.length - (random.length === 29 ? 9 : 6);
  return random ? [first, id.slice(first.length, at), id.slice(at)] : [id, '', ''];
}

// shortOf is for drawings. On pages, Short keeps the whole id for screen readers, for the search of the browser and for selected text.
export const shortOf = (id: string): string => {
  const [first, middle, last] = cut(id);
  return first + (middle && '…') + last;
};

export function Short({ id }: { id: string }): JSX.Element {
  const [first, middle, last] = cut(id);
  return (
    <>
      {first}
      {middle && (
        <span class="cut">
          <span>{middle}</span>
        </span>
      )}
      {last}
    </>
  );
}

// CopyId is the button that copies an id. It is a stop of Tab only where no row and no link has the key c.
export function CopyId({ id, stop = false }: { id: string; stop?: boolean }): JSX.Element {
  return (
    <button
      type="button"
      class="copy-id"
      tabIndex={stop ? 0 : -1}
      aria-label={`Copy ${id}`}
      title={stop ? 'Copy the id' : 'Copy the id (c)'}
      onClick={() => void copy(id)}
    >
      <svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
        <path d="M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3" />
      </svg>
    </button>
  );
}

function Link({ kind, id }: { kind: Kind; id: string }): JSX.Element {
  const press = (e: KeyboardEvent): void => {
    if (e.key === 'c' && !e.ctrlKey && !e.metaKey && !e.altKey) void copy(id);
  };
  return (
    <a class="id" title={id} href={href(`${kinds[kind]}/${id}`)} onKeyDown={press}>
      <Short id={id} />
    </a>
  );
}

// Id is an id in a table or among facts. It links to its object if it has a page.
export function Id({ kind, id, stop }: { kind?: Kind; id: string | null | undefined; stop?: boolean }): JSX.Element {
  if (!id) return <span class="dim">–</span>;
  const text = kind ? (
    <Link kind={kind} id={id} />
  ) : (
    <span class="id" title={id}>
      <Short id={id} />
    </span>
  );
  if (kind === 'queue') return text; // a name, which is short
  return (
    <span class="with-copy">
      {text}
      <CopyId id={id} stop={stop} />
    </span>
  );
}

// WithIds is a sentence in which generated ids are short, and links if their prefix names the kind of object.
export function WithIds({ text }: { text: string }): JSX.Element {
  const part = (s: string, i: number): JSX.Element | string => {
    const kind = kindOf(s);
    if (i % 2 === 0) return s;
    if (kind) return <Link key={i} kind={kind} id={s} />;
    return (
      <span key={i} class="id" title={s}>
        <Short id={s} />
      </span>
    );
  };
  return <>{text.split(within).map(part)}</>;
}
