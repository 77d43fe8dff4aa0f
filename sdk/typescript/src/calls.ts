import type { Call, Caller } from './call.js';
import { queryOf } from './query.js';

/** The options of every call. */
export interface CallOptions {
  /** Ends the call, with its retries and waits: it rejects with the signal's reason. The server may have applied it. */
  signal?: AbortSignal;
  /** Used instead of the client's own token. */
  token?: string;
}

/** The scope of calls; by default the token's own. */
export interface CallScope {
  tenantId?: string;
  workspaceId?: string;
}

/** The base of all control calls. */
export abstract class ControlCalls {
  /** @internal */
  readonly caller: Caller;
  readonly #scope: CallScope;

  /** @internal */
  protected constructor(caller: Caller, scope: CallScope) {
    this.caller = caller;
    this.#scope = scope;
  }

  /** @internal */
  protected scoped(query: object): URLSearchParams {
    return queryOf({ ...query, ...this.#scope });
  }

  /** @internal */
  protected get<T>(path: string, query: object | undefined, options: CallOptions | undefined): Promise<T> {
    return this.send({ method: 'GET', path, query: this.scoped(query ?? {}) }, undefined, options);
  }

  /** @internal */
  protected send<T>(call: Call, body: object | undefined, options: CallOptions | undefined): Promise<T> {
    const whole: Call = { ...call, signal: options?.signal };
    if (body !== undefined) whole.body = JSON.stringify(body);
    if (options?.token !== undefined) whole.token = options.token;
    if (whole.token === undefined && !whole.open) whole.query ??= this.scoped({});
    return this.caller.do(whole) as Promise<T>;
  }
}
