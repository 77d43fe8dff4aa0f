import type { ClientOptions } from '../client.js';
import type { Timer } from '../clock.js';
import type { Answer, RequestInit } from '../transport.js';
import type { CreateTaskRequest, TaskEnvelope } from '../types.js';
import { untilAborted } from '../abort.js';
import { HandClock } from './hand.js';
import { identityOf, Routes } from './routes.js';
import { type FakeRequest, type FakeTask, type FakeWorker, isOver, Refusal } from './state.js';

export interface FakeServerOptions {
  /** The heartbeat interval and the heartbeat timeout of workers, in ms; by default 10,000 and 30,000. */
  workerIntervalMs?: number;
  workerTimeoutMs?: number;
}

/** An answer in place of the server's. */
export interface Replacement {
  status: number;
  body: unknown;
  headers?: Record<string, string>;
}

type Interceptor = (request: FakeRequest) => Replacement | undefined | Promise<Replacement | undefined>;

/** An in-memory Lubdub server with a clock that a test controls. */
export class FakeServer {
  /** The token for control calls and registrations. */
  static readonly token = 'fake-control-token';
  readonly clock = new HandClock();
  /** An address that only the transport of `options` reaches. */
  readonly url = 'http://127.0.0.1:1';
  /** All received requests, in order. */
  readonly requests: FakeRequest[] = [];
  readonly #routes: Routes;
  #down: (() => Answer) | undefined;
  #downSince = 0;
  #sweeping: Timer | undefined; // waits for the next timeout
  #intercept: Interceptor | undefined;
  #lose: ((request: FakeRequest) => boolean) | undefined;

  constructor(options: FakeServerOptions = {}) {
    this.#routes = new Routes(this.clock, this.url, options.workerIntervalMs ?? 10_000, options.workerTimeoutMs ?? 30_000);
  }

  /** The options of a client of this server: its transport, its clock and its token. */
  options(): ClientOptions {
    return { fetch: (url, init) => this.#answer(url, init), clock: this.clock, token: FakeServer.token, proxy: '' };
  }

  /** A task; throws if it does not exist. */
  task(id: string): FakeTask {
    this.#sweep();
    return { ...this.#routes.taskOf(id) };
  }

  /** All workers that have registered, in order. */
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

  /** Creates a task without a queue and returns its envelope. */
  push(request: CreateTaskRequest = {}): TaskEnvelope {
    const task = this.#routes.create(request);
    this.#routes.dispatch(task, '');
    return this.#routes.envelope(task);
  }

  /** Creates a task that waits in its queue (default), SCHEDULED until its start time, and returns its id. */
  enqueue(request: CreateTaskRequest): string {
    return this.#routes.schedule(this.#routes.create({ queue: 'default', ...request })).taskId;
  }

  /** Requests cancellation of a task. */
  cancel(id: string, reason = ''): void {
    const task = this.#routes.taskOf(id);
    Object.assign(task, { cancelRequested: true, why: reason });
    if (['SCHEDULED', 'QUEUED'].includes(task.state)) this.#routes.finish(task, 'CANCELLED', '');
  }

  /** Ends the attempt of a task as the server does: it is FAILED for a reason such as HEARTBEAT_TIMEOUT. */
  end(id: string, reason: string): void {
    this.#routes.finish(this.#routes.taskOf(id), 'FAILED', reason);
  }

  /** Starts another attempt of a task, which fences the previous one. */
  supersede(id: string): TaskEnvelope {
    const task = this.#routes.taskOf(id);
    this.#routes.dispatch(task, '');
    return this.#routes.envelope(task);
  }

  /** Drains a worker. */
  drain(workerId: string): void {
    this.#routes.workers.get(workerId)!.status = 'DRAINING';
    this.#routes.change();
  }

  /** Takes a worker offline as an operator does: other workers get its tasks, and it may not register again until `resume`. */
  offline(workerId: string): void {
    const worker = this.#routes.workers.get(workerId)!;
    this.#routes.held.set(identityOf(worker.request), workerId);
    this.#routes.offline(worker, 'FORCED_OFFLINE');
  }

  /** Undoes `offline` for a worker. */
  resume(workerId: string): void {
    this.#routes.held.delete(identityOf(this.#routes.workers.get(workerId)!.request));
  }

  /** Declares a worker dead, as after its timeout: other workers get its tasks. */
  expire(workerId: string): void {
    this.#routes.offline(this.#routes.workers.get(workerId)!, 'HEARTBEAT_TIMEOUT');
  }

  /** Drains the machine of all workers, including those that register until `resumeMachine`. */
  drainMachine(): void {
    this.#routes.isDrained = true;
    for (const { workerId, status } of this.#routes.workers.values()) if (status === 'ONLINE') this.drain(workerId);
  }

  resumeMachine(): void {
    this.#routes.isDrained = false;
    for (const worker of this.#routes.workers.values()) if (worker.status === 'DRAINING') worker.status = 'ONLINE';
    this.#routes.change();
  }

  /** Deletes a worker, as a loss of data does. It keeps its tasks. */
  forget(workerId: string): void {
    this.#routes.workers.delete(workerId);
  }

  /** Answers nothing. Timeouts are paused meanwhile. */
  down(): void {
    this.#fall(() => {
      throw Object.assign(new Error('connection refused'), { code: 'ECONNREFUSED' });
    });
  }

  /** Answers every request with 503, and with Retry-After unless that is 0. */
  unavailable(retryAfterMs = 0): void {
    const headers: Record<string, string> = retryAfterMs ? { 'retry-after': String(Math.round(retryAfterMs / 1000)) } : {};
    this.#fall(() => reply(503, { error: 'store_unavailable', message: 'Redis is not responding; try again' }, headers));
  }

  /** Ends `down` and `unavailable`. */
  up(): void {
    if (!this.#down) return;
    this.#down = undefined;
    this.#routes.credit(this.clock.now() - this.#downSince);
    this.#sweep();
  }

  /** Lets f answer before the server does, if it returns a value, now or later; undefined removes it. */
  intercept(f: Interceptor | undefined): void {
    this.#intercept = f;
  }

  /** Loses the answers of requests for which f returns true: the server still applies them. */
  loseAnswers(f: ((request: FakeRequest) => boolean) | undefined): void {
    this.#lose = f;
  }

  /** The number of requests to a path. */
  count(path: string): number {
    return this.requests.filter((request) => request.path === path).length;
  }

  /** Advances the clock until a condition holds. */
  until(what: string, holds: () => boolean): Promise<void> {
    return this.clock.until(what, holds);
  }

  /** Advances the clock until a promise is settled. */
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

  /** Applies the timeouts, now and when the next one is reached, since no request may arrive then. */
  #sweep(): void {
    if (this.#down) return;
    const next = this.#routes.sweep();
    this.#sweeping?.cancel();
    if (next !== Infinity) this.#sweeping = this.clock.setTimeout(() => this.#sweep(), next - this.clock.now());
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
    const instead = await untilAborted(init.signal, () => this.#intercept?.(request));
    if (instead) {
      request.status = instead.status;
      return reply(instead.status, instead.body, instead.headers);
    }
    this.#sweep();
    const answer = await this.#serve(request, init.signal);
    this.#sweep();
    init.signal.throwIfAborted();
    request.status = answer.status;
    if (this.#lose?.(request)) throw Object.assign(new Error('the connection was cut'), { code: 'ECONNRESET' });
    return answer;
  }

  async #serve(request: FakeRequest, gone: AbortSignal): Promise<Answer> {
    try {
      const { status, body } = await this.#routes.route(request, gone);
      return reply(status, body);
    } catch (error) {
      if (error instanceof Refusal) return reply(error.status, error.body());
      throw error;
    }
  }

  /** Whether a task is over. */
  isOver(id: string): boolean {
    return isOver(this.#routes.taskOf(id));
  }
}

function reply(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  const all: Record<string, string> = { 'x-request-id': 'req_test', ...headers };
  return {
    status,
    headers: { get: (name) => all[name.toLowerCase()] ?? null },
    text: () => Promise.resolve(JSON.stringify(body)),
    body: null,
  };
}
