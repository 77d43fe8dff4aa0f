import type { components } from './openapi.js';

/** The fields of a refusal, those that apply. */
export type ErrorFields = components['schemas']['Error'];

/** The error codes of the API. */
export type ErrorCode =
  | 'invalid_request'
  | 'invalid_id'
  | 'invalid_cursor'
  | 'invalid_json'
  | 'unknown_field'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'task_not_found'
  | 'run_not_found'
  | 'worker_not_found'
  | 'machine_not_found'
  | 'schedule_not_found'
  | 'schedule_exists'
  | 'no_workers_match'
  | 'webhook_not_found'
  | 'delivery_not_found'
  | 'method_not_allowed'
  | 'request_timeout'
  | 'task_exists'
  | 'idempotency_mismatch'
  | 'attempt_mismatch'
  | 'task_already_terminal'
  | 'task_without_queue'
  | 'worker_draining'
  | 'no_fresh_workers'
  | 'no_matching_workers'
  | 'no_capacity'
  | 'webhook_exists'
  | 'webhook_managed'
  | 'webhook_disabled'
  | 'worker_offline'
  | 'worker_held_offline'
  | 'task_expired'
  | 'body_too_large'
  | 'unsupported_media_type'
  | 'misdirected_request'
  | 'headers_too_large'
  | 'internal_error'
  | 'overloaded'
  | 'store_unavailable'
  | 'issuer_unavailable';

/** A refusal: an answer other than 2xx. It never contains a token. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** The HTTP status. */
  readonly status: number;
  /** The error code, such as task_expired; empty if the answer is not Lubdub's, as with a proxy. */
  readonly code: ErrorCode | '';
  /** The other fields of the answer. */
  readonly fields: Partial<ErrorFields>;
  /** Identifies the call in the server's log; empty if the answer had none. */
  readonly requestId: string;
  /** How long the server asks to wait, in ms; 0: not given. */
  readonly retryAfterMs: number;
  /** Method and path of the call. */
  readonly operation: string;

  constructor(operation: string, status: number, fields: Partial<ErrorFields>, requestId = '', retryAfterMs = 0) {
    const code = typeof fields.error === 'string' ? fields.error : '';
    const request = requestId ? ` (request ${requestId})` : '';
    super(`lubdub: ${operation}: ${status} ${code}${fields.message ? `: ${fields.message}` : ''}${request}`);
    this.status = status;
    this.code = code as ErrorCode;
    this.fields = fields;
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
    this.operation = operation;
  }
}

/** No server answered, or its answer was cut off; the cause has the details. */
export class UnansweredError extends Error {
  override readonly name = 'UnansweredError';
  /** The server cannot have received the call. */
  readonly notSent: boolean;

  constructor(operation: string, message: string, notSent: boolean, cause?: unknown) {
    super(`lubdub: ${operation}: ${message}`, { cause });
    this.notSent = notSent;
  }
}

/** An answer did not follow the API. The call is not retried. */
export class AnswerError extends Error {
  override readonly name = 'AnswerError';
}

/** The SDK was used in a way that cannot work; the message names the remedy. Nothing was sent. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The error of calls on a closed client, and the reason of signals that it ended. */
export class ClosedError extends Error {
  override readonly name = 'ClosedError';
  constructor() {
    super('lubdub: the client is closed');
  }
}

/** Whether an error means that the worker is not registered, or may no longer act: it must register again. */
export function isGone(error: unknown): boolean {
  return hasCode(error, 'worker_not_found', 'worker_offline') || (error instanceof ApiError && error.status === 401);
}

/** Whether an error means that an operator took the worker offline, until it is resumed. */
export function isHeld(error: unknown): boolean {
  return hasCode(error, 'worker_offline') && error.fields.reason === 'FORCED_OFFLINE';
}

/** Whether an error is a refusal with one of these codes. */
export function hasCode<C extends ErrorCode>(error: unknown, ...codes: C[]): error is ApiError & { readonly code: C } {
  return error instanceof ApiError && (codes as string[]).includes(error.code);
}

/** Whether the call may succeed later: there was no answer, or the server asks to retry. */
export function mayRetry(error: unknown): boolean {
  if (error instanceof ApiError) return [408, 429, 502, 503, 504].includes(error.status);
  return error instanceof UnansweredError;
}

/** How long the server asks to wait, in ms; 0: not given. */
export function retryAfterOf(error: unknown): number {
  return error instanceof ApiError ? error.retryAfterMs : 0;
}
