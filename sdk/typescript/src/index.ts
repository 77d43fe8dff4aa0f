export { Attempt, type TrackOptions } from './attempt.js';
export { type CallOptions } from './calls.js';
export { Client, type ClientOptions } from './client.js';
export type { Lease } from './context.js';
export type { Clock, Timer } from './clock.js';
export { AttemptEnd, Cancelled, DeadlineExceeded, EndedError, Expired, LeaseEnded, Lost, StoppedError, Superseded } from './ends.js';
export {
  AnswerError,
  ApiError,
  ClosedError,
  type ErrorCode,
  type ErrorFields,
  hasCode,
  mayRetry,
  UnansweredError,
  UsageError,
} from './errors.js';
export type { EnqueuedTask, NewTask } from './enqueue.js';
export { EventStream, type EventsOptions } from './events.js';
export { categorize, Failure, type FailureOptions, OutputError, permanent, retryAfter, Snooze } from './failure.js';
export type { EndedAttempt, Logger, Metrics } from './metrics.js';
export type { components, operations, paths } from './openapi.js';
export { type ResultOptions, TaskFailed } from './results.js';
export type { Answer, Fetch, RequestInit } from './transport.js';
export type * from './types.js';
export type * as types from './types.js';
export { verifyWebhook, type VerifyOptions, WebhookError, type WebhookHeaders, type WebhookMessage } from './verify.js';
export { version } from './version.js';
export type { CreatedTask, CreateOptions, EnqueueOptions } from './workcalls.js';
export * from './deprecated.js';
export { ForcedOfflineError, Stopping, Stuck, TaskTimeout, UnfinishedError, WorkerEnd } from './worker/ends.js';
export type { WorkerOptions } from './worker/options.js';
export { currentTask, type Handler, type Middleware, Task } from './worker/task.js';
export { Worker } from './worker/worker.js';
