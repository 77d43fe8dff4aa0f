import { parseExact, stringify } from './exactjson';

// What people type into a form, and the body of the request that it becomes.

export type Kind = 'text' | 'number' | 'seconds' | 'time' | 'pairs' | 'words' | 'json' | 'rest' | 'choice' | 'check';

export interface FormField {
  path: string; // of the field in the body, as in the server's errors: retry.maxAttempts; of the other fields: * or task.*
  label: string;
  kind?: Kind; // text by default
  hint?: string;
  required?: boolean;
  more?: boolean; // it is under "More"
  half?: boolean; // two are in one row, as all under "More" are
  choices?: [value: string, label: string][];
  suggestions?: string[];
}

export type Values = Record<string, string>; // by path
export type Errors = Record<string, string>; // by path
export type Body = Record<string, unknown>;

function parseNumber(text: string): number {
  const n = Number(text);
  if (!Number.isFinite(n)) throw new Error('this is not a number');
  return n;
}

// Lines that were in the form at first are kept as they are; those that were typed may have spaces around keys and values.
function parsePairs(text: string, base: string): Record<string, string> {
  const first = base.split('\n'),
    lines = text.split('\n').filter((l) => l.trim());
  return Object.fromEntries(
    lines.map((l) => {
      const at = l.indexOf('='),
        pair = [l.slice(0, at), l.slice(at + 1)];
      if (at < 1) throw new Error(`${l.trim()} is not key=value`);
      return first.includes(l) ? pair : pair.map((p) => p.trim());
    }),
  );
}

function asRest(value: unknown): Body {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('this is not a JSON object');
  return value as Body;
}

// parse returns the value of a field; undefined: it is absent. base is what the form began with, which is sent back exactly.
export function parse(f: FormField, text: string, base = ''): unknown {
  if (f.kind === 'check') return text === 'true';
  if (!text.trim()) {
    if (f.required) throw new Error('this is missing');
    return undefined;
  }
  switch (f.kind) {
    case 'number':
      return parseNumber(text);
    case 'seconds':
      return Math.round(parseNumber(text) * 1000);
    case 'time':
      return new Date(text + 'Z').toISOString();
    case 'pairs':
      return parsePairs(text, base);
    case 'words':
      return text.split(/[\s,]+/).filter(Boolean);
    case 'json':
      return parseExact(text);
    case 'rest':
      return asRest(parseExact(text));
    default:
      return text === base ? text : text.trim();
  }
}

// format is the reverse of parse.
function format(f: FormField, v: unknown): string {
  if (v === undefined || (v === null && f.kind !== 'json')) return '';
  switch (f.kind) {
    case 'seconds':
      return String(Number(v) / 1000);
    case 'pairs':
      return Object.entries(v as Record<string, string>)
        .map(([k, of]) => `${k}=${of}`)
        .join('\n');
    case 'words':
      return (v as string[]).join(', ');
    case 'json':
    case 'rest':
      return stringify(v, 2);
    default:
      return String(v);
  }
}

const isObject = (v: unknown): v is Body => typeof v === 'object' && v !== null && !Array.isArray(v);

function read(of: Body, [key = '', ...rest]: string[]): unknown {
  const v = of[key];
  return rest.length ? (isObject(v) ? read(v, rest) : undefined) : v;
}

function write(of: Body, [key = '', ...rest]: string[], v: unknown): void {
  if (!rest.length) of[key] = v;
  else write((of[key] = isObject(of[key]) ? of[key] : {}) as Body, rest, v);
}

// remove also removes objects that become empty.
function remove(of: Body, [key = '', ...rest]: string[]): void {
  const v = of[key];
  if (rest.length && isObject(v)) remove(v, rest);
  if (!rest.length || (isObject(v) && !Object.keys(v).length)) delete of[key];
}

const steps = (path: string): string[] => path.split('.');

// toBody returns the request's body, without the fields that are wrong, and what is wrong.
export function toBody(fields: FormField[], values: Values, base: Values): { body: Body; errors: Errors } {
  const body: Body = {},
    errors: Errors = {};
  const isRest = (f: FormField): boolean => f.kind === 'rest';
  for (const f of [...fields.filter(isRest), ...fields.filter((f) => !isRest(f))]) {
    try {
      const v = parse(f, values[f.path] ?? '', base[f.path]);
      if (v === undefined) continue;
      if (!isRest(f)) write(body, steps(f.path), v);
      else if (f.path === '*') Object.assign(body, v);
      else write(body, steps(f.path).slice(0, -1), v);
      if (isRest(f)) {
        const twice = fields.find((o) => !isRest(o) && read(body, steps(o.path)) !== undefined);
        if (twice) throw new Error(`${twice.path} has a field here: ${twice.label}`);
      }
    } catch (e) {
      errors[f.path] = e instanceof Error ? e.message : String(e);
    }
  }
  return { body, errors };
}

// toValues is the reverse of toBody: what has no field is in the field for the rest.
export function toValues(fields: FormField[], body: Body): Values {
  const left = structuredClone(body),
    values: Values = {};
  for (const f of fields) {
    if (f.kind === 'rest') continue;
    values[f.path] = format(f, read(left, steps(f.path)));
    remove(left, steps(f.path));
  }
  for (const f of fields) {
    if (f.kind !== 'rest') continue;
    const rest = f.path === '*' ? left : read(left, steps(f.path).slice(0, -1));
    values[f.path] = isObject(rest) && Object.keys(rest).length ? format(f, rest) : '';
  }
  return values;
}

// changes returns the names of the top-level fields that differ.
export const changes = (a: Body, b: Body): string[] =>
  [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((k) => JSON.stringify(a[k]) !== JSON.stringify(b[k]));

// rebase puts one's own changes on what others have stored since. `both` are the fields that they have changed too.
export function rebase(base: Body, mine: Body, now: Body): { changed: string[]; both: string[]; merged: Body } {
  const changed = changes(base, mine),
    both = changes(base, now).filter((k) => changed.includes(k));
  const merged = { ...now };
  for (const k of changed)
    if (mine[k] === undefined) delete merged[k];
    else merged[k] = mine[k];
  return { changed, both, merged };
}

// fieldOf returns the field that a path in a server's error is about, or that for the rest.
export function fieldOf(fields: FormField[], path: string): FormField | undefined {
  const within = (f: FormField): boolean => path === f.path || path.startsWith(f.path + '.') || path.startsWith(f.path + '[');
  return fields.find(within) ?? fields.find((f) => f.kind === 'rest' && (f.path === '*' || path.startsWith(f.path.slice(0, -1))));
}
