import { hostname } from 'node:os';
import { Client } from '../client.js';
import { isGone, UnansweredError, UsageError } from '../errors.js';
import { Exchange } from '../exchange.js';
import { Failure, textOf } from '../failure.js';
import type { WorkerListener } from '../beats/hub.js';
import { guarded, type Logger } from '../metrics.js';
import type { TaskEnvelope } from '../types.js';
import { Changes, deadline } from './changes.js';
import { Children } from './children.js';
import { type ClaimingWorker, keepClaiming, maxClaim } from './claims.js';
import { ForcedOfflineError, UnfinishedError } from './ends.js';
import { type Identity, identify, registrationOf } from './identity.js';
import { Job } from './job.js';
import { type Settings, settingsOf, type WorkerOptions } from './options.js';
import { Sessions } from './session.js';
import { type Handler, type Middleware } from './task.js';

/** The limit of a stopping worker's calls, in ms. */
const lastCallLimit = 5000;

/** Claims tasks and runs them. Handlers are added before it runs; it runs once. */
export class Worker {
  readonly #queue: string;
  readonly #set: Settings;
  readonly #client: Client;
  readonly #log: Logger;
  readonly #handlers = new Map<string, Handler>();
  #default: Handler | undefined;
  readonly #wraps: Middleware[] = [];
  readonly #children: Children;
  readonly #stopping = new AbortController();
  readonly #hard = new AbortController();
  readonly #over = new AbortController(); // it has deregistered
  readonly #changes = new Changes();
  readonly #sessions: Sessions;
  readonly #exchange: Exchange;
  readonly #jobs = new Set<Job>();
  readonly #givenBack: Job[] = []; // before the hard stop
  readonly #counted = { completed: 0, failed: 0 };
  #workerNumber = 0;
  #claiming = 0; // places that the claim in flight may use
  #draining = false;
  #drainBy: Date | undefined;
  #softStopped = false;
  #leaving = false; // no more tasks are started
  #fatal: Error | undefined;
  #held = false; // taken offline by an operator
  #waits = false; // its machine is drained
  #identity: Identity | undefined;
  #probeUrl: string | undefined;
  #bySignal = false; // it stops on signals
  #stopSince: number | undefined; // by the monotonic clock
  #ran = false;
  #left = false;

  constructor(queue: string, options: WorkerOptions = {}) {
    this.#queue = queue;
    this.#set = settingsOf(queue, options);
    this.#client = options.client ?? new Client(undefined, { logger: options.logger });
    this.#log = options.logger ? guarded(options.logger) : this.#client.log;
    this.#children = new Children(this.#client, this.#log);
    this.#sessions = new Sessions(this.#client, this.#log, this.#stopping.signal, {
      enter: (session, isDrained) => {
        this.#waits = isDrained;
        this.#count();
        this.#client.hub.enter(this.#workerNumber, session);
      },
      hold: (error) => this.#hold(error),
    });
    const worker = () => (this.#sessions.current?.exchange ? this.#sessions.current : undefined);
    this.#exchange = new Exchange(this.#client.caller, worker, this.#over.signal);
  }

  /**
   * Sets the handler of a task type: a function, or the URL of a module whose default export is the handler, which is then isolated. Each
   * attempt of an isolated handler runs in a child process, and at most one in each at a time, so that a handler that blocks its event loop
   * delays nothing else. A child that continues after its signal has ended is killed at the end of the task's cancel grace period, less up
   * to 5 s, at the hard stop, or at once if the attempt is over. One that dies fails its attempt. `drainDeadline` is as it was at the start
   * of the attempt. `run` rejects if a module cannot be loaded, and with `lease: 'strict'`.
   */
  handle<In = unknown, Out = unknown>(type: string, handler: Handler<In, Out> | URL): this {
    if (!type)
      throw new UsageError('lubdub: a handler has no type; name the type of its tasks, or use handleDefault for tasks without one');
    const found = this.#checkHandler(`of "${type}"`, handler);
    if (this.#handlers.has(type)) throw new UsageError(`lubdub: there are two handlers for "${type}"; keep one`);
    this.#handlers.set(type, found);
    return this;
  }

  /** Sets the default handler, which runs the tasks that have no type. A worker without one does not claim them. */
  handleDefault<In = unknown, Out = unknown>(handler: Handler<In, Out> | URL): this {
    const found = this.#checkHandler('for tasks without a type', handler);
    if (this.#default) throw new UsageError('lubdub: there are two default handlers; keep one');
    this.#default = found;
    return this;
  }

  #checkHandler(what: string, handler: unknown): Handler {
    if (this.#ran) throw new UsageError(`lubdub: the handler ${what} was added after the worker started; add it before run()`);
    if (handler instanceof URL) return this.#children.handler(handler);
    if (typeof handler !== 'function') throw new UsageError(`lubdub: the handler ${what} is neither a function nor the URL of a module`);
    return handler as Handler;
  }

  /** @internal The handler of a type, in its middleware; throws if it has no handler. */
  handlerOf(type: string): Handler {
    const handler = type ? this.#handlers.get(type) : this.#default;
    if (handler) return this.#wraps.reduceRight((next, wrap) => wrap(next), handler);
    if (type) throw new Failure(`this worker has no handler for tasks of type "${type}"`, { category: 'CONFIGURATION' });
    throw new Failure(
      'the task has no type, and this worker has no default handler; add one with handleDefault(), or create tasks with a type',
      { category: 'CONFIGURATION', retryable: false },
    );
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

  /** Whether the worker has registered and not deregistered. */
  get isRegistered(): boolean {
    return this.workerId !== '';
  }

  /** How many tasks are running. */
  get activeCount(): number {
    return this.#jobs.size;
  }

  /** Stops gracefully; run resolves when that is done. `kill` shortens it. */
  close(): void {
    this.#stop(this.#client.clock.now());
  }

  #stop(since: number): void {
    if (this.#stopSince === undefined) {
      this.#stopSince = since;
      this.#client.hub.stop(this.#workerNumber, since);
    }
    this.#stopping.abort(new Error('lubdub: the worker stops'));
    this.#changes.notify();
  }

  /** Stops now: tasks that still run are returned to the queue. */
  kill(): void {
    this.close();
    this.#hard.abort();
  }

  /** Runs until SIGTERM or SIGINT, then stops gracefully; a second signal shortens that. */
  async runUntilSignal(): Promise<void> {
    const acts = [() => this.close(), () => this.kill()];
    const onSignal = (signal: NodeJS.Signals) => {
      this.#log.info(`Received ${signal} signal`);
      acts.shift()?.();
    };
    this.#bySignal = true;
    process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
    try {
      await this.run();
    } finally {
      process.off('SIGTERM', onSignal).off('SIGINT', onSignal);
    }
  }

  /**
   * Registers and runs tasks until the signal ends, close is called, or the server drains the worker. Then it stops gracefully: it claims
   * nothing more, sends heartbeats while handlers finish, stops them at the soft stop, and deregisters at the hard stop. That returns tasks
   * that still run, and tasks that handlers have stopped since the soft stop, to the queue. It rejects with what is wrong with the worker,
   * why the server refuses it, or, as an UnfinishedError, with the returned tasks.
   */
  async run(options: { signal?: AbortSignal } = {}): Promise<void> {
    if (this.#ran) throw new UsageError('lubdub: the worker has already run; create a new one');
    this.#ran = true;
    const stop = () => this.close();
    if (options.signal?.aborted) stop();
    options.signal?.addEventListener('abort', stop, { once: true });
    try {
      this.#check();
      await this.#run();
    } finally {
      this.#children.close();
      this.#identity?.release();
      options.signal?.removeEventListener('abort', stop);
      if (!this.#set.client) this.#client.close();
    }
  }

  async #run(): Promise<void> {
    this.#identity = identify(this.#queue, this.#set, this.#client.travel.urls.join(' '));
    const listener: WorkerListener = { receive: (notice) => this.#receive(notice) };
    this.#workerNumber = this.#client.hub.join(listener, { hardStopMs: this.#set.hardStopMs, bySignal: this.#bySignal });
    try {
      await this.#children.load(this.#stopping.signal);
      await this.#listen();
      await this.#sessions.register(this.#registration());
    } catch (error) {
      await this.#client.hub.leave(this.#workerNumber);
      if (this.#stopping.signal.aborted) return; // before it registered
      throw error;
    }
    const claims = new AbortController();
    const claiming = keepClaiming(this.#claimingWorker(), claims.signal);
    await this.#changes.until(() => this.#stopping.signal.aborted || this.#draining || this.#fatal !== undefined);
    const endClaims = () => {
      claims.abort();
      this.#client.hub.unclaim(this.#workerNumber);
    };
    await this.#finish(endClaims);
    endClaims();
    this.#stopping.abort(new Error('lubdub: the worker stops')); // prevents anything new from starting
    await claiming;
    await this.#sessions.settle();
    const unfinished = this.#held ? [] : this.#unfinished;
    this.#over.abort(new UnansweredError('POST completed', 'the worker has deregistered', false));
    for (const job of this.#jobs) job.giveBack();
    this.#children.close(); // before other workers get the tasks
    await this.#client.hub.leave(this.#workerNumber);
    if (!this.#held) await this.#deregister();
    if (unfinished.length > 0) throw new UnfinishedError(unfinished, this.#fatal);
    if (this.#fatal) throw this.#fatal;
  }

  get #types(): string[] {
    return [...(this.#set.types ?? [...this.#handlers.keys()].sort())];
  }

  /** Throws what is wrong before anything is sent. */
  #check(): void {
    if (this.#handlers.size === 0) {
      if (!this.#default) throw new UsageError('lubdub: no handler; call handle before run');
      throw new UsageError('lubdub: there is only a default handler, but a worker needs at least one type; call handle as well');
    }
    if (this.#isStrict && this.#children.areUsed) {
      throw new UsageError("lubdub: isolated handlers cannot keep a strict lease; use lease: 'patient', or handlers that are functions");
    }
    for (const type of this.#types) {
      if (this.#handlers.has(type)) continue;
      throw new UsageError(`lubdub: tasks of type "${type}" would be claimed but have no handler; add one, or remove the type`);
    }
  }

  get #isStrict(): boolean {
    return (this.#set.lease ?? this.#client.lease) === 'strict';
  }

  #registration() {
    return registrationOf(this.#queue, this.#types, { ...this.#set, ...this.#identity }, this.#probeUrl);
  }

  /** Answers probes if that is configured. */
  async #listen(): Promise<void> {
    const { probe } = this.#set;
    if (!probe) return;
    const port = await this.#client.hub.probe(this.#workerNumber, probe.host ?? '', probe.port);
    const host = !probe.host || ['0.0.0.0', '::'].includes(probe.host) ? hostname() : probe.host;
    this.#probeUrl = probe.url ?? `http://${host.includes(':') ? `[${host}]` : host}:${port}/`;
  }

  #receive(notice: Parameters<WorkerListener['receive']>[0]): void {
    if (notice.is === 'stopping') return this.#stop(notice.at); // the event loop was blocked when the signal arrived
    const { current } = this.#sessions;
    if (current?.workerId !== notice.workerId) return;
    if (notice.is === 'gone' && notice.forced) return this.#hold(new ForcedOfflineError(`lubdub worker resume ${notice.workerId}`));
    if (notice.is === 'gone') return void this.#registerAgain(notice.workerId, notice.why);
    Object.assign(current, notice.session);
    if (this.#waits) {
      this.#waits = notice.shouldDrain;
      return this.#changes.notify();
    }
    if (!notice.shouldDrain) return;
    this.#drainBy = notice.drainDeadline ? new Date(notice.drainDeadline) : undefined;
    this.#drain();
  }

  /** Ends the worker, since an operator holds it offline. Nothing more is sent. */
  #hold(error: ForcedOfflineError): void {
    if (this.#held) return;
    this.#held = this.#leaving = true;
    this.#fatal = error;
    this.#log.error(error.message);
    for (const job of this.#jobs) job.lose('FORCED_OFFLINE');
    this.#changes.notify();
  }

  #registerAgain(workerId: string, why: string): Promise<boolean> {
    return this.#sessions.registerAgain(workerId, why, () => this.#registration());
  }

  #drain(): void {
    if (this.#draining) return;
    this.#draining = true;
    if (!this.#stopping.signal.aborted) {
      this.#log.info('Draining: requested by the server', { workerId: this.workerId, active: this.#jobs.size, deadline: this.#drainBy });
    }
    this.#changes.notify();
  }

  #claimingWorker(): ClaimingWorker {
    return {
      clock: this.#client.clock,
      queue: this.#queue,
      types: this.#default ? undefined : this.#types,
      starts: !this.#isStrict, // a strict lease begins when the start is sent
      stopping: this.#stopping.signal,
      session: () => this.#sessions.current,
      reserve: () => this.#reserve(),
      claim: (command) => this.#client.hub.claim(this.#workerNumber, command),
      accept: (tasks) => this.#accept(tasks),
      registerAgain: (workerId, why) => this.#registerAgain(workerId, why),
      hold: (workerId) => void this.#hold(new ForcedOfflineError(`lubdub worker resume ${workerId}`)),
      drain: () => this.#drain(),
      give: (error) => {
        this.#fatal ??= error;
        this.#changes.notify();
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
      // a task that comes too late is returned to the queue by the deregistration
      const job = new Job(this.#jobWorker(envelope), envelope);
      this.#jobs.add(job);
      if (this.#softStopped) job.stop();
      const over = () => {
        this.#jobs.delete(job);
        if (job.isUnfinished) this.#givenBack.push(job);
        this.#count();
      };
      job.run().then(over, (error: unknown) => {
        this.#log.error('A task ended unexpectedly', { taskId: envelope.taskId, error: textOf(error) });
        over();
      });
    }
    this.#count();
  }

  #jobWorker({ runTimeoutMs }: TaskEnvelope & { runTimeoutMs?: number | null }) {
    const taskTimeoutMs = this.#set.taskTimeoutMs ?? (runTimeoutMs ? 0 : 300_000); // which the server enforces
    const session = () => this.#sessions.current;
    return {
      client: this.#client,
      log: this.#log,
      lease: this.#set.lease,
      limits: { taskTimeoutMs, watchdogMs: this.#set.watchdogMs },
      holder: {
        workerNumber: this.#workerNumber,
        workerId: () => session()?.workerId ?? '',
        token: () => session()?.token ?? '',
        timeoutMs: () => session()?.timeoutMs ?? 60_000,
        over: this.#over.signal,
        exchange: this.#exchange,
      },
      handlerOf: (type: string) => this.handlerOf(type),
      handles: (type: string) => this.#handlers.has(type),
      drainBy: () => this.#drainBy,
      ended: (finalState: string) => {
        if (finalState === 'SUCCEEDED') this.#counted.completed++;
        else if (finalState === 'FAILED') this.#counted.failed++;
        this.#count();
      },
    };
  }

  /** Updates the counts for the heartbeats, and wakes waiters. */
  #count(): void {
    this.#client.hub.work(this.#workerNumber, { active: this.#jobs.size, ...this.#counted });
    this.#client.metrics.running?.(this.#jobs.size);
    this.#changes.notify();
  }

  /** Waits for running tasks as long as the stops allow, and returns the rest to the queue. Heartbeats continue. */
  async #finish(endClaims: () => void): Promise<void> {
    const idle = () => this.#jobs.size === 0 && this.#claiming === 0;
    const mustStop = () => this.#stopping.signal.aborted || this.#fatal !== undefined;
    // If the server started the drain, it ends it itself when its deadline has passed.
    await this.#changes.until(() => idle() || mustStop(), this.#stopping.signal);
    if (!mustStop()) return;
    const { clock } = this.#client;
    const since = this.#stopSince ?? clock.now();
    const soft = deadline(clock, since + this.#set.softStopMs - clock.now());
    const hard = deadline(clock, since + this.#set.hardStopMs - clock.now());
    const announced = this.#announce(endClaims);
    try {
      if (await this.#changes.until(idle, soft.signal, this.#hard.signal)) return;
      if (!this.#hard.signal.aborted) {
        this.#log.info('Soft stop reached: stopping handlers', { active: this.#jobs.size });
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

  /** Announces the drain, which ends a waiting claim; after a second a claim that does not end is cancelled. */
  async #announce(endClaims: () => void): Promise<void> {
    const { clock } = this.#client;
    const { current } = this.#sessions;
    const known = this.#draining;
    this.#draining = true;
    this.#changes.notify();
    if (!known && current && !this.#held) {
      const { workerId, token } = current;
      this.#log.info('Draining: the worker is stopping', { workerId, active: this.#jobs.size });
      await this.#part((signal) => this.#client.drainWorker(workerId, { reason: 'it stops' }, { token, signal }), 'drain');
    }
    const second = deadline(clock, 1000);
    await this.#changes.until(() => this.#claiming === 0, second.signal, this.#hard.signal);
    second.cancel();
    endClaims();
  }

  /** Returns running tasks to the queue. */
  async #giveBack(): Promise<void> {
    this.#leaving = true;
    const left = [...this.#jobs];
    this.#log.warn('Hard stop reached: running tasks are returned to the queue', { taskIds: left.map((job) => job.envelope.taskId) });
    await Promise.all(left.map((job) => job.end()));
  }

  /** The ids of tasks that go back to the queue. */
  get #unfinished(): string[] {
    return [...this.#jobs, ...this.#givenBack].filter((job) => job.isUnfinished).map((job) => job.envelope.taskId);
  }

  /** Deregisters if a server can be reached. */
  async #deregister(): Promise<void> {
    const { current } = this.#sessions;
    if (!current) return;
    const { workerId, token } = current;
    this.#log.info(`Deregistering worker ID: ${workerId}`, { workerId });
    await this.#part((signal) => this.#client.deregisterWorker(workerId, { reason: 'it stops' }, { token, signal }), 'deregister');
    this.#left = true;
  }

  async #part(call: (signal: AbortSignal) => Promise<unknown>, what: string): Promise<void> {
    const late = deadline(this.#client.clock, lastCallLimit, new Error(`no answer within ${lastCallLimit} ms`));
    try {
      await call(late.signal);
    } catch (error) {
      if (!isGone(error)) this.#log.warn(`The worker could not ${what}; the server will time it out`, { error: textOf(error) });
    } finally {
      late.cancel();
    }
  }
}
