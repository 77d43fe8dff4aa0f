import './dispose.js';
import { readFileSync } from 'node:fs';
import { Attempt, type Holder, type TrackOptions } from './attempt.js';
import { Caller } from './call.js';
import { type Clock, machineClock } from './clock.js';
import type { Context, Lease, Travel } from './context.js';
import { Endpoints } from './endpoints.js';
import { ClosedError, UsageError } from './errors.js';
import { OutputError, permanent } from './failure.js';
import { Hub } from './beats/hub.js';
import { guarded, type Logger, type Metrics, plain } from './metrics.js';
import { ChangingToken, FixedToken, tokenOfFile, type TokenSource } from './token.js';
import { traceparentOf } from './traceparent.js';
import { checkProxy, type Connecting, type Fetch, nodeTransport, proxyOfEnvironment } from './transport.js';
import type { CompletedResponse, TaskEnvelope } from './types.js';
import { WorkCalls } from './workcalls.js';
import { version } from './version.js';

export interface ClientOptions {
  /** The control token, as `lubdub token` prints it. By default LUBDUB_TOKEN, or the file LUBDUB_TOKEN_FILE. */
  token?: string;
  /** Reads the token from a file, and again when the server refuses it. */
  tokenFile?: string;
  /** Called for the token when it is first needed, and again when the server refuses it. */
  tokenFunc?: () => string | Promise<string>;
  /** Further addresses of the same deployment. The one that answered last is tried first; the next one if it does not answer. */
  urls?: readonly string[];
  /** The scope of every call; by default the token's. */
  tenantId?: string;
  workspaceId?: string;
  /** The name of the program in the User-Agent header, before the SDK's. */
  userAgent?: string;
  /** Sends tokens over http:// to other hosts. Anyone on the network path can read them. */
  allowHttp?: boolean;
  /** How long a server may take to answer, in ms; by default 10,000. The wait of a claim is added. */
  timeoutMs?: number;
  /** The maximum number of tries of a call; by default 4. */
  tries?: number;
  /** Certificate authorities in PEM form instead of the default ones, or the file that contains them. */
  ca?: string;
  caFile?: string;
  /** The proxy's URL; empty: none. By default HTTPS_PROXY, HTTP_PROXY and NO_PROXY. */
  proxy?: string;
  /** Sends requests instead of the SDK's own transport. Heartbeats are then sent from the program's main thread. */
  fetch?: Fetch;
  /** What happens to tracked work while no server answers; by default patient. */
  lease?: Lease;
  /**
   * Where heartbeats are sent from: a separate thread (the default), so that a program that blocks its event loop is not declared dead, or
   * inline, from the event loop.
   */
  beats?: 'thread' | 'inline';
  /** Receives log messages; by default they go to standard error, without debug lines. */
  logger?: Logger;
  metrics?: Metrics;
  /**
   * Called when tasks are created without a trace context: returns the W3C traceparent that they get, if it is valid, such as
   * activeTraceparent of lubdub/opentelemetry.
   */
  traceparent?: () => string | undefined;
  /** The clock; for tests. Heartbeats are then sent from the program's main thread. */
  clock?: Clock;
}

/** A client of one deployment. */
export class Client extends WorkCalls implements Context {
  /** @internal */
  readonly travel: Travel;
  /** @internal */
  readonly clock: Clock;
  /** @internal */
  readonly log: Logger;
  /** @internal */
  readonly metrics: Metrics;
  /** @internal */
  readonly lease: Lease;
  /** @internal */
  readonly hub: Hub;
  readonly #tracked = new Map<string, Attempt>();
  readonly #bases = new Map<string, Endpoints>(); // by callbackBaseUrl, of which a deployment has one
  readonly #closeTransport: () => void;

  /**
   * A client of the deployment at url, or at several addresses separated by commas; by default LUBDUB_URL. Nothing is sent yet. Without a
   * token only calls that have their own succeed, such as those of tracked tasks.
   */
  constructor(url?: string, options: ClientOptions = {}) {
    const set = checked(url, options);
    const own = options.fetch ? undefined : nodeTransport(set.travel.connecting);
    const clock = options.clock ?? machineClock;
    const { agent, allowHttp, timeoutMs } = set.travel;
    const log = guarded(options.logger ?? plain);
    const caller = new Caller({
      base: set.base,
      token: set.token,
      fetch: options.fetch ?? own!.fetch,
      clock,
      agent,
      allowHttp,
      timeoutMs,
      tries: options.tries ?? 4,
      traceparent: options.traceparent && traceparentOf(options.traceparent, log),
    });
    super(caller, { tenantId: options.tenantId, workspaceId: options.workspaceId });
    this.travel = set.travel;
    this.clock = clock;
    this.log = log;
    this.metrics = guarded(options.metrics ?? {});
    this.lease = options.lease ?? 'patient';
    this.hub = new Hub(this, options.beats === 'inline' || options.fetch !== undefined || options.clock !== undefined);
    this.#closeTransport = () => own?.close();
  }

  /**
   * Reports the start of an attempt, and sends heartbeats until it is completed or abandoned, even after its signal has ended. All attempts
   * of a client share one request per tick, so create one client for the whole process. Wait for `started` before the work begins.
   */
  track(envelope: TaskEnvelope, options: TrackOptions = {}): Attempt {
    return this.trackFor(envelope, options);
  }

  /** @internal The endpoints for an envelope's callbacks: its own address first, then the client's. */
  endpointsFor(callback: string): Endpoints {
    let base = this.#bases.get(callback);
    if (base) return base;
    const { urls, allowHttp } = this.travel;
    try {
      base = new Endpoints(callback ? [callback, ...urls] : urls);
      base.checkPlainHttp(allowHttp);
    } catch (cause) {
      throw new UsageError(`lubdub: the envelope's callbackBaseUrl: ${(cause as Error).message}`, { cause });
    }
    this.#bases.set(callback, base);
    return base;
  }

  /** @internal */
  trackFor(envelope: TaskEnvelope, options: TrackOptions, holder?: Holder): Attempt {
    if (this.caller.closing.aborted) throw new ClosedError();
    const key = `${envelope?.taskId}/${envelope?.attempt}`;
    if (this.#tracked.has(key))
      throw new UsageError(`lubdub: attempt ${key} is already tracked; an attempt has one handle and one outcome`);
    const attempt = new Attempt(this, this.hub, envelope, options, () => this.#tracked.delete(key), holder);
    this.#tracked.set(key, attempt);
    this.hub.ready();
    return attempt;
  }

  /**
   * Tracks an attempt, does the work, and completes it with the result or the error. If the task was cancelled before it began, the work
   * does not begin. It rejects if the attempt could not be tracked or completed, but not with the error of the work.
   */
  async run(
    envelope: TaskEnvelope,
    work: (attempt: Attempt, signal: AbortSignal) => unknown,
    options: TrackOptions = {},
  ): Promise<CompletedResponse> {
    const attempt = this.track(envelope, options);
    await attempt.started;
    if (attempt.wasCancelled) return attempt.stopped();
    let output: unknown;
    try {
      output = await work(attempt, attempt.signal);
    } catch (error) {
      return attempt.fail(error);
    }
    try {
      return await attempt.done(output);
    } catch (error) {
      if (error instanceof OutputError) return attempt.fail(permanent(error));
      throw error;
    }
  }

  /**
   * Stops the heartbeats of attempts that are still tracked, and ends their signals with a ClosedError: the server will declare them lost.
   * Calls in flight are cancelled, and connections closed.
   */
  close(): void {
    for (const attempt of this.#tracked.values()) attempt.shut();
    this.hub.close();
    this.caller.close();
    this.#closeTransport();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
    return Promise.resolve();
  }
}

function checked(url: string | undefined, options: ClientOptions): { base: Endpoints; token: TokenSource; travel: Travel } {
  const urls = [...(url || process.env['LUBDUB_URL'] || '').split(','), ...(options.urls ?? [])].filter((u) => u.trim() !== '');
  if (urls.length === 0) throw new UsageError('lubdub: no address: give new Client the URL of a Lubdub server, or set LUBDUB_URL');
  const base = new Endpoints(urls);
  const token = tokenOf(options);
  const { allowHttp = false, timeoutMs = 10_000, tries = 4 } = options;
  if (token) base.checkPlainHttp(allowHttp);
  if (!(timeoutMs > 0)) throw new UsageError(`lubdub: a timeout of ${timeoutMs} ms is too short; give a positive one`);
  if (!Number.isInteger(tries) || tries < 1) throw new UsageError(`lubdub: ${tries} tries are too few; 1 is the least`);
  if (options.lease && !['patient', 'strict'].includes(options.lease)) {
    throw new UsageError(`lubdub: unknown lease ${String(options.lease)}; use patient or strict`);
  }
  const connecting: Connecting = {
    ca: options.ca ?? (options.caFile === undefined ? undefined : readFileSync(options.caFile, 'utf8')),
    proxy: checkProxy(options.proxy ?? proxyOfEnvironment(base.first(), process.env)),
  };
  const agent = (options.userAgent ? options.userAgent + ' ' : '') + 'lubdub-typescript/' + version;
  return { base, token: token ?? new FixedToken(''), travel: { urls: base.urls, agent, allowHttp, timeoutMs, connecting } };
}

function tokenOf(options: ClientOptions): TokenSource | undefined {
  if ([options.token, options.tokenFile, options.tokenFunc].filter((t) => t !== undefined).length > 1) {
    throw new UsageError('lubdub: give only one of token, tokenFile and tokenFunc');
  }
  if (options.tokenFunc) return new ChangingToken(options.tokenFunc);
  if (options.token !== undefined) return options.token ? new FixedToken(options.token) : undefined;
  if (options.tokenFile !== undefined) return tokenOfFile(options.tokenFile);
  if (process.env['LUBDUB_TOKEN']) return new FixedToken(process.env['LUBDUB_TOKEN']);
  return process.env['LUBDUB_TOKEN_FILE'] ? tokenOfFile(process.env['LUBDUB_TOKEN_FILE']) : undefined;
}
