import type { components } from './api.gen';
import { parseExact, stringify } from './exactjson';
import { Signal } from './signal';
import { rejected, scope, session, signOut, stored } from './session';

type Schemas = components['schemas'];
export type Task = Schemas['Task'];
export type HistoryEntry = Schemas['HistoryEntry'];
export type Evidence = Schemas['Evidence'];
export type Worker = Schemas['Worker'];
export type Machine = Schemas['Machine'];
export type Queue = Schemas['Queue'];
export type Run = Schemas['Run'];
export type Schedule = Schemas['Schedule'];
export type Webhook = Schemas['Webhook'];
export type Delivery = Schemas['WebhookDelivery'];
export type Stats = Schemas['Stats'];
export type System = Schemas['System'];
export type Verdicts = Schemas['VerdictCounts'];
export type LubdubEvent = Schemas['Event'];
export type EventList = Schemas['EventList'];
export type ScopeList = Schemas['ScopeList'];

export type Query = Record<string, string | number | undefined>;

// A rejected or failed request, with the server's message if there is one.
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly body: unknown = null,
  ) {
    super(message);
  }
}

// Whether the server could be reached with the last request.
export const reach = new Signal<{ ok: boolean; why: string }>({ ok: true, why: '' });
export const calls = { count: 0 };

// The server's clock, bounded by its Date headers, which have whole seconds.
const clock = { least: -Infinity, most: Infinity, offset: 0 };

export function updateClock(date: string | null, sent: number, got: number): void {
  const second = date ? Date.parse(date) : NaN;
  if (Number.isNaN(second)) return;
  const least = second - got,
    most = second + 1000 - sent;
  clock.least = Math.max(clock.least, least);
  clock.most = Math.min(clock.most, most);
  if (clock.least > clock.most) [clock.least, clock.most] = [least, most]; // one of the clocks was set
  clock.offset = (clock.least + clock.most) / 2;
}

export const serverNow = (): number => Date.now() + clock.offset;

const base = new URL('../', document.baseURI);

export function address(path: string, query: Query = {}, everywhere = false): URL {
  const url = new URL(path, base);
  const at = everywhere ? null : scope.value;
  if (at) {
    url.searchParams.set('tenantId', at.tenantId);
    url.searchParams.set('workspaceId', at.workspaceId);
  }
  for (const [name, v] of Object.entries(query)) {
    if (v === undefined || v === '') continue;
    if (name === 'label') for (const one of String(v).split(',')) url.searchParams.append(name, one.trim());
    else url.searchParams.set(name, String(v));
  }
  return url;
}

export function headers(more: Record<string, string> = {}, token = session.value?.token ?? ''): Record<string, string> {
  return { Authorization: 'Bearer ' + token, ...more };
}

const longest = 10_000; // ms that an answer may take

export async function call<T>(
  method: string,
  path: string,
  o: {
    query?: Query;
    body?: unknown;
    signal?: AbortSignal;
    everywhere?: boolean;
    wait?: number; // everywhere: no scope is named; wait: ms
    quiet?: boolean; // its failure does not mark the server as unreachable
    token?: string; // instead of the session's
    key?: string; // the Idempotency-Key
    exact?: boolean; // numbers that a browser would change are kept for stringify: the answer is shown, or edited and sent back
  } = {},
): Promise<T> {
  const sent = Date.now(),
    wait = o.wait ?? longest;
  const late = AbortSignal.timeout(wait);
  calls.count++;
  let res: Response, text: string;
  try {
    res = await fetch(address(path, o.query, o.everywhere), {
      method,
      cache: 'no-store',
      credentials: 'omit',
      signal: o.signal ? AbortSignal.any([o.signal, late]) : late,
      headers: headers(
        { ...(o.body === undefined ? {} : { 'Content-Type': 'application/json' }), ...(o.key ? { 'Idempotency-Key': o.key } : {}) },
        o.token,
      ),
      body: o.body === undefined ? undefined : stringify(o.body),
    });
    text = await res.text();
  } catch (e) {
    if (o.signal?.aborted) throw e;
    const why = late.aborted ? `The server did not answer within ${wait / 1000} s` : 'The server cannot be reached';
    if (!o.quiet) reach.set({ ok: false, why });
    throw new ApiError(0, 'unreachable', why);
  }
  updateClock(res.headers.get('Date'), sent, Date.now());
  let body: unknown = null;
  try {
    body = text ? (o.exact ? parseExact : JSON.parse)(text) : null;
  } catch {
    /* a proxy's page */
  }
  if (res.ok) {
    if (!reach.value.ok && !o.quiet) reach.set({ ok: true, why: '' });
    return body as T;
  }
  const failure = (body ?? {}) as { error?: string; message?: string };
  const e = new ApiError(res.status, failure.error ?? 'http_' + res.status, failure.message ?? `The server answered ${res.status}`, body);
  if (res.status >= 500 || res.status === 429) reach.set({ ok: false, why: e.message });
  else if (!reach.value.ok) reach.set({ ok: true, why: '' });
  if (res.status === 401 && session.value && !o.token) {
    if (stored.value?.refreshToken) rejected.set(rejected.value + 1);
    else
      signOut(
        session.value.expires <= serverNow()
          ? 'This token has expired. Create another with: lubdub ui'
          : 'This token was rejected. Create another with: lubdub ui',
      );
  }
  throw e;
}

export const get = <T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> => call<T>('GET', path, { query, signal });
export const post = <T>(path: string, body: unknown = {}, query?: Query): Promise<T> => call<T>('POST', path, { body, query });
