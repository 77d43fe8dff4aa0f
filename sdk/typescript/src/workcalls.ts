import { randomUUID } from 'node:crypto';
import { eachUntilAborted, link } from './abort.js';
import { maxPause, seg } from './call.js';
import { backoff } from './clock.js';
import type { CallOptions } from './calls.js';
import { AnswerError, ApiError, type ErrorFields, mayRetry, retryAfterOf } from './errors.js';
import { type EnqueuedTask, inBatches, itemOf, type NewTask } from './enqueue.js';
import { EventStream, type EventsOptions } from './events.js';
import { GeneratedCalls } from './generatedcalls.js';
import { type ResultOptions, Results } from './results.js';
import { millis, objects } from './answers.js';
import type {
  CreateTaskRequest,
  CreateTasksItem,
  CreateTasksResponse,
  EventList,
  EventQuery,
  HeartbeatsRequest,
  HeartbeatsResponse,
  Task,
  TaskEnvelope,
  WaitTasksRequest,
  WaitTasksResponse,
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

/** All calls: besides the generated ones, those that take or make more than one request. */
export abstract class WorkCalls extends GeneratedCalls {
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

  /** One page of events; for the next one set `after` to its `next`. */
  listEvents(query: EventQuery = {}, options?: CallOptions): Promise<EventList> {
    return this.get('/v1/events', query, options);
  }

  /** Events as they happen, after `query.after`, which is exclusive, or from now. */
  events(query: Omit<EventQuery, 'order' | 'pageSize'> = {}, options: EventsOptions = {}): EventStream {
    return new EventStream(this.caller, this.scoped(query), options);
  }

  /** Sends heartbeats of up to 1,000 attempts. Each includes its token, or token is that of the worker that holds them all. */
  heartbeats(request: HeartbeatsRequest, token = '', options?: CallOptions): Promise<HeartbeatsResponse> {
    return this.send({ method: 'POST', path: '/v1/heartbeats', token, open: token === '' }, request, options);
  }

  /** The server's OpenAPI document. */
  openApi(options?: CallOptions): Promise<Record<string, unknown>> {
    return this.send({ method: 'GET', path: '/openapi.json', open: true }, undefined, options);
  }
}

function readResult(result: Record<string, unknown>, queued: boolean): CreatedTask {
  const status = Number(result['status']);
  if (status >= 200 && status < 300) {
    return queued ? { task: result as unknown as Task } : { envelope: result as unknown as TaskEnvelope };
  }
  return { error: new ApiError('POST /v1/tasks:batch', status, result as Partial<ErrorFields>, '', millis(result['retryAfterMs'])) };
}
