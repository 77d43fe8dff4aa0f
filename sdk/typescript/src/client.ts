import './dispose.js';
import { readFileSync } from 'node:fs';
import { AllCalls } from './allcalls.js';
import { Attempt, type Holder, type TrackOptions } from './attempt.js';
import { Caller } from './call.js';
import { type Clock, machineClock } from './clock.js';
import type { Context, Lease, Travel } from './context.js';
import { Endpoints } from './endpoints.js';
import { ClosedError, UsageError } from './errors.js';
import { OutputError, permanent } from './failure.js';
import { Hub } from './heart/hub.js';
import { guarded, type Logger, type Metrics, plain } from './metrics.js';
import { ChangingToken, FixedToken, tokenOfFile, type TokenSource } from './token.js';
import { checkProxy, type Connecting, type Fetch, nodeTransport, proxyOfEnvironment } from './transport.js';
import type { CompletedResponse, TaskEnvelope } from './types.js';
import { version } from './version.js';

export interface ClientOptions {
  /** The control token, as `lubdub token` prints it. Unless told, that of LUBDUB_TOKEN, or in the file LUBDUB_TOKEN_FILE. */
  token?: string;
  /** Reads the token from a file, and again when the server refuses it. */
  tokenFile?: string;
  /** Is asked for the token when it is needed for the first time, and again when the server refuses it. */
  tokenFunc?: () => string | Promise<string>;
  /** Further addresses of the same deployment. Whoever answered last is asked first; the next one when it does not. */
  urls?: readonly string[];
  /** The scope of every call; unless told, the token's. */
  tenantId?: string;
  workspaceId?: string;
  /** Names the program, before the SDK, in the header User-Agent. */
  userAgent?: string;
  /** Lets tokens go over http:// to hosts that are not this one. Whoever listens there can take them. */
  allowHttp?: boolean;
  /** How long a server may take to answer once, in ms; 10,000 unless told. What a claim waits comes on top. */
  timeoutMs?: number;
  /** How often a call is made at most; 4 unless told. */
  tries?: number;
  /** Authorities in PEM form instead of the usual ones, or the file that they are in. */
  ca?: string;
  caFile?: string;
  /** The proxy's URL; empty: none. Unless told, HTTPS_PROXY, HTTP_PROXY and NO_PROXY say. */
  proxy?: string;
  /** Carries the requests instead of the SDK's own transport. Beats then come from the program's own thread. */
  fetch?: Fetch;
  /** What becomes of tracked work while no server answers; patient unless told. */
  lease?: Lease;
  /**
   * Where beats come from: a thread of their own (unless told), so that a program which blocks its event loop is not taken for dead, or
   * inline, from the event loop.
   */
  beats?: 'thread' | 'inline';
  /** Is told of trouble; unless told, standard error, without debug lines. */
  logger?: Logger;
  metrics?: Metrics;
  /** Time itself; for tests. Beats then come from the program's own thread. */
  clock?: Clock;
}

/** Talks to one deployment. */
export class Client extends AllCalls implements Context {
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
   * A client of the deployment at url, or at several with commas between them; unless told, at LUBDUB_URL. Nothing is sent yet. Without
   * a token only such calls succeed as bring their own, such as those of tracked tasks.
   */
  constructor(url?: string, options: ClientOptions = {}) {
    const set = checked(url, options);
    const own = options.fetch ? undefined : nodeTransport(set.travel.connecting);
    const clock = options.clock ?? machineClock;
    const { agent, allowHttp, timeoutMs } = set.travel;
    const caller = new Caller({
      base: set.base,
      token: set.token,
      fetch: options.fetch ?? own!.fetch,
      clock,
      agent,
      allowHttp,
      timeoutMs,
      tries: options.tries ?? 4,
    });
    super(caller, { tenantId: options.tenantId, workspaceId: options.workspaceId });
    this.travel = set.travel;
    this.clock = clock;
    this.log = guarded(options.logger ?? plain);
    this.metrics = guarded(options.metrics ?? {});
    this.lease = options.lease ?? 'patient';
    this.hub = new Hub(this, options.beats === 'inline' || options.fetch !== undefined || options.clock !== undefined);
    this.#closeTransport = () => own?.close();
  }

  /**
   * Says that an attempt has started, and beats for it until it is completed or given up, also when its signal has ended. All that a client
   * tracks shares one request a tick, so make one client for the whole process. Wait for `started` before the work begins.
   */
  track(envelope: TaskEnvelope, options: TrackOptions = {}): Attempt {
    return this.trackFor(envelope, options);
  }

  /** @internal Where the callbacks of envelopes go: to their own address first, then to the client's. */
  endpointsFor(callback: string): Endpoints {
    let base = this.#bases.get(callback);
    if (base) return base;
    const { urls, allowHttp } = this.travel;
    try {
      base = new Endpoints(callback ? [callback, ...urls] : urls);
      base.checkSecrecy(allowHttp);
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
    if (this.#tracked.has(key)) throw new UsageError(`lubdub: attempt ${key} is tracked already; it has one handle, and one outcome`);
    const attempt = new Attempt(this, this.hub, envelope, options, () => this.#tracked.delete(key), holder);
    this.#tracked.set(key, attempt);
    this.hub.ready();
    return attempt;
  }

  /**
   * Tracks an attempt, does the work, and completes it with what the work returns or throws. Where the task was cancelled before it began,
   * the work does not begin. It rejects where the attempt could not be tracked or completed; what the work threw is not it.
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
   * Ends the beats of what is still tracked, and its signals with a ClosedError: the server will take the work for lost. Calls that are
   * under way are given up, and connections closed.
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
  if (token) base.checkSecrecy(allowHttp);
  if (!(timeoutMs > 0)) throw new UsageError(`lubdub: a timeout of ${timeoutMs} ms answers nothing; give a positive one`);
  if (!Number.isInteger(tries) || tries < 1) throw new UsageError(`lubdub: ${tries} tries make no call; 1 is the least`);
  if (options.lease && !['patient', 'strict'].includes(options.lease)) {
    throw new UsageError(`lubdub: there is no lease ${String(options.lease)}; it is patient or strict`);
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
    throw new UsageError('lubdub: token, tokenFile and tokenFunc are three ways to say one thing; give one of them');
  }
  if (options.tokenFunc) return new ChangingToken(options.tokenFunc);
  if (options.token !== undefined) return options.token ? new FixedToken(options.token) : undefined;
  if (options.tokenFile !== undefined) return tokenOfFile(options.tokenFile);
  if (process.env['LUBDUB_TOKEN']) return new FixedToken(process.env['LUBDUB_TOKEN']);
  return process.env['LUBDUB_TOKEN_FILE'] ? tokenOfFile(process.env['LUBDUB_TOKEN_FILE']) : undefined;
}
