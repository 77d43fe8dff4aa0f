import type { CompletedRequest, Task, TaskError, Worker } from './generatedtypes.js';
import type { components, operations } from './openapi.js';

export type * from './generatedtypes.js';

type Schemas = components['schemas'];

/** Any JSON value may be a payload. The generated types require an index signature, which interfaces lack. */
type AnyPayload<T> = Omit<T, 'payload'> & { payload?: unknown };

export type CreateTaskRequest = AnyPayload<Schemas['CreateTaskRequest']>;
export type CreateTasksItem = AnyPayload<Schemas['CreateTasksItem']>;

/** The states of tasks, workers and machines, and the outcomes of an attempt. */
export type State = Task['state'];
export type Outcome = CompletedRequest['outcome'];
export type ErrorCategory = TaskError['category'];
export type WorkerStatus = Worker['status'];

type QueryOf<K extends keyof operations> = Omit<
  NonNullable<operations[K]['parameters']['query']>,
  'tenantId' | 'workspaceId' | 'label' | 'state' | 'type' | 'by'
>;

/** Labels are given as an object, lists as arrays; undefined fields are ignored. */
export type TaskQuery = QueryOf<'listTasks'> & { state?: State | State[]; type?: string; labels?: Record<string, string> };
export type WorkerQuery = QueryOf<'listWorkers'> & { type?: string; labels?: Record<string, string> };
export type MachineQuery = QueryOf<'listMachines'>;
export type ScheduleQuery = QueryOf<'listSchedules'>;
export type WebhookQuery = QueryOf<'listWebhooks'>;
export type DeliveryQuery = QueryOf<'listDeliveries'>;
export type ScopeQuery = QueryOf<'listScopes'>;
/** steps: how many of the newest steps of the series, 1 to 360; without it all of the last hour. */
export type StatsQuery = QueryOf<'getStats'>;
/** by: machineId, version, type, queue, reason, workerId, label:<name>; none: one group of all. */
export type VerdictQuery = QueryOf<'countVerdicts'> & { type?: string; by?: string[] };
/** type: names such as task.zombie, or families such as task.*. */
export type EventQuery = QueryOf<'listEvents'> & { type?: string | string[] };
