import { hostname } from 'node:os';
import { Client } from '../client.js';
import { isGone, UnansweredError, UsageError } from '../errors.js';
import { textOf } from '../failure.js';
import type { CrewEars } from '../heart/hub.js';
import { guarded, type Logger } from '../metrics.js';
import type { TaskEnvelope } from '../types.js';
import { Changes, deadline } from './changes.js';
import { type Desk, keepClaiming, maxClaim } from './claims.js';
import { HeldOfflineError, UnfinishedError } from './ends.js';
import { type Identity, identify, registrationOf } from './identity.js';
import { Job } from './job.js';
import { type Settings, settingsOf, type WorkerOptions } from './options.js';
import { Sessions } from './session.js';
import { type Handler, type Middleware } from './task.js';

/** How long calls may take that a worker makes while it stops, in ms. */
const parting = 5000;

/** Claims tasks and does them. Handlers are added before it runs; it runs once. */
export class Worker {
  readonly #queue: string;
  readonly #set: Settings;
  readonly #client: Client;
  readonly #log: Logger;
  readonly #handlers = new Map<string, Handler>();
  #default: Handler | undefined;
  readonly #wraps: Middleware[] = [];
  readonly #stopping = new AbortController();
  readonly #hard = new AbortController();
  readonly #over = new AbortController(); // it has left
  readonly #changes = new Changes();
  readonly #sessions: Sessions;
  readonly #jobs = new Set<Job>();
  readonly #givenBack: Job[] = []; // before the hard stop
  readonly #counted = { completed: 0, failed: 0 };
  #crew = 0;
  #claiming = 0; // places that a claim under way may take
  #draining = false;
  #drainBy: Date | undefined;
  #softStopped = false;
  #leaving = false; // nothing is begun any more
  #fatal: Error | undefined;
  #held = false; // offline by an operator
  #waits = false; // for its machine, which is drained
  #identity: Identity | undefined;
  #probeUrl: string | undefined;
  #bySignal = false; // it stops at signals
  #stopSince: number | undefined; // by the monotonic clock
  #ran = false;
  #left = false;

  constructor(queue: string, options: WorkerOptions = {}) {
    this.#queue = queue;
    this.#set = settingsOf(queue, options);
    this.#client = options.client ?? new Client(undefined, { logger: options.logger });
    this.#log = options.logger ? guarded(options.logger) : this.#client.log;
    this.#sessions = new Sessions(this.#client, this.#log, this.#stopping.signal, {
      enter: (session, isDrained) => {
        this.#waits = isDrained;
        this.#count();
        this.#client.hub.enter(this.#crew, session);
      },
      hold: (error) => this.#hold(error),
    });
  }

  /** Says what does the tasks of a type. */
  handle<In = unknown, Out = unknown>(type: string, handler: Handler<In, Out>): this {
    if (!type)
      throw new UsageError('lubdub: a handler is for no type; name the type of its tasks, or use handleDefault for tasks without one');
    this.#checkHandler(`of "${type}"`, handler);
    if (this.#handlers.has(type)) throw new UsageError(`lubdub: there are two handlers for "${type}"; keep one`);
    this.#handlers.set(type, handler as Handler);
    return this;
  }

  /** Sets the default handler, which does the tasks that have no type. A worker without one does not claim them. */
  handleDefault<In = unknown, Out = unknown>(handler: Handler<In, Out>): this {
    this.#checkHandler('for tasks without a type', handler);
    if (this.#default) throw new UsageError('lubdub: there are two default handlers; keep one');
    this.#default = handler as Handler;
    return this;
  }

  #checkHandler(what: string, handler: unknown): void {
    if (typeof handler !== 'function') throw new UsageError(`lubdub: the handler ${what} is no function`);
    if (this.#ran) throw new UsageError(`lubdub: the handler ${what} comes too late; add it before run()`);
  }

  /** Wraps all handlers, the first outermost. */
  use(...middleware: Middleware[]): this {
    this.#wraps.push(...middleware);
    return this;
  }

  /** The id of the newest registration; empty before the first, and after the end. */
  get workerId(): string {
    return this.#left ? '' : (this.#sessions.current?.workerId ?? '');
  }

  /** Whether the worker has registered and has not left. */
  get isRegistered(): boolean {
    return this.workerId !== '';
  }

  /** How many tasks are being done. */
  get activeCount(): number {
    return this.#jobs.size;
  }

  /** Tells the worker to stop in good order; run is over when it has. `kill` makes it short. */
  close(): void {
    this.#stop(this.#client.clock.now());
  }

  #stop(since: number): void {
    if (this.#stopSince === undefined) {
      this.#stopSince = since;
      this.#client.hub.stop(this.#crew, since);
    }
    this.#stopping.abort(new Error('lubdub: the worker stops'));
    this.#changes.tell();
  }

  /** Tells the worker to stop now: what still runs is given back. */
  kill(): void {
    this.close();
    this.#hard.abort();
  }

  /** Runs until SIGTERM or SIGINT, and then stops in good order; a second signal makes that short. */
  async runUntilSignal(): Promise<void> {
    const acts = [() => this.close(), () => this.kill()];
    const hear = (signal: NodeJS.Signals) => {
      this.#log.info(`Received ${signal} signal`);
      acts.shift()?.();
    };
    this.#bySignal = true;
    process.on('SIGTERM', hear).on('SIGINT', hear);
    try {
      await this.run();
    } finally {
      process.off('SIGTERM', hear).off('SIGINT', hear);
    }
  }

  /**
   * Registers and does tasks until the signal ends, close is called, or the server has the worker drained; then it stops in good order: it
   * claims nothing more, beats on while handlers finish, tells them to stop at the soft stop, and deregisters at the hard stop, which gives
   * back what still runs, and what handlers have given up since the soft stop. It rejects with what is wrong with the worker, why the server refuses it, or, as an UnfinishedError, which tasks were
   * given back.
   */
  async run(options: { signal?: AbortSignal } = {}): Promise<void> {
    if (this.#ran) throw new UsageError('lubdub: the worker has run already; make another one');
    this.#ran = true;
    const stop = () => this.close();
    if (options.signal?.aborted) stop();
    options.signal?.addEventListener('abort', stop, { once: true });
    try {
      this.#check();
      await this.#run();
    } finally {
      this.#identity?.release();
      options.signal?.removeEventListener('abort', stop);
      if (!this.#set.client) this.#client.close();
    }
  }

  async #run(): Promise<void> {
    this.#identity = identify(this.#queue, this.#set, this.#client.travel.urls.join(' '));
    const ears: CrewEars = { hear: (news) => this.#hear(news) };
    this.#crew = this.#client.hub.join(ears, { hardStopMs: this.#set.hardStopMs, bySignal: this.#bySignal });
    try {
      await this.#listen();
      await this.#sessions.register(this.#registration());
    } catch (error) {
      await this.#client.hub.leave(this.#crew);
      if (this.#stopping.signal.aborted) return; // before it began
      throw error;
    }
    const claims = new AbortController();
    const claiming = keepClaiming(this.#desk(), claims.signal);
    await this.#changes.until(() => this.#stopping.signal.aborted || this.#draining || this.#fatal !== undefined);
    const endClaims = () => {
      claims.abort();
      this.#client.hub.unclaim(this.#crew);
    };
    await this.#finish(endClaims);
    endClaims();
    this.#stopping.abort(new Error('lubdub: the worker stops')); // whatever would begin now
    await claiming;
    await this.#sessions.settle();
    const unfinished = this.#held ? [] : this.#unfinished;
    this.#over.abort(new UnansweredError('POST completed', 'the worker has left', false));
    await this.#client.hub.leave(this.#crew);
    if (!this.#held) await this.#deregister();
    if (unfinished.length > 0) throw new UnfinishedError(unfinished, this.#fatal);
    if (this.#fatal) throw this.#fatal;
  }

  get #types(): string[] {
    return [...(this.#set.types ?? [...this.#handlers.keys()].sort())];
  }

  /** Says what is wrong before anything is sent. */
  #check(): void {
    if (this.#handlers.size === 0) {
      if (!this.#default) throw new UsageError('lubdub: there is no handler; call handle before run');
      throw new UsageError('lubdub: there is a default handler only, and workers register with a type at least; call handle as well');
    }
    for (const type of this.#types) {
      if (this.#handlers.has(type)) continue;
      throw new UsageError(`lubdub: tasks of type "${type}" would be claimed and have no handler; add it, or leave the type out`);
    }
  }

  #registration() {
    return registrationOf(this.#queue, this.#types, { ...this.#set, ...this.#identity }, this.#probeUrl);
  }

  /** Answers probes, where that is wanted. */
  async #listen(): Promise<void> {
    const { probe } = this.#set;
    if (!probe) return;
    const port = await this.#client.hub.probe(this.#crew, probe.host ?? '', probe.port);
    const host = !probe.host || ['0.0.0.0', '::'].includes(probe.host) ? hostname() : probe.host;
    this.#probeUrl = probe.url ?? `http://${host.includes(':') ? `[${host}]` : host}:${port}/`;
  }

  #hear(news: Parameters<CrewEars['hear']>[0]): void {
    if (news.is === 'stopping') return this.#stop(news.at); // the event loop was blocked when the signal came
    const { current } = this.#sessions;
    if (current?.workerId !== news.workerId) return;
    if (news.is === 'gone' && news.forced) return this.#hold(new HeldOfflineError(`lubdub worker resume ${news.workerId}`));
    if (news.is === 'gone') return void this.#comeBack(news.workerId, news.why);
    Object.assign(current, news.session);
    if (this.#waits) {
      this.#waits = news.shouldDrain;
      return this.#changes.tell();
    }
    if (!news.shouldDrain) return;
    this.#drainBy = news.drainDeadline ? new Date(news.drainDeadline) : undefined;
    this.#drain();
  }

  /** Ends the worker, since an operator holds it offline. Nothing more is sent. */
  #hold(error: HeldOfflineError): void {
    if (this.#held) return;
    this.#held = this.#leaving = true;
    this.#fatal = error;
    this.#log.error(error.message);
    for (const job of this.#jobs) job.lose('FORCED_OFFLINE');
    this.#changes.tell();
  }

  #comeBack(workerId: string, why: string): Promise<boolean> {
    return this.#sessions.comeBack(workerId, why, () => this.#registration());
  }

  #drain(): void {
    if (this.#draining) return;
    this.#draining = true;
    if (!this.#stopping.signal.aborted) {
      this.#log.info('Draining: the server asks for it', { workerId: this.workerId, active: this.#jobs.size, deadline: this.#drainBy });
    }
    this.#changes.tell();
  }

  #desk(): Desk {
    return {
      clock: this.#client.clock,
      queue: this.#queue,
      types: this.#default ? undefined : this.#types,
      stopping: this.#stopping.signal,
      session: () => this.#sessions.current,
      reserve: () => this.#reserve(),
      claim: (order) => this.#client.hub.claim(this.#crew, order),
      accept: (tasks) => this.#accept(tasks),
      comeBack: (workerId, why) => this.#comeBack(workerId, why),
      hold: (workerId) => void this.#hold(new HeldOfflineError(`lubdub worker resume ${workerId}`)),
      drain: () => this.#drain(),
      give: (error) => {
        this.#fatal ??= error;
        this.#changes.tell();
      },
    };
  }

  async #reserve(): Promise<number> {
    const places = () => Math.min(this.#set.concurrency - this.#jobs.size, maxClaim);
    const over = () => this.#draining || this.#fatal !== undefined || this.#stopping.signal.aborted;
    await this.#changes.until(() => over() || (!this.#waits && places() > 0));
    if (over()) return 0;
    return (this.#claiming = places());
  }

  #accept(envelopes: TaskEnvelope[]): void {
    this.#claiming = 0;
    for (const envelope of this.#leaving ? [] : envelopes) {
      // what comes too late the server takes back as the worker leaves
      const job = new Job(this.#shop(envelope), envelope);
      this.#jobs.add(job);
      if (this.#softStopped) job.stop();
      const over = () => {
        this.#jobs.delete(job);
        if (job.isUnfinished) this.#givenBack.push(job);
        this.#count();
      };
      job.run().then(over, (error: unknown) => {
        this.#log.error('A task ended otherwise than tasks do', { taskId: envelope.taskId, error: textOf(error) });
        over();
      });
    }
    this.#count();
  }

  #shop({ runTimeoutMs }: TaskEnvelope & { runTimeoutMs?: number | null }) {
    const taskTimeoutMs = this.#set.taskTimeoutMs ?? (runTimeoutMs ? 0 : 300_000); // which the server enforces
    const session = () => this.#sessions.current;
    return {
      client: this.#client,
      log: this.#log,
      lease: this.#set.lease,
      limits: { taskTimeoutMs, watchdogMs: this.#set.watchdogMs },
      holder: {
        crew: this.#crew,
        workerId: () => session()?.workerId ?? '',
        token: () => session()?.token ?? '',
        timeoutMs: () => session()?.timeoutMs ?? 60_000,
        over: this.#over.signal,
      },
      handlerOf: (type: string) => {
        const handler = type ? this.#handlers.get(type) : this.#default;
        return handler && this.#wraps.reduceRight((next, wrap) => wrap(next), handler);
      },
      drainBy: () => this.#drainBy,
      ended: (finalState: string) => {
        if (finalState === 'SUCCEEDED') this.#counted.completed++;
        else if (finalState === 'FAILED') this.#counted.failed++;
        this.#count();
      },
    };
  }

  /** Tells whoever beats what there is to count, and whoever waits that something has changed. */
  #count(): void {
    this.#client.hub.work(this.#crew, { active: this.#jobs.size, ...this.#counted });
    this.#client.metrics.running?.(this.#jobs.size);
    this.#changes.tell();
  }

  /** Waits for what is at work, as long as there is time, and gives back what is left. Beats go on. */
  async #finish(endClaims: () => void): Promise<void> {
    const idle = () => this.#jobs.size === 0 && this.#claiming === 0;
    const told = () => this.#stopping.signal.aborted || this.#fatal !== undefined;
    // Where the server has asked for the drain it says itself when it takes back what is held.
    await this.#changes.until(() => idle() || told(), this.#stopping.signal);
    if (!told()) return;
    const { clock } = this.#client;
    const since = this.#stopSince ?? clock.now();
    const soft = deadline(clock, since + this.#set.softStopMs - clock.now());
    const hard = deadline(clock, since + this.#set.hardStopMs - clock.now());
    const announced = this.#announce(endClaims);
    try {
      if (await this.#changes.until(idle, soft.signal, this.#hard.signal)) return;
      if (!this.#hard.signal.aborted) {
        this.#log.info('Handlers are told to stop: the soft stop has come', { active: this.#jobs.size });
        this.#softStopped = true;
        for (const job of this.#jobs) job.stop();
        if (await this.#changes.until(idle, hard.signal, this.#hard.signal)) return;
      }
      endClaims();
      await this.#giveBack();
    } finally {
      soft.cancel();
      hard.cancel();
      await announced;
    }
  }

  /** Tells the server that the worker drains, which answers the claim that waits; after a second that one is dropped. */
  async #announce(endClaims: () => void): Promise<void> {
    const { clock } = this.#client;
    const { current } = this.#sessions;
    const known = this.#draining;
    this.#draining = true;
    this.#changes.tell();
    if (!known && current && !this.#held) {
      const { workerId, token } = current;
      this.#log.info('Draining: the worker stops', { workerId, active: this.#jobs.size });
      await this.#part((signal) => this.#client.drainWorker(workerId, { reason: 'it stops' }, { token, signal }), 'drain');
    }
    const second = deadline(clock, 1000);
    await this.#changes.until(() => this.#claiming === 0, second.signal, this.#hard.signal);
    second.cancel();
    endClaims();
  }

  /** Gives back what still runs. */
  async #giveBack(): Promise<void> {
    this.#leaving = true;
    const left = [...this.#jobs];
    this.#log.warn('What still runs is given back: the hard stop has come', { taskIds: left.map((job) => job.envelope.taskId) });
    await Promise.all(left.map((job) => job.end()));
  }

  /** The ids of tasks that the server is to hand to others. */
  get #unfinished(): string[] {
    return [...this.#jobs, ...this.#givenBack].filter((job) => job.isUnfinished).map((job) => job.envelope.taskId);
  }

  /** Leaves, as far as anybody listens. */
  async #deregister(): Promise<void> {
    const { current } = this.#sessions;
    if (!current) return;
    const { workerId, token } = current;
    this.#log.info(`Deregistering worker ID: ${workerId}`, { workerId });
    await this.#part((signal) => this.#client.deregisterWorker(workerId, { reason: 'it stops' }, { token, signal }), 'deregister');
    this.#left = true;
  }

  async #part(call: (signal: AbortSignal) => Promise<unknown>, what: string): Promise<void> {
    const late = deadline(this.#client.clock, parting, new Error(`no answer within ${parting} ms`));
    try {
      await call(late.signal);
    } catch (error) {
      if (!isGone(error)) this.#log.warn(`The worker could not ${what}; the server will find it silent`, { error: textOf(error) });
    } finally {
      late.cancel();
    }
  }
}
