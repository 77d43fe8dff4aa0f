import type {
  ClaimRequest,
  CreateTaskRequest,
  HeartbeatItem,
  Progress,
  RegisterWorkerRequest,
  State,
  TaskEnvelope,
  WaitTasksRequest,
  WorkerHeartbeatRequest,
} from '../types.js';
import type { HandClock } from './hand.js';
import {
  type Completion,
  type FakeRequest,
  isOver,
  Refusal,
  retryDelayOf,
  type TaskRecord,
  timeoutOf,
  type WorkerRecord,
} from './state.js';

/** The allowed fields of bodies; others are refused, so that a test notices them. */
const known: Record<string, string[]> = {
  started: ['attempt', 'workerId', 'startedAt'],
  heartbeat: ['attempt', 'workerId', 'heartbeatAt', 'progressPct', 'message', 'details'],
  item: ['taskId', 'attempt', 'taskToken', 'workerId', 'heartbeatAt', 'progressPct', 'message', 'details'],
  completed: 'attempt workerId completedAt outcome delayMs output metrics error cancelledDuringPhase partialProgress'.split(' '),
  beat: ['activeCount', 'seq', 'completedDelta', 'failedDelta', 'tasks'],
  wait: ['taskIds', 'waitMs'],
  claim: ['types', 'max', 'waitMs', 'claimId', 'start'], // start is ignored, as by an older server
};

/** The limit of a checkpoint, in bytes of JSON. */
const maxDetails = 16 << 10;

/** The routes of the test server. */
export class Routes {
  readonly workers = new Map<string, WorkerRecord>();
  readonly #tasks = new Map<string, TaskRecord>();
  readonly #clock: HandClock;
  readonly #url: string;
  readonly #intervalMs: number;
  readonly #timeoutMs: number;
  readonly held = new Map<string, string>(); // identities that are held offline, and the worker of each
  isDrained = false; // the machine
  readonly #claims = new Map<string, string[]>();
  #queued: TaskRecord[] = [];
  #waiting: (() => void)[] = [];
  #number = 0;

  constructor(clock: HandClock, url: string, intervalMs: number, timeoutMs: number) {
    this.#clock = clock;
    this.#url = url;
    this.#intervalMs = intervalMs;
    this.#timeoutMs = timeoutMs;
  }

  taskOf(id: string): TaskRecord {
    const task = this.#tasks.get(id);
    if (!task) throw new Error(`the fake server has no task ${id}`);
    return task;
  }

  async route(request: FakeRequest, gone: AbortSignal): Promise<{ status: number; body: unknown }> {
    const token = (request.headers['Authorization'] ?? '').replace(/^Bearer /, '');
    const [what = '', id = '', act = ''] = request.path
      .replace(/^\/v1\//, '')
      .split('/')
      .map(decodeURIComponent);
    const body = request.body ? (JSON.parse(request.body) as never) : ({} as never);
    const ok = (body: unknown) => ({ status: 200, body: body });
    switch (`${request.method} ${what}${act && '/' + act}`) {
      case 'POST tasks':
        return {
          status: 201,
          body: this.#createTask(token, { traceparent: request.headers['Traceparent'], ...(body as CreateTaskRequest) }),
        };
      case 'GET tasks':
        return ok(this.#shown(id));
      case 'POST tasks:wait':
        return ok(await this.#waitTasks(token, checked('wait', body), gone));
      case 'POST tasks/started':
        return ok(this.#started(id, token, checked('started', body)));
      case 'POST tasks/heartbeat':
        return ok(this.#heartbeat(id, token, checked('heartbeat', body)));
      case 'POST tasks/completed':
        return ok(this.#completed(id, token, checked('completed', body), request.body));
      case 'POST heartbeats':
        return ok(this.#heartbeats(token, body));
      case 'POST workers':
        return { status: 201, body: this.#register(token, body) };
      case 'POST workers/heartbeat':
        return ok(this.#workerBeat(id, token, checked('beat', body)));
      case 'POST workers/drain':
        return ok(this.#drain(id, token, body));
      case 'POST workers/deregister':
        this.#deregister(this.#worker(id, token));
        return ok({ workerId: id, status: 'OFFLINE' });
      case 'POST queues/claim':
        return ok(await this.#claim(id, token, checked('claim', body), gone));
      default:
        throw new Refusal(404, 'not_found', `the fake server has no ${request.method} ${request.path}`);
    }
  }

  create(request: CreateTaskRequest): TaskRecord {
    const taskId = request.taskId ?? `task_${++this.#number}`;
    const task: TaskRecord = {
      taskId,
      request,
      state: 'QUEUED',
      attempt: 0,
      workerId: '',
      beats: 0,
      progressPct: undefined,
      message: undefined,
      details: undefined,
      reason: '',
      output: undefined,
      error: undefined,
      phase: undefined,
      partial: undefined,
      lost: 0,
      failures: 0,
      lastBeat: 0,
      readyAt: 0,
      dispatchedAt: 0,
      cancelRequested: false,
      why: '',
      notifiedAt: undefined,
      completion: undefined,
      last: undefined,
    };
    this.#tasks.set(taskId, task);
    return task;
  }

  /** Puts a new task into its queue when its start time has come. */
  schedule(task: TaskRecord): TaskRecord {
    const { delayMs, runAt, notBefore } = task.request;
    const at = runAt ?? notBefore;
    return this.queueUp(task, delayMs ?? (at ? Date.parse(at) - this.#clock.wall() : 0), 'SCHEDULED');
  }

  /** Puts a task into its queue, after a delay if it has one; meanwhile: its state until then. */
  queueUp(task: TaskRecord, delayMs = 0, meanwhile: State = 'QUEUED'): TaskRecord {
    const { attempt } = task;
    const ready = () => {
      if (task.state !== meanwhile || task.attempt !== attempt) return; // it has ended, or a newer attempt has begun
      task.state = 'QUEUED';
      task.readyAt = this.#clock.now();
      this.#queued.push(task);
      this.change();
    };
    task.state = meanwhile;
    if (delayMs > 0) this.#clock.setTimeout(ready, delayMs);
    else ready();
    return task;
  }

  /** Starts the next attempt. */
  dispatch(task: TaskRecord, workerId: string): void {
    const { progressPct = null, message = null } = task;
    const checkpoint = task.details === undefined ? {} : { details: task.details as Progress['details'] };
    if (progressPct !== null || checkpoint.details !== undefined) task.last = { progressPct, message, ...checkpoint };
    const now = this.#clock.now();
    Object.assign(task, {
      attempt: task.attempt + 1,
      state: 'DISPATCHED',
      workerId,
      beats: 0,
      reason: '',
      lastBeat: now,
      dispatchedAt: now,
    });
    this.change();
  }

  finish(task: TaskRecord, state: State, reason: string): void {
    task.state = state;
    task.reason = reason;
    this.#queued = this.#queued.filter((one) => one !== task);
    this.change();
  }

  envelope(task: TaskRecord): TaskEnvelope {
    const { request } = task;
    return {
      taskId: task.taskId,
      runId: request.runId ?? 'run_' + task.taskId,
      taskKey: request.taskKey ?? null,
      assetId: request.assetId ?? null,
      tenantId: 'default',
      workspaceId: 'default',
      attempt: task.attempt,
      state: 'DISPATCHED',
      resources: {},
      enqueuedAt: this.#iso(task.dispatchedAt),
      deadline: request.deadline ?? null,
      callbackBaseUrl: this.#url,
      taskToken: `task/${task.taskId}/${task.attempt}`,
      tokenExpiresAt: this.#iso(this.#clock.now() + 3_600_000),
      heartbeatIntervalMs: request.heartbeatIntervalMs ?? 30_000,
      heartbeatTimeoutMs: timeoutOf(task) || null,
      cancelGracePeriodMs: request.cancelGracePeriodMs ?? 30_000,
      labels: request.labels ?? {},
      payload: (request.payload ?? null) as TaskEnvelope['payload'],
      ...(request.runTimeoutMs && { runTimeoutMs: request.runTimeoutMs }),
      type: request.type ?? null,
      queue: request.queue ?? null,
      ...(request.traceparent && { traceparent: request.traceparent }),
      ...(task.last && { lastProgress: task.last }),
    };
  }

  heldBy(worker: { workerId: string }): TaskRecord[] {
    return [...this.#tasks.values()].filter((t) => t.workerId === worker.workerId && ['RUNNING', 'DISPATCHED'].includes(t.state));
  }

  offline(worker: WorkerRecord, reason: string): void {
    worker.status = 'OFFLINE';
    worker.reason = reason;
    for (const task of this.heldBy(worker)) this.#lose(task, 'WORKER_LOST');
    this.change();
  }

  /** Takes a deregistering worker's tasks back, which counts as no failure. */
  #deregister(worker: WorkerRecord): void {
    for (const task of this.heldBy(worker)) {
      if (task.cancelRequested) this.finish(task, 'CANCELLED', '');
      else this.queueUp(task).reason = 'DEREGISTERED';
    }
    this.offline(worker, 'DEREGISTERED');
  }

  /** Ends attempts and workers that have reached their timeout. Returns when the next one does, if nothing is received until then. */
  sweep(): number {
    let next = Infinity;
    const isDue = (at: number) => {
      if (at <= this.#clock.now()) return true;
      next = Math.min(next, at);
      return false;
    };
    for (const worker of this.workers.values()) {
      if (worker.status !== 'OFFLINE' && isDue(worker.lastBeat + this.#timeoutMs)) this.offline(worker, 'HEARTBEAT_TIMEOUT');
    }
    for (const task of this.#tasks.values()) {
      if (task.state !== 'RUNNING') continue;
      const timeout = timeoutOf(task);
      const graceMs = task.request.cancelGracePeriodMs ?? 30_000;
      if (timeout > 0 && isDue(task.lastBeat + timeout + 1)) this.#lose(task, 'HEARTBEAT_TIMEOUT');
      else if (task.notifiedAt !== undefined && isDue(task.notifiedAt + graceMs + 1)) this.finish(task, 'FAILED', 'CANCEL_TIMEOUT');
    }
    return next;
  }

  /** Excludes time during which the server was down from silences. */
  credit(ms: number): void {
    for (const one of [...this.#tasks.values(), ...this.workers.values()]) one.lastBeat += ms;
  }

  change(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Takes an attempt from its worker: a task with a queue returns to it. */
  #lose(task: TaskRecord, reason: string): void {
    task.lost++;
    if (!task.request.queue) return this.finish(task, 'FAILED', reason);
    this.queueUp(task).reason = reason;
  }

  #iso(at = this.#clock.now()): string {
    return new Date(this.#clock.wall() + at - this.#clock.now()).toISOString();
  }

  /** The task of a callback that is authorized. */
  #authorize(id: string, token: string, attempt: number, gone: 409 | 410): TaskRecord {
    const [kind, of] = token.split('/');
    const task = this.#tasks.get(id);
    if (kind !== 'task' && kind !== 'worker') throw new Refusal(401, 'unauthorized', 'no token, or one that is not valid');
    if (kind === 'task' && of !== id) throw new Refusal(403, 'forbidden', 'a token for something else');
    if (!task) throw new Refusal(404, 'task_not_found', 'no such task');
    const other = task.workerId !== of && attempt >= task.attempt;
    if (kind === 'worker' && other) throw new Refusal(403, 'forbidden', 'a token for something else');
    if (attempt < task.attempt) {
      const fields = { expectedAttempt: task.attempt, receivedAttempt: attempt };
      throw new Refusal(409, 'attempt_mismatch', 'a newer attempt has begun', fields);
    }
    const { state, reason } = task;
    if (state === 'QUEUED' && ['SNOOZED', 'WORKER_REPORTED'].includes(reason))
      throw new Refusal(409, 'task_already_terminal', 'the attempt is over', { state });
    if (reason && (isOver(task) || state === 'QUEUED')) {
      throw new Refusal(gone, gone === 410 ? 'task_expired' : 'task_already_terminal', 'the attempt was ended', { state, reason });
    }
    if (isOver(task)) throw new Refusal(409, 'task_already_terminal', 'the task is finished', { state });
    return task;
  }

  #applyBeat(task: TaskRecord, body: { progressPct?: number | null; message?: string | null; details?: unknown }): void {
    task.lastBeat = this.#clock.now();
    task.beats++;
    task.state = 'RUNNING';
    task.progressPct = body.progressPct ?? task.progressPct;
    task.message = body.message ?? task.message;
    task.details = body.details ?? task.details;
    if (task.cancelRequested) task.notifiedAt ??= task.lastBeat;
    this.change();
  }

  #started(id: string, token: string, body: { attempt: number }): object {
    const task = this.#authorize(id, token, body.attempt, 409);
    this.#applyBeat(task, {});
    task.beats--;
    return { acknowledged: true, serverTime: this.#iso(), shouldCancel: task.cancelRequested, cancelReason: task.why };
  }

  #heartbeat(id: string, token: string, body: Omit<HeartbeatItem, 'taskId'>): object {
    const task = this.#authorize(id, token, body.attempt, 410);
    checkDetails(body.details, 'details');
    this.#applyBeat(task, body);
    const nextHeartbeatMs = this.envelope(task).heartbeatIntervalMs;
    return { acknowledged: true, shouldCancel: task.cancelRequested, cancelReason: task.why, serverTime: this.#iso(), nextHeartbeatMs };
  }

  #heartbeats(token: string, body: { heartbeats: HeartbeatItem[] }): object {
    const all = body.heartbeats;
    if (all.length < 1 || all.length > 1000) throw new Refusal(400, 'invalid_request', '1 to 1,000 heartbeats');
    const results = all.map((item) => {
      const { taskId } = item;
      try {
        return { taskId, status: 200, ...this.#heartbeat(taskId, item.taskToken ?? token, checked('item', item)) };
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        return { taskId, status: error.status, ...error.body() };
      }
    });
    return { results, serverTime: this.#iso() };
  }

  #completed(id: string, token: string, body: Completion, raw: string): object {
    const before = this.#tasks.get(id)?.completion;
    if (before?.raw === raw) return before.answer;
    const task = this.#authorize(id, token, body.attempt, 409);
    if (body.outcome === 'FAILED' && !body.error?.category) throw new Refusal(400, 'invalid_request', 'FAILED needs error.category');
    const { outcome, delayMs } = body;
    if ((outcome === 'SNOOZED') !== (typeof delayMs === 'number')) throw new Refusal(400, 'invalid_request', 'SNOOZED needs delayMs');
    const snoozed = outcome === 'SNOOZED';
    if (snoozed && !task.request.queue) throw new Refusal(409, 'task_without_queue', 'it cannot be snoozed');
    const answer = { acknowledged: true, finalState: outcome, serverTime: this.#iso() };
    task.completion = { raw, answer };
    if (snoozed && !task.cancelRequested) {
      this.queueUp(task, delayMs!).reason = outcome;
      return Object.assign(answer, { willRetry: true, nextAttempt: task.attempt + 1 });
    }
    task.output = body.output;
    task.error = body.error ?? undefined;
    if (outcome === 'FAILED') {
      task.failures++;
      const delay = retryDelayOf(task, body.error!);
      if (delay !== undefined) {
        this.queueUp(task, delay).reason = 'WORKER_REPORTED';
        return Object.assign(answer, { willRetry: true, nextAttempt: task.attempt + 1 });
      }
    }
    task.phase = body.cancelledDuringPhase ?? undefined;
    task.partial = body.partialProgress;
    this.finish(task, snoozed ? 'CANCELLED' : outcome, '');
    return answer;
  }

  #register(token: string, request: RegisterWorkerRequest): object {
    if (token !== 'fake-control-token') throw new Refusal(401, 'unauthorized', 'no token, or one that is not valid');
    if (!request.queue || !request.types?.length) throw new Refusal(400, 'invalid_request', 'queue and types are needed');
    const heldBy = this.held.get(identityOf(request));
    if (heldBy !== undefined) {
      const fields = { workerId: heldBy, remedy: `lubdub worker resume ${heldBy}` };
      throw new Refusal(409, 'worker_held_offline', 'an operator took it offline', fields);
    }
    let worker = [...this.workers.values()].find((w) => request.registrationId && w.request.registrationId === request.registrationId);
    if (!worker) {
      const workerId = `wkr_${String(++this.#number).padStart(4, '0')}`;
      worker = {
        workerId,
        request,
        status: this.isDrained ? 'DRAINING' : 'ONLINE',
        reason: '',
        beats: 0,
        activeCount: 0,
        completed: 0,
        failed: 0,
        lastBeat: 0,
        seq: 0,
      };
      this.workers.set(workerId, worker);
    }
    worker.lastBeat = this.#clock.now();
    this.change();
    return {
      workerId: worker.workerId,
      machineId: request.machineId ?? '',
      workerToken: 'worker/' + worker.workerId,
      tokenExpiresAt: this.#iso(this.#clock.now() + 3_600_000),
      heartbeatIntervalMs: this.#intervalMs,
      heartbeatTimeoutMs: this.#timeoutMs,
      ...(this.isDrained && { shouldDrain: true }),
    };
  }

  /** A worker that may act. */
  #worker(id: string, token: string): WorkerRecord {
    const worker = this.workers.get(id);
    if (token !== 'worker/' + id && token !== 'fake-control-token') {
      throw new Refusal(401, 'unauthorized', 'no token, or one that is not valid');
    }
    if (!worker) throw new Refusal(404, 'worker_not_found', 'register again');
    if (worker.status === 'OFFLINE') throw new Refusal(410, 'worker_offline', 'register again', { reason: worker.reason });
    return worker;
  }

  #workerBeat(id: string, token: string, body: WorkerHeartbeatRequest): object {
    const worker = this.#worker(id, token);
    body.tasks?.forEach(({ details }, i) => checkDetails(details, `tasks[${i}].details`));
    worker.lastBeat = this.#clock.now();
    worker.beats++;
    if ((body.seq ?? 0) > worker.seq) {
      worker.seq = body.seq!;
      worker.completed += body.completedDelta ?? 0;
      worker.failed += body.failedDelta ?? 0;
    }
    worker.activeCount = body.activeCount ?? worker.activeCount;
    const lostTasks: object[] = [];
    for (const item of body.tasks ?? []) {
      try {
        this.#applyBeat(this.#authorize(item.taskId, 'worker/' + id, item.attempt, 410), item);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        lostTasks.push({ taskId: item.taskId, attempt: item.attempt, error: error.code });
      }
    }
    const cancelTasks = this.heldBy(worker)
      .filter((t) => t.cancelRequested)
      .map((task) => {
        task.notifiedAt ??= worker.lastBeat;
        return { taskId: task.taskId, attempt: task.attempt, reason: task.why };
      });
    return {
      accepted: true,
      shouldDrain: worker.status === 'DRAINING',
      cancelTasks,
      lostTasks,
      serverTime: this.#iso(),
      heartbeatIntervalMs: this.#intervalMs,
      heartbeatTimeoutMs: this.#timeoutMs,
    };
  }

  #drain(id: string, token: string, body: { reason?: string }): object {
    const worker = this.#worker(id, token);
    worker.status = 'DRAINING';
    worker.reason = body.reason ?? '';
    this.change();
    return { workerId: id, status: 'DRAINING' };
  }

  /** Returns tasks, and waits for the first. */
  async #claim(queue: string, token: string, body: ClaimRequest, gone: AbortSignal): Promise<object> {
    const id = token.replace(/^worker\//, '');
    const end = this.#clock.now() + (body.waitMs ?? 0);
    for (;;) {
      const worker = this.#worker(id, token);
      if (worker.status === 'DRAINING') throw new Refusal(409, 'worker_draining', 'it gets no new tasks');
      if (worker.request.queue !== queue) throw new Refusal(403, 'forbidden', 'a token for something else');
      worker.lastBeat = this.#clock.now();
      const tasks = this.#handOut(worker, body);
      const left = end - this.#clock.now();
      if (tasks.length > 0 || left <= 0) return { tasks };
      await this.#wait(left, gone);
    }
  }

  /** Returns the tasks that have ended, and waits for the first. */
  async #waitTasks(token: string, body: WaitTasksRequest, gone: AbortSignal): Promise<object> {
    if (token !== 'fake-control-token') throw new Refusal(401, 'unauthorized', 'no token, or one that is not valid');
    const ids = [...new Set(body.taskIds)];
    if (ids.length !== body.taskIds.length || ids.length < 1 || ids.length > 1000) {
      throw new Refusal(400, 'invalid_request', '1 to 1,000 tasks, each once');
    }
    const end = this.#clock.now() + (body.waitMs ?? 0);
    for (;;) {
      const notFound = ids.filter((id) => !this.#tasks.has(id));
      const ended = ids.filter((id) => this.#tasks.has(id) && isOver(this.taskOf(id))).slice(0, 100);
      const left = end - this.#clock.now();
      if (notFound.length + ended.length > 0 || left <= 0) return { tasks: ended.map((id) => this.#shown(id)), notFound };
      await this.#wait(left, gone);
    }
  }

  #wait(ms: number, gone: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.setTimeout(resolve, ms);
      this.#waiting.push(() => {
        timer.cancel();
        resolve();
      });
      gone.addEventListener(
        'abort',
        () => {
          timer.cancel();
          reject(gone.reason as Error);
        },
        { once: true },
      );
    });
  }

  #handOut(worker: WorkerRecord, body: ClaimRequest): TaskEnvelope[] {
    const key = `${worker.workerId}/${body.claimId}`;
    const before = this.#claims.get(key);
    if (before && body.claimId) {
      return before
        .map((id) => this.taskOf(id))
        .filter((t) => t.workerId === worker.workerId && !isOver(t) && t.state !== 'QUEUED')
        .map((t) => this.envelope(t));
    }
    const types = body.types ?? [...worker.request.types, '']; // and tasks without a type
    const taken = this.#queued
      .filter((t) => t.request.queue === worker.request.queue && types.includes(t.request.type ?? ''))
      .slice(0, Number(body.max ?? 1));
    this.#queued = this.#queued.filter((t) => !taken.includes(t));
    for (const task of taken) this.dispatch(task, worker.workerId);
    if (taken.length > 0)
      this.#claims.set(
        key,
        taken.map((t) => t.taskId),
      );
    return taken.map((t) => ({ ...this.envelope(t), readyAt: this.#iso(t.readyAt) }));
  }

  #createTask(token: string, request: CreateTaskRequest): object {
    if (token !== 'fake-control-token') throw new Refusal(401, 'unauthorized', 'no token, or one that is not valid');
    const task = this.create(request);
    if (request.queue) return this.#shown(this.schedule(task).taskId);
    this.dispatch(task, '');
    return this.envelope(task);
  }

  #shown(id: string): object {
    const task = this.#tasks.get(id);
    if (!task) throw new Refusal(404, 'task_not_found', 'no such task');
    const { taskId, state, attempt, workerId, request, details, output = null, error = null } = task;
    const ends = { reason: task.reason || (state === 'FAILED' ? 'WORKER_REPORTED' : null), cancelReason: task.why || null };
    return { taskId, state, attempt, workerId, queue: request.queue ?? null, type: request.type ?? null, details, ...ends, output, error };
  }
}

/** The identity of a worker across registrations. */
export function identityOf({ queue, machineId, name, pid }: RegisterWorkerRequest): string {
  return JSON.stringify([queue, machineId, name || pid]);
}

/** Refuses a checkpoint that is too long. */
function checkDetails(details: unknown, field: string): void {
  if (Buffer.byteLength(JSON.stringify(details ?? null)) <= maxDetails) return;
  throw new Refusal(400, 'invalid_request', `${field} has more than ${maxDetails} bytes without whitespace`, { field });
}

function checked<T extends object>(what: string, body: T): T {
  for (const field of Object.keys(body)) {
    if (!known[what]!.includes(field)) throw new Refusal(400, 'unknown_field', `${what} has no field ${field}`);
  }
  return body;
}
