import { randomUUID } from 'node:crypto';
import { eachUntilAborted, link } from './abort.js';
import { maxPause, seg } from './call.js';
import { backoff } from './clock.js';
import { type CallOptions, ControlCalls } from './calls.js';
import { AnswerError, ApiError, type ErrorFields, mayRetry, retryAfterOf } from './errors.js';
import { type EnqueuedTask, inBatches, itemOf, type NewTask } from './enqueue.js';
import { EventStream, type EventsOptions } from './events.js';
import { pages } from './query.js';
import { type ResultOptions, Results } from './results.js';
import { millis, objects } from './answers.js';
import type {
  ActOnTasksResponse,
  ActOnWorkersRequest,
  ActOnWorkersResponse,
  CancelRequest,
  CancelTasksRequest,
  ClaimRequest,
  ClaimResponse,
  CreateTaskRequest,
  CreateTasksItem,
  CreateTasksResponse,
  DeregisterRequest,
  DrainRequest,
  DrainWorkersRequest,
  DrainWorkersResponse,
  EventList,
  EventQuery,
  Machine,
  MachineList,
  MachineQuery,
  NextAttemptRequest,
  OfflineWorkersRequest,
  Queue,
  QueueList,
  ReasonRequest,
  RegisterWorkerRequest,
  RegisterWorkerResponse,
  ResumeMachineResponse,
  RetryTasksRequest,
  Run,
  SelectWorkerRequest,
  SelectWorkerResponse,
  Task,
  TaskEnvelope,
  TaskList,
  TaskQuery,
  WaitTasksRequest,
  WaitTasksResponse,
  Worker,
  WorkerHeartbeatRequest,
  WorkerHeartbeatResponse,
  WorkerList,
  WorkerQuery,
} from './types.js';

/** Further options of createTask. */
export interface CreateOptions extends CallOptions {
  /** Makes retries of this creation safe for 24 hours, also from other processes. */
  idempotencyKey?: string;
  /** The W3C trace context that the task belongs to. */
  traceparent?: string;
}

/** Further options of enqueue: any other field of a creation, and those of a call. */
export type EnqueueOptions = Omit<NewTask, 'queue' | 'type' | 'payload'> & CallOptions;

/** The result of one creation: exactly one of the three is set. */
export interface CreatedTask {
  envelope?: TaskEnvelope;
  task?: Task;
  error?: ApiError;
}

const noTask = 'lubdub: POST /v1/tasks:batch: an answer without a task';

/** Tasks, events, workers, machines and queues. */
export abstract class WorkCalls extends ControlCalls {
  readonly #results = new Results(this.caller, (request, signal) => this.#wait(request, { signal }, 1));

  /**
   * Creates a task: returns the envelope of its first attempt if it has no queue, and the task if it waits in one. Without an idempotency
   * key one is generated, which makes the client's retries safe.
   */
  createTask(task: CreateTaskRequest & { queue: string }, options?: CreateOptions): Promise<Task>;
  createTask(task: CreateTaskRequest & { queue?: null }, options?: CreateOptions): Promise<TaskEnvelope>;
  createTask(task: CreateTaskRequest, options?: CreateOptions): Promise<TaskEnvelope | Task>;
  createTask(task: CreateTaskRequest, options?: CreateOptions): Promise<TaskEnvelope | Task> {
    const headers: Record<string, string> = { 'Idempotency-Key': options?.idempotencyKey || randomUUID() };
    Object.assign(headers, options?.traceparent ? { Traceparent: options.traceparent } : this.#trace([task]));
    return this.send({ method: 'POST', path: '/v1/tasks', headers }, task, options);
  }

  /**
   * The header with the client's trace context for tasks of which some have none. The header is no part of the request that an idempotency
   * key names, so that a repeat in another span is the same request.
   */
  #trace(tasks: readonly { traceparent?: string | null }[]): Record<string, string> {
    const traceparent = tasks.every((task) => task.traceparent) ? undefined : this.caller.set.traceparent?.();
    return traceparent ? { Traceparent: traceparent } : {};
  }

  /**
   * Makes up to 1,000 creations, each with its own result, in order. Those without an idempotency key are given one, and those that are
   * answered 503 or 429 are created again, as often as the client's tries allow.
   */
  async createTasks(tasks: readonly CreateTasksItem[], options?: CallOptions): Promise<CreatedTask[]> {
    const keyed = tasks.map((task) => ({ ...task, idempotencyKey: task.idempotencyKey || randomUUID() }));
    const created: CreatedTask[] = [];
    const headers = this.#trace(tasks);
    const { tries } = this.caller.set;
    for (let n = 0, pause = 0, left = keyed.map((_, i) => i); ; n++) {
      let results: Record<string, unknown>[];
      try {
        if (n > 0) await this.caller.pause(pause, options?.signal);
        results = await this.#createBatch(
          left.map((i) => keyed[i]!),
          headers,
          options,
        );
      } catch (error) {
        if (n === 0 || options?.signal?.aborted) throw error;
        return created; // the results of the others must not be lost
      }
      left.forEach((i, at) => (created[i] = readResult(results[at]!, Boolean(tasks[i]!.queue))));
      left = left.filter((i) => mayRetry(created[i]!.error));
      if (left.length === 0 || n + 1 >= tries) return created;
      pause = Math.max(...left.map((i) => retryAfterOf(created[i]!.error))) + backoff(n, maxPause);
    }
  }

  /**
   * Creates a task of a type that waits in a queue. The payload is anything that JSON can hold. Without an idempotency key one is generated,
   * which makes the client's retries safe. After an error without an answer, or a 503, the task may exist all the same: to repeat such a call
   * safely, give an idempotency key.
   */
  async enqueue(queue: string, type: string, payload?: unknown, options: EnqueueOptions = {}): Promise<Task> {
    const { signal, token, traceparent, ...fields } = options;
    const { idempotencyKey, ...request } = itemOf({ ...fields, queue, type, payload });
    return this.createTask(request, {
      signal,
      token,
      idempotencyKey: idempotencyKey ?? undefined,
      traceparent: traceparent ?? undefined,
    });
  }

  /**
   * Creates any number of tasks, in batches of at most 1,000, and yields one result for each, in order: the task, or the error, as with
   * enqueue. Nothing is created until the results are read. A batch is sent when it is full or the tasks end; what remains of it when the loop
   * ends early has been created too. Tasks that are answered 503 or 429 are created again as by createTasks. When the signal ends, its
   * reason is thrown after the results of the last answered batch; of the batch that was under way, any part may have been created.
   */
  async *enqueueMany(
    tasks: Iterable<NewTask> | AsyncIterable<NewTask>,
    options?: CallOptions,
  ): AsyncGenerator<EnqueuedTask, void, undefined> {
    const create = async (items: CreateTasksItem[]): Promise<EnqueuedTask[]> =>
      (await this.createTasks(items, options)).map(({ task, error }) => (task ? { task } : { error: error ?? new AnswerError(noTask) }));
    const ended = link(this.caller.closing, options?.signal);
    try {
      yield* inBatches(eachUntilAborted(tasks, ended.signal), create, ended.signal);
    } finally {
      ended.release();
    }
  }

  async #createBatch(
    tasks: CreateTasksItem[],
    headers: Record<string, string>,
    options: CallOptions | undefined,
  ): Promise<Record<string, unknown>[]> {
    const answer = await this.send<CreateTasksResponse>({ method: 'POST', path: '/v1/tasks:batch', headers }, { tasks }, options);
    const results = objects(answer.results);
    if (results.length === tasks.length) return results;
    throw new AnswerError(`lubdub: POST /v1/tasks:batch: ${results.length} results for ${tasks.length} tasks`);
  }

  /** A task. */
  getTask(taskId: string, options?: CallOptions): Promise<Task> {
    return this.get('/v1/tasks/' + seg(taskId), undefined, options);
  }

  /** Those of up to 1,000 tasks that have ended, at most 100, as soon as there is one; none after `waitMs`, which is 60,000 at most. */
  waitTasks(request: WaitTasksRequest, options?: CallOptions): Promise<WaitTasksResponse> {
    return this.#wait(request, options);
  }

  #wait(request: WaitTasksRequest, options?: CallOptions, tries?: number): Promise<WaitTasksResponse> {
    return this.send({ method: 'POST', path: '/v1/tasks:wait', waitMs: request.waitMs ?? 0, tries }, request, options);
  }

  /**
   * Waits until a task has ended, and returns its output. If it FAILED or was CANCELLED, this rejects with a TaskFailed, and for an unknown
   * task with an ApiError, task_not_found. When the wait ends first, the task continues. All waits of a client share one request at a time,
   * which is repeated while no server answers. The client's token must be allowed to read tasks.
   */
  result<T = unknown>(taskId: string, options: ResultOptions = {}): Promise<T> {
    return this.#results.of(taskId, options) as Promise<T>;
  }

  /** One page of tasks. */
  listTasks(query: TaskQuery = {}, options?: CallOptions): Promise<TaskList> {
    return this.get('/v1/tasks', query, options);
  }

  /** All tasks of a query, page by page. */
  tasks(query: TaskQuery = {}, options?: CallOptions): AsyncGenerator<Task, void, undefined> {
    const fetch = (pageToken?: string) => this.listTasks({ ...query, pageToken }, options);
    return pages(fetch, (page) => page.tasks, query.pageToken);
  }

  /** Requests cancellation of a task. */
  cancelTask(taskId: string, request: CancelRequest = {}, options?: CallOptions): Promise<Task> {
    return this.post('/v1/tasks/' + seg(taskId) + '/cancel', request, options);
  }

  /** Cancels some of the tasks that a selector matches; repeat with the answer's nextPageToken while there is one. */
  cancelTasks(request: CancelTasksRequest, options?: CallOptions): Promise<ActOnTasksResponse> {
    return this.post('/v1/tasks:cancel', request, options);
  }

  /** Retries some of the FAILED tasks that a selector matches; repeat with nextPageToken while there is one. */
  retryTasks(request: RetryTasksRequest, options?: CallOptions): Promise<ActOnTasksResponse> {
    return this.post('/v1/tasks:retry', request, options);
  }

  /** Creates the attempt that follows fromAttempt: returns an envelope, or the task if it waits in a queue. */
  nextAttempt(taskId: string, request: NextAttemptRequest, options?: CallOptions): Promise<TaskEnvelope | Task> {
    return this.post('/v1/tasks/' + seg(taskId) + '/attempts', request, options);
  }

  /** Counts the tasks of a run by state. */
  getRun(runId: string, options?: CallOptions): Promise<Run> {
    return this.get('/v1/runs/' + seg(runId), undefined, options);
  }

  /** Cancels all tasks of a run. */
  cancelRun(runId: string, request: CancelRequest = {}, options?: CallOptions): Promise<Run> {
    return this.post('/v1/runs/' + seg(runId) + '/cancel', request, options);
  }

  /** One page of events; for the next one set `after` to its `next`. */
  listEvents(query: EventQuery = {}, options?: CallOptions): Promise<EventList> {
    return this.get('/v1/events', query, options);
  }

  /** Events as they happen, after `query.after`, which is exclusive, or from now. */
  events(query: Omit<EventQuery, 'order' | 'pageSize'> = {}, options: EventsOptions = {}): EventStream {
    return new EventStream(this.caller, this.scoped(query), options);
  }

  /** Registers a worker. Without a registrationId one is generated, which makes the client's retries safe. */
  registerWorker(request: RegisterWorkerRequest, options?: CallOptions): Promise<RegisterWorkerResponse> {
    return this.post('/v1/workers', { registrationId: randomUUID(), ...request }, options);
  }

  /** A worker. */
  getWorker(workerId: string, options?: CallOptions): Promise<Worker> {
    return this.get('/v1/workers/' + seg(workerId), undefined, options);
  }

  /** One page of workers. */
  listWorkers(query: WorkerQuery = {}, options?: CallOptions): Promise<WorkerList> {
    return this.get('/v1/workers', query, options);
  }

  /** All workers of a query, page by page. */
  workers(query: WorkerQuery = {}, options?: CallOptions): AsyncGenerator<Worker, void, undefined> {
    const fetch = (pageToken?: string) => this.listWorkers({ ...query, pageToken }, options);
    return pages(fetch, (page) => page.workers, query.pageToken);
  }

  /** A worker's own heartbeat, with the worker's token. */
  workerHeartbeat(
    workerId: string,
    token: string,
    request: WorkerHeartbeatRequest,
    options?: CallOptions,
  ): Promise<WorkerHeartbeatResponse> {
    return this.send({ method: 'POST', path: '/v1/workers/' + seg(workerId) + '/heartbeat', token }, request, options);
  }

  /** Claims tasks of a queue, with the token of one of its workers. Without a claimId one is generated, which makes retries safe. */
  claimTasks(queue: string, token: string, request: ClaimRequest = {}, options?: CallOptions): Promise<ClaimResponse> {
    return this.send(
      { method: 'POST', path: '/v1/queues/' + seg(queue) + '/claim', token, waitMs: request.waitMs ?? 0 },
      { claimId: randomUUID(), ...request },
      options,
    );
  }

  /** Deregisters a worker, with its token in the options, or the client's. */
  deregisterWorker(workerId: string, request: DeregisterRequest = {}, options?: CallOptions): Promise<Worker> {
    return this.send({ method: 'POST', path: '/v1/workers/' + seg(workerId) + '/deregister' }, request, options);
  }

  /** Drains a worker: it finishes its tasks and gets no new ones. With its token in the options, or the client's. */
  drainWorker(workerId: string, request: DrainRequest = {}, options?: CallOptions): Promise<Worker> {
    return this.send({ method: 'POST', path: '/v1/workers/' + seg(workerId) + '/drain' }, request, options);
  }

  /** Ends a drain. */
  resumeWorker(workerId: string, request: ReasonRequest = {}, options?: CallOptions): Promise<Worker> {
    return this.post('/v1/workers/' + seg(workerId) + '/resume', request, options);
  }

  /** Ends a worker now; other workers get its tasks. It may not register again until resumeWorker. */
  offlineWorker(workerId: string, request: ReasonRequest = {}, options?: CallOptions): Promise<Worker> {
    return this.post('/v1/workers/' + seg(workerId) + '/offline', request, options);
  }

  /** Stops giving a worker new tasks. */
  cordonWorker(workerId: string, request: ReasonRequest = {}, options?: CallOptions): Promise<Worker> {
    return this.post('/v1/workers/' + seg(workerId) + '/cordon', request, options);
  }

  /** Ends a cordon. */
  uncordonWorker(workerId: string, request: ReasonRequest = {}, options?: CallOptions): Promise<Worker> {
    return this.post('/v1/workers/' + seg(workerId) + '/uncordon', request, options);
  }

  /** Drains all workers that a selector matches. */
  drainWorkers(request: DrainWorkersRequest, options?: CallOptions): Promise<DrainWorkersResponse> {
    return this.post('/v1/workers:drain', request, options);
  }

  /** Cordons all workers that a selector matches. */
  cordonWorkers(request: ActOnWorkersRequest, options?: CallOptions): Promise<ActOnWorkersResponse> {
    return this.post('/v1/workers:cordon', request, options);
  }

  /** Ends the cordons of all workers that a selector matches. */
  uncordonWorkers(request: ActOnWorkersRequest, options?: CallOptions): Promise<ActOnWorkersResponse> {
    return this.post('/v1/workers:uncordon', request, options);
  }

  /** Ends the drains of all workers that a selector matches. */
  resumeWorkers(request: ActOnWorkersRequest, options?: CallOptions): Promise<ActOnWorkersResponse> {
    return this.post('/v1/workers:resume', request, options);
  }

  /** Ends all workers that a selector matches, or that have been silent for long. */
  offlineWorkers(request: OfflineWorkersRequest, options?: CallOptions): Promise<ActOnWorkersResponse> {
    return this.post('/v1/workers:offline', request, options);
  }

  /** The best worker for a task now. */
  selectWorker(request: SelectWorkerRequest = {}, options?: CallOptions): Promise<SelectWorkerResponse> {
    return this.post('/v1/workers:select', request, options);
  }

  /** A machine. */
  getMachine(machineId: string, options?: CallOptions): Promise<Machine> {
    return this.get('/v1/machines/' + seg(machineId), undefined, options);
  }

  /** One page of machines. */
  listMachines(query: MachineQuery = {}, options?: CallOptions): Promise<MachineList> {
    return this.get('/v1/machines', query, options);
  }

  /** All machines, page by page. */
  machines(query: MachineQuery = {}, options?: CallOptions): AsyncGenerator<Machine, void, undefined> {
    const fetch = (pageToken?: string) => this.listMachines({ ...query, pageToken }, options);
    return pages(fetch, (page) => page.machines, query.pageToken);
  }

  /** Drains all workers of a machine, and those that register until resumeMachine. */
  drainMachine(machineId: string, request: DrainRequest = {}, options?: CallOptions): Promise<DrainWorkersResponse> {
    return this.post('/v1/machines/' + seg(machineId) + '/drain', request, options);
  }

  /** Ends the drain of a machine. */
  resumeMachine(machineId: string, request: ReasonRequest = {}, options?: CallOptions): Promise<ResumeMachineResponse> {
    return this.post('/v1/machines/' + seg(machineId) + '/resume', request, options);
  }

  /** Ends all workers of a machine now; they may not register again until resumeMachine. */
  offlineMachine(machineId: string, request: ReasonRequest = {}, options?: CallOptions): Promise<ActOnWorkersResponse> {
    return this.post('/v1/machines/' + seg(machineId) + '/offline', request, options);
  }

  /** All queues. */
  listQueues(order: 'asc' | 'desc' = 'asc', options?: CallOptions): Promise<QueueList> {
    return this.get('/v1/queues', { order }, options);
  }

  /** A queue. */
  getQueue(queue: string, options?: CallOptions): Promise<Queue> {
    return this.get('/v1/queues/' + seg(queue), undefined, options);
  }

  /** Stops handing out the tasks of a queue. */
  pauseQueue(queue: string, options?: CallOptions): Promise<Queue> {
    return this.post('/v1/queues/' + seg(queue) + '/pause', {}, options);
  }

  /** Ends a pause. */
  resumeQueue(queue: string, options?: CallOptions): Promise<Queue> {
    return this.post('/v1/queues/' + seg(queue) + '/resume', {}, options);
  }
}

function readResult(result: Record<string, unknown>, queued: boolean): CreatedTask {
  const status = Number(result['status']);
  if (status >= 200 && status < 300) {
    return queued ? { task: result as unknown as Task } : { envelope: result as unknown as TaskEnvelope };
  }
  return { error: new ApiError('POST /v1/tasks:batch', status, result as Partial<ErrorFields>, '', millis(result['retryAfterMs'])) };
}
