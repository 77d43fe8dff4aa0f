import type { CompletedRequest, CreateTaskRequest, RegisterWorkerRequest, State, TaskError } from '../types.js';

/** What the server knows of a task. */
export interface FakeTask {
  taskId: string;
  state: State;
  attempt: number;
  workerId: string;
  /** How many beats were heard of this attempt. */
  beats: number;
  progressPct: number | undefined;
  message: string | undefined;
  /** Why the server ended it; empty: it did not. */
  reason: string;
  output: unknown;
  error: TaskError | undefined;
  /** What a worker said about a cancel. */
  phase: string | undefined;
  partial: unknown;
  /** How many attempts were taken from workers. */
  lost: number;
}

/** What the server knows of a worker. */
export interface FakeWorker {
  workerId: string;
  request: RegisterWorkerRequest;
  status: 'ONLINE' | 'DRAINING' | 'OFFLINE';
  /** Why it is OFFLINE, or what it said of its drain. */
  reason: string;
  /** The ids of the tasks that it has. */
  held: string[];
  beats: number;
  activeCount: number;
  /** The sums of its deltas. */
  completed: number;
  failed: number;
}

/** A request that the server has received. */
export interface FakeRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
  atMs: number;
  /** The status that it was answered with; 0: none. */
  status: number;
}

export interface TaskRecord extends FakeTask {
  request: CreateTaskRequest;
  heard: number;
  dispatchedAt: number;
  asked: boolean; // for its end
  why: string;
  told: number | undefined; // when its worker was told of that
  completion: string | undefined;
  last: { progressPct: number | null; message: string | null } | undefined;
}

export interface WorkerRecord extends Omit<FakeWorker, 'held'> {
  heard: number;
  seq: number;
}

/** An answer that is not 2xx. */
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

/** How long an attempt may be silent; 0: it lives by its worker's beat. */
export function timeoutOf(task: TaskRecord): number {
  if (!task.request.heartbeatTimeoutMs && task.request.queue) return 0;
  return task.request.heartbeatTimeoutMs ?? 90_000;
}

export type Completion = CompletedRequest;
