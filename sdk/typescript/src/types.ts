import type { components, operations } from './openapi.js';

type Schemas = components['schemas'];

/** Any JSON value may be a payload. The generated types require an index signature, which interfaces lack. */
type AnyPayload<T> = Omit<T, 'payload'> & { payload?: unknown };

export type ActOnTasksResponse = Schemas['ActOnTasksResponse'];
export type ActOnWorkersRequest = Schemas['ActOnWorkersRequest'];
export type ActOnWorkersResponse = Schemas['ActOnWorkersResponse'];
export type AskedFire = Schemas['AskedFire'];
export type AskedFires = Schemas['AskedFires'];
export type BackfillRequest = Schemas['BackfillRequest'];
export type CancelRequest = Schemas['CancelRequest'];
export type CancelTask = Schemas['CancelTask'];
export type CancelTasksRequest = Schemas['CancelTasksRequest'];
export type ChangeScheduleRequest = Schemas['ChangeScheduleRequest'];
export type ClaimRequest = Schemas['ClaimRequest'];
export type ClaimResponse = Schemas['ClaimResponse'];
export type CompletedRequest = Schemas['CompletedRequest'];
export type CompletedResponse = Schemas['CompletedResponse'];
export type CreateScheduleRequest = Schemas['CreateScheduleRequest'];
export type CreateTaskRequest = AnyPayload<Schemas['CreateTaskRequest']>;
export type CreateTasksItem = AnyPayload<Schemas['CreateTasksItem']>;
export type CreateTasksRequest = Schemas['CreateTasksRequest'];
export type CreateTasksResponse = Schemas['CreateTasksResponse'];
export type CreateTokenRequest = Schemas['CreateTokenRequest'];
export type CreateTokenResponse = Schemas['CreateTokenResponse'];
export type CreateWebhookRequest = Schemas['CreateWebhookRequest'];
export type DeleteWebhookResponse = Schemas['DeleteWebhookResponse'];
export type DeletedSchedule = Schemas['DeletedSchedule'];
export type DeregisterRequest = Schemas['DeregisterRequest'];
export type DrainRequest = Schemas['DrainRequest'];
export type DrainWorkersRequest = Schemas['DrainWorkersRequest'];
export type DrainWorkersResponse = Schemas['DrainWorkersResponse'];
export type Event = Schemas['Event'];
export type EventGap = Schemas['EventGap'];
export type EventList = Schemas['EventList'];
export type Evidence = Schemas['Evidence'];
export type FiredResponse = Schemas['FiredResponse'];
export type Health = Schemas['Health'];
export type HeartbeatItem = Schemas['HeartbeatItem'];
export type HeartbeatRequest = Schemas['HeartbeatRequest'];
export type HeartbeatResponse = Schemas['HeartbeatResponse'];
export type HeartbeatResult = Schemas['HeartbeatResult'];
export type HeartbeatsRequest = Schemas['HeartbeatsRequest'];
export type HeartbeatsResponse = Schemas['HeartbeatsResponse'];
export type HistoryEntry = Schemas['HistoryEntry'];
export type Levels = Schemas['Levels'];
export type LostTask = Schemas['LostTask'];
export type Machine = Schemas['Machine'];
export type MachineCounts = Schemas['MachineCounts'];
export type MachineDrain = Schemas['MachineDrain'];
export type MachineList = Schemas['MachineList'];
export type NextAttemptRequest = Schemas['NextAttemptRequest'];
export type NextFires = Schemas['NextFires'];
export type OfflineWorkersRequest = Schemas['OfflineWorkersRequest'];
export type Placement = Schemas['Placement'];
export type Progress = Schemas['Progress'];
export type Queue = Schemas['Queue'];
export type QueueList = Schemas['QueueList'];
export type QueueType = Schemas['QueueType'];
export type QueueWorkers = Schemas['QueueWorkers'];
export type ReasonRequest = Schemas['ReasonRequest'];
export type RedeliverRequest = Schemas['RedeliverRequest'];
export type RedeliverResponse = Schemas['RedeliverResponse'];
export type RegisterWorkerRequest = Schemas['RegisterWorkerRequest'];
export type ExchangeRequest = Schemas['ExchangeRequest'];
export type ExchangeResponse = Schemas['ExchangeResponse'];
export type RegisterWorkerResponse = Schemas['RegisterWorkerResponse'];
export type Rejected = Schemas['Rejected'];
export type ReleaseRequest = Schemas['ReleaseRequest'];
export type ReleaseResponse = Schemas['ReleaseResponse'];
export type ResumeMachineResponse = Schemas['ResumeMachineResponse'];
export type Retry = Schemas['Retry'];
export type RetryPolicy = Schemas['RetryPolicy'];
export type RetryTasksRequest = Schemas['RetryTasksRequest'];
export type RevokeTokensRequest = Schemas['RevokeTokensRequest'];
export type RevokeTokensResponse = Schemas['RevokeTokensResponse'];
export type RotateSecretRequest = Schemas['RotateSecretRequest'];
export type Run = Schemas['Run'];
export type Schedule = Schemas['Schedule'];
export type ScheduleFire = Schemas['ScheduleFire'];
export type ScheduleList = Schemas['ScheduleList'];
export type Scope = Schemas['Scope'];
export type ScopeList = Schemas['ScopeList'];
export type SelectWorkerRequest = Schemas['SelectWorkerRequest'];
export type SelectWorkerResponse = Schemas['SelectWorkerResponse'];
export type SilentSelector = Schemas['SilentSelector'];
export type StartedRequest = Schemas['StartedRequest'];
export type StartedResponse = Schemas['StartedResponse'];
export type Stats = Schemas['Stats'];
export type StatsCounts = Schemas['StatsCounts'];
export type StatsRates = Schemas['StatsRates'];
export type StatsSeries = Schemas['StatsSeries'];
export type StatsStep = Schemas['StatsStep'];
export type SweepResponse = Schemas['SweepResponse'];
export type SweepResults = Schemas['SweepResults'];
export type SweptTasks = Schemas['SweptTasks'];
export type SweptWorkers = Schemas['SweptWorkers'];
export type System = Schemas['System'];
export type SystemBrake = Schemas['SystemBrake'];
export type SystemReconciler = Schemas['SystemReconciler'];
export type SystemRedis = Schemas['SystemRedis'];
export type SystemReplica = Schemas['SystemReplica'];
export type SystemShard = Schemas['SystemShard'];
export type SystemWebhooks = Schemas['SystemWebhooks'];
export type Task = Schemas['Task'];
export type TaskEnvelope = Schemas['TaskEnvelope'];
export type TaskError = Schemas['TaskError'];
export type TaskList = Schemas['TaskList'];
export type TaskSelector = Schemas['TaskSelector'];
export type UpdateWebhookRequest = Schemas['UpdateWebhookRequest'];
export type VerdictCounts = Schemas['VerdictCounts'];
export type VerdictGroup = Schemas['VerdictGroup'];
export type Version = Schemas['Version'];
export type WaitTasksRequest = Schemas['WaitTasksRequest'];
export type WaitTasksResponse = Schemas['WaitTasksResponse'];
export type Webhook = Schemas['Webhook'];
export type WebhookDelivery = Schemas['WebhookDelivery'];
export type WebhookDeliveryList = Schemas['WebhookDeliveryList'];
export type WebhookList = Schemas['WebhookList'];
export type WebhookResponse = Schemas['WebhookResponse'];
export type Worker = Schemas['Worker'];
export type WorkerCordon = Schemas['WorkerCordon'];
export type WorkerHeartbeatRequest = Schemas['WorkerHeartbeatRequest'];
export type WorkerHeartbeatResponse = Schemas['WorkerHeartbeatResponse'];
export type WorkerLevels = Schemas['WorkerLevels'];
export type WorkerList = Schemas['WorkerList'];
export type WorkerSelector = Schemas['WorkerSelector'];
export type WorkerTaskItem = Schemas['WorkerTaskItem'];
export type Index = Schemas['Index'];
export type IndexLinks = Schemas['IndexLinks'];

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
