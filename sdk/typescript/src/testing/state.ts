import type { CompletedRequest, CreateTaskRequest, Progress, RegisterWorkerRequest, State, TaskError } from '../types.js';

/** The state of a task. */
export interface FakeTask {
  taskId: string;
  state: State;
  attempt: number;
  workerId: string;
  /** The number of heartbeats of this attempt. */
  beats: number;
  progressPct: number | undefined;
  message: string | undefined;
  /** The last checkpoint of any attempt. */
  details: unknown;
  /** Why the server ended it; empty: it did not. */
  reason: string;
  output: unknown;
  error: TaskError | undefined;
  /** The phase that a worker reported after a cancel. */
  phase: string | undefined;
  partial: unknown;
  /** How many attempts were taken from workers. */
  lost: number;
  /** How many attempts have failed. */
  failures: number;
}

/** The state of a worker. */
export interface FakeWorker {
  workerId: string;
  request: RegisterWorkerRequest;
  status: 'ONLINE' | 'DRAINING' | 'OFFLINE';
  /** Why it is OFFLINE, or the reason of its drain. */
  reason: string;
  /** The ids of its tasks. */
  held: string[];
  beats: number;
  activeCount: number;
  /** The sums of its deltas. */
  completed: number;
  failed: number;
}

/** A request that the server received. */
export interface FakeRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
  atMs: number;
  /** The status of the answer; 0: none. */
  status: number;
}

export interface TaskRecord extends FakeTask {
  request: CreateTaskRequest;
  lastBeat: number;
  readyAt: number; // since when it could be claimed
  dispatchedAt: number;
  cancelRequested: boolean; // cancellation was requested
  why: string;
  notifiedAt: number | undefined; // when its worker was notified
  completion: { raw: string; answer: object } | undefined; // the last accepted one
  last: Progress | undefined;
}

export interface WorkerRecord extends Omit<FakeWorker, 'held'> {
  lastBeat: number;
  seq: number;
}

/** An answer other than 2xx. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  readonly fields: object;
  constructor(status: number, code: string, message: string, fields: object = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.fields = fields;
  }

  body(): object {
    return { error: this.code, message: this.message, ...this.fields };
  }
}

export function isOver(task: TaskRecord): boolean {
  return ['SUCCEEDED', 'FAILED', 'CANCELLED'].includes(task.state);
}

/** Whether a failure of this kind is worth another attempt, unless its error states it. */
const retryable = ['USER_CODE', 'INFRASTRUCTURE', 'TIMEOUT'];

/** The delay of the next attempt after a failure, in ms; undefined: no attempt follows. */
export function retryDelayOf(task: TaskRecord, error: TaskError): number | undefined {
  const { queue, retry } = task.request;
  const { maxAttempts, initialBackoffMs, multiplier, maxBackoffMs } = retry ?? {};
  if (!queue || task.cancelRequested || !(error.retryable ?? retryable.includes(error.category))) return undefined;
  if (task.failures >= (maxAttempts ?? 3)) return undefined;
  const backoff = (initialBackoffMs ?? 1000) * (multiplier ?? 2) ** (task.failures + task.lost - 1);
  return error.retryAfterMs ?? Math.min(backoff, maxBackoffMs ?? 60_000);
}

/** The heartbeat timeout of an attempt; 0: its worker's applies. */
export function timeoutOf(task: TaskRecord): number {
  if (!task.request.heartbeatTimeoutMs && task.request.queue) return 0;
  return task.request.heartbeatTimeoutMs ?? 90_000;
}

export type Completion = CompletedRequest;
