import { link, untilAborted } from './abort.js';
import { backoff, type Clock, sleep } from './clock.js';
import { checkSecret, type Endpoints } from './endpoints.js';
import { AnswerError, ApiError, ClosedError, type ErrorFields, mayRetry, retryAfterOf, UnansweredError } from './errors.js';
import { isObject } from './answers.js';
import type { TokenSource } from './token.js';
import { type Answer, type Fetch, wasNotSent } from './transport.js';

/** One call, including its retries. */
export interface Call {
  method: string;
  path: string; // escaped
  query?: URLSearchParams;
  body?: string; // JSON
  base?: Endpoints; // undefined: the caller's
  token?: string; // opens it; undefined: the caller's own does
  open?: boolean; // send no token
  headers?: Record<string, string>;
  once?: boolean; // a repeat would apply it twice: it is retried only if the server cannot have received it
  waitMs?: number; // how long the server may take in addition
  limitMs?: number; // how long the server may take to answer once; undefined: the caller's
  lasting?: boolean; // the signal ends the answer's body too, which is read later
  tries?: number; // how often it is made at most; undefined: the caller's
  signal?: AbortSignal;
}

export interface CallerOptions {
  base: Endpoints;
  token?: TokenSource;
  fetch: Fetch;
  clock: Clock;
  agent: string;
  allowHttp: boolean;
  timeoutMs: number;
  tries: number;
  /** The W3C trace context for a task that is created without one. */
  traceparent?: () => string | undefined;
}

/** The longest pause between two tries, in ms. */
export const maxPause = 5000;

export function operation(call: Call): string {
  return call.method + ' ' + call.path;
}

/** Makes calls. */
export class Caller {
  readonly set: CallerOptions;
  #closing = new AbortController();

  constructor(set: CallerOptions) {
    this.set = set;
  }

  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  close(): void {
    this.#closing.abort(new ClosedError());
  }

  /** Makes a call with retries, and returns the parsed JSON of the answer. */
  async do(call: Call): Promise<unknown> {
    const tries = call.tries ?? this.set.tries;
    for (let n = 0; ; n++) {
      try {
        return await this.#try(call);
      } catch (error) {
        if (n + 1 >= tries || !mayRepeat(call, error)) throw error;
        await this.pause(retryAfterOf(error) + backoff(n, maxPause), call.signal);
      }
    }
  }

  /** Waits for ms milliseconds; rejects with the reason if the signal or the client ends first. */
  async pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const ended = link(this.closing, signal);
    await sleep(this.set.clock, ms, ended.signal);
    ended.release();
    ended.signal.throwIfAborted();
  }

  /** Makes a call once, and a second time with a new token if the first was refused. */
  async #try(call: Call): Promise<unknown> {
    return this.withToken(call, (token) => this.#send(call, token));
  }

  /** Sends a call with its token, or the caller's. It ends with the call's signal and with the client, whatever it waits for. */
  async withToken<T>(call: Call, send: (token: string) => Promise<T>): Promise<T> {
    const ended = link(this.closing, call.signal);
    try {
      return await untilAborted(ended.signal, () => this.#authorized(call, send));
    } finally {
      ended.release();
    }
  }

  async #authorized<T>(call: Call, send: (token: string) => Promise<T>): Promise<T> {
    const source = call.token === undefined && !call.open ? this.set.token : undefined;
    const token = call.token ?? (await source?.current()) ?? '';
    try {
      return await send(token);
    } catch (error) {
      if (!source || !(error instanceof ApiError) || error.status !== 401) throw error;
      const other = await source.renew(token);
      if (other === token) throw error;
      return await send(other);
    }
  }

  async #send(call: Call, token: string): Promise<unknown> {
    const limit = (call.limitMs ?? this.set.timeoutMs) + (call.waitMs ?? 0);
    const late = new AbortController();
    const timer = this.set.clock.setTimeout(() => late.abort(), limit);
    try {
      return await this.request(call, token, late.signal, async (res) => parse(call, await res.text()));
    } catch (error) {
      if (late.signal.aborted && error instanceof UnansweredError) {
        throw new UnansweredError(operation(call), `no answer within ${limit} ms`, false);
      }
      throw error;
    } finally {
      timer.cancel();
    }
  }

  /** Makes one request and reads a 2xx answer with take. */
  async request<T>(call: Call, token: string, extra: AbortSignal, take: (res: Answer) => T | Promise<T>): Promise<T> {
    const endpoints = call.base ?? this.set.base;
    const base = endpoints.first();
    if (token) checkSecret(base, this.set.allowHttp);
    const query = call.query?.toString();
    const ended = call.lasting ? undefined : link(extra, this.closing, call.signal);
    const signal = ended?.signal ?? extra;
    try {
      signal.throwIfAborted();
      const url = base + call.path + (query ? '?' + query : '');
      const res = await this.set.fetch(url, {
        method: call.method,
        headers: this.#headers(call, token),
        body: call.body,
        signal,
        redirect: 'manual',
      });
      if (res.status < 200 || res.status > 299) throw refusal(operation(call), res, await res.text());
      return await take(res);
    } catch (error) {
      const known = error instanceof ApiError || error instanceof AnswerError;
      const failure = known ? error : this.#unanswered(call, signal, error);
      if (mayRetry(failure)) endpoints.failed(base);
      throw failure;
    } finally {
      ended?.release();
    }
  }

  #unanswered(call: Call, signal: AbortSignal, error: unknown): unknown {
    if (call.signal?.aborted) return call.signal.reason;
    if (this.closing.aborted) return this.closing.reason;
    const why = signal.aborted ? 'given up' : error instanceof Error ? error.message || String(error) : String(error);
    return new UnansweredError(operation(call), why, wasNotSent(error), error);
  }

  #headers(call: Call, token: string): Record<string, string> {
    const headers: Record<string, string> = { 'User-Agent': this.set.agent, Accept: 'application/json', ...call.headers };
    if (call.body !== undefined) headers['Content-Type'] = 'application/json';
    if (token) headers['Authorization'] = 'Bearer ' + token;
    return headers;
  }
}

function parse(call: Call, text: string): unknown {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new AnswerError(`lubdub: ${operation(call)}: the answer is not JSON`);
  }
  if (isObject(parsed)) return parsed;
  throw new AnswerError(`lubdub: ${operation(call)}: the answer is not a JSON object`);
}

function mayRepeat(call: Call, error: unknown): boolean {
  if (!mayRetry(error)) return false;
  if (!call.once) return true;
  return error instanceof UnansweredError ? error.notSent : error instanceof ApiError && error.status === 429;
}

/** Builds the error for an answer other than 2xx. */
function refusal(op: string, res: Answer, text: string): ApiError {
  let fields: Partial<ErrorFields> = {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (isObject(parsed) && typeof parsed['error'] === 'string') fields = parsed as Partial<ErrorFields>;
  } catch {
    // A proxy's page; its status is enough.
  }
  if (!fields.error && res.headers.get('location')) {
    fields.message = 'redirects are not followed, since that would send the token to another host; use the final address';
  }
  return new ApiError(op, res.status, fields, res.headers.get('x-request-id') ?? '', retryAfter(res.headers.get('retry-after')));
}

/** The longest Retry-After that is honoured, in seconds. */
const maxRetryAfter = 3600;

/** Parses Retry-After. Lubdub sends seconds; a proxy may send a date, which counts as not given. */
function retryAfter(header: string | null): number {
  return header !== null && /^\d+$/.test(header) ? Math.min(Number(header), maxRetryAfter) * 1000 : 0;
}

/** Escapes a part of a path. An empty id would name another path, so it is replaced by an invalid id, which the server refuses. */
export function seg(id: string): string {
  return id === '' || id === '.' || id === '..' ? '-' : encodeURIComponent(id);
}
