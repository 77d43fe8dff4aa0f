import type { ClientOptions } from '../client.js';
import type { Answer, RequestInit } from '../transport.js';
import type { CreateTaskRequest, TaskEnvelope } from '../types.js';
import { HandClock } from './hand.js';
import { identityOf, Routes } from './routes.js';
import { type FakeRequest, type FakeTask, type FakeWorker, isOver, Refusal } from './state.js';

export interface FakeServerOptions {
  /** How often workers are to beat, and how long they may be silent, in ms; 10,000 and 30,000 unless told. */
  workerIntervalMs?: number;
  workerTimeoutMs?: number;
}

/** What is answered instead. */
export interface Instead {
  status: number;
  body: unknown;
  headers?: Record<string, string>;
}

type Interceptor = (request: FakeRequest) => Instead | undefined | Promise<Instead | undefined>;

/** A Lubdub server in memory, whose clock a test holds. */
export class FakeServer {
  /** Opens control calls, and enrols workers. */
  static readonly token = 'fake-control-token';
  readonly clock = new HandClock();
  /** An address that only the transport of `options` knows. */
  readonly url = 'http://127.0.0.1:1';
  /** All that were received, in their order. */
  readonly requests: FakeRequest[] = [];
  readonly #routes: Routes;
  #down: (() => Answer) | undefined;
  #downSince = 0;
  #intercept: Interceptor | undefined;
  #lose: ((request: FakeRequest) => boolean) | undefined;

  constructor(options: FakeServerOptions = {}) {
    this.#routes = new Routes(this.clock, this.url, options.workerIntervalMs ?? 10_000, options.workerTimeoutMs ?? 30_000);
  }

  /** Those of a client of this server: its transport, its clock and its token. */
  options(): ClientOptions {
    return { fetch: (url, init) => this.#answer(url, init), clock: this.clock, token: FakeServer.token, proxy: '' };
  }

  /** A task; it throws if there is none. */
  task(id: string): FakeTask {
    this.#sweep();
    return { ...this.#routes.taskOf(id) };
  }

  /** All workers that have registered, in their order. */
  workers(): FakeWorker[] {
    this.#sweep();
    return [...this.#routes.workers.values()].map((w) => ({
      ...w,
      held: this.#routes
        .heldBy(w)
        .map((t) => t.taskId)
        .sort(),
    }));
  }

  /** Creates a task and hands it out at once. */
  push(request: CreateTaskRequest = {}): TaskEnvelope {
    const task = this.#routes.create(request);
    this.#routes.dispatch(task, '');
    return this.#routes.envelope(task);
  }

  /** Creates a task that waits in its queue (default), and returns its id. */
  enqueue(request: CreateTaskRequest): string {
    return this.#routes.queueUp(this.#routes.create({ queue: 'default', ...request })).taskId;
  }

  /** Asks for the end of a task. */
  cancel(id: string, reason = ''): void {
    const task = this.#routes.taskOf(id);
    if (task.state === 'QUEUED') this.#routes.finish(task, 'CANCELLED', '');
    else Object.assign(task, { asked: true, why: reason });
  }

  /** Ends the attempt of a task as the server itself does: it is FAILED for a reason such as HEARTBEAT_TIMEOUT. */
  end(id: string, reason: string): void {
    this.#routes.finish(this.#routes.taskOf(id), 'FAILED', reason);
  }

  /** Makes another attempt of a task, which fences the one before. */
  supersede(id: string): TaskEnvelope {
    const task = this.#routes.taskOf(id);
    this.#routes.dispatch(task, '');
    return this.#routes.envelope(task);
  }

  /** Asks a worker to finish what it holds and to go. */
  drain(workerId: string): void {
    this.#routes.workers.get(workerId)!.status = 'DRAINING';
    this.#routes.change();
  }

  /** Takes a worker offline as an operator does: others get its tasks, and it may not register again until `resume`. */
  offline(workerId: string): void {
    const worker = this.#routes.workers.get(workerId)!;
    this.#routes.held.set(identityOf(worker.request), workerId);
    this.#routes.offline(worker, 'FORCED_OFFLINE');
  }

  /** Ends what `offline` did to a worker. */
  resume(workerId: string): void {
    this.#routes.held.delete(identityOf(this.#routes.workers.get(workerId)!.request));
  }

  /** Declares a worker dead, as when it is silent for too long: others get its tasks. */
  expire(workerId: string): void {
    this.#routes.offline(this.#routes.workers.get(workerId)!, 'HEARTBEAT_TIMEOUT');
  }

  /** Drains the machine that all workers are on, and those that come until `resumeMachine`. */
  drainMachine(): void {
    this.#routes.isDrained = true;
    for (const { workerId, status } of this.#routes.workers.values()) if (status === 'ONLINE') this.drain(workerId);
  }

  resumeMachine(): void {
    this.#routes.isDrained = false;
    for (const worker of this.#routes.workers.values()) if (worker.status === 'DRAINING') worker.status = 'ONLINE';
    this.#routes.change();
  }

  /** Has the server know a worker no more, as after a loss of its store. What it holds it keeps. */
  forget(workerId: string): void {
    this.#routes.workers.delete(workerId);
  }

  /** Has nobody answer. What is silent meanwhile is not dead: the store's clock stands still. */
  down(): void {
    this.#fall(() => {
      throw Object.assign(new Error('connection refused'), { code: 'ECONNREFUSED' });
    });
  }

  /** Has every request answered with 503, and with Retry-After unless that is 0. */
  unavailable(retryAfterMs = 0): void {
    const headers: Record<string, string> = retryAfterMs ? { 'retry-after': String(Math.round(retryAfterMs / 1000)) } : {};
    this.#fall(() => said(503, { error: 'store_unavailable', message: 'the store does not answer; come again' }, headers));
  }

  /** Ends `down` and `unavailable`. */
  up(): void {
    if (!this.#down) return;
    this.#down = undefined;
    this.#routes.credit(this.clock.now() - this.#downSince);
  }

  /** Has f answer before the server does, where it returns something, now or later; undefined ends that. */
  intercept(f: Interceptor | undefined): void {
    this.#intercept = f;
  }

  /** Has the answers of requests lost for which f says so: they are received and heeded all the same. */
  loseAnswers(f: ((request: FakeRequest) => boolean) | undefined): void {
    this.#lose = f;
  }

  /** How many requests were received at a path. */
  count(path: string): number {
    return this.requests.filter((request) => request.path === path).length;
  }

  /** Lets time pass until a condition holds. */
  until(what: string, holds: () => boolean): Promise<void> {
    return this.clock.until(what, holds);
  }

  /** Lets a promise come to its end while time passes. */
  async finish<T>(promise: Promise<T>, what = 'a promise'): Promise<T> {
    let over = false;
    const end = () => void (over = true);
    promise.then(end, end);
    await this.until(what + ' is over', () => over);
    return promise;
  }

  #fall(how: () => Answer): void {
    if (!this.#down) this.#downSince = this.clock.now();
    this.#down = how;
  }

  #sweep(): void {
    if (!this.#down) this.#routes.sweep();
  }

  async #answer(address: string, init: RequestInit): Promise<Answer> {
    const request: FakeRequest = {
      method: init.method,
      path: new URL(address).pathname,
      headers: { ...init.headers },
      body: init.body ?? '',
      atMs: this.clock.now(),
      status: 0,
    };
    this.requests.push(request);
    await Promise.resolve();
    init.signal.throwIfAborted();
    if (this.#down) return this.#down();
    const instead = await this.#intercept?.(request);
    if (instead) {
      request.status = instead.status;
      return said(instead.status, instead.body, instead.headers);
    }
    this.#sweep();
    const answer = await this.#serve(request, init.signal);
    init.signal.throwIfAborted();
    request.status = answer.status;
    if (this.#lose?.(request)) throw Object.assign(new Error('the connection was cut'), { code: 'ECONNRESET' });
    return answer;
  }

  async #serve(request: FakeRequest, gone: AbortSignal): Promise<Answer> {
    try {
      const { status, body } = await this.#routes.route(request, gone);
      return said(status, body);
    } catch (error) {
      if (error instanceof Refusal) return said(error.status, error.body());
      throw error;
    }
  }

  /** Whether a task is over. */
  isOver(id: string): boolean {
    return isOver(this.#routes.taskOf(id));
  }
}

function said(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  const all: Record<string, string> = { 'x-request-id': 'req_test', ...headers };
  return {
    status,
    headers: { get: (name) => all[name.toLowerCase()] ?? null },
    text: () => Promise.resolve(JSON.stringify(body)),
    body: null,
  };
}
