import { Cancelled, StoppedError } from './ends.js';
import { UsageError } from './errors.js';
import type { CompletedRequest, ErrorCategory, TaskError } from './types.js';

/** The size of a message and of a stack that are sent, in bytes. */
export const maxStack = 16 << 10;

/** The limit of a completion, in bytes. */
const maxCompletion = 256 << 10;

/** The limit of a progress message, in bytes of JSON. */
const maxMessage = 1024;

/** The limit of a checkpoint, in bytes of JSON. */
const maxCheckpoint = 16 << 10;

/** The limit of how deeply its arrays and objects are nested. */
const maxDepth = 100;

/** The longest time until the next attempt, in ms: 366 days. */
const maxDelay = 31_622_400_000;

export interface FailureOptions {
  /** Decides whether the task is retried; by default USER_CODE. */
  category?: ErrorCategory;
  /** Whether another attempt may help; by default the category decides. */
  retryable?: boolean;
  /** How long after the failure the next attempt starts, if there is one, in ms; by default the backoff of the retry policy. */
  retryAfterMs?: number;
  cause?: unknown;
}

/** An error with a failure category. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly category: ErrorCategory;
  readonly retryable: boolean | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, options: FailureOptions = {}) {
    super(message, { cause: options.cause });
    const inner = options.cause;
    this.category = options.category ?? (inner instanceof Failure ? inner.category : 'USER_CODE');
    this.retryable = options.retryable ?? (inner instanceof Failure ? inner.retryable : undefined);
    const { retryAfterMs = inner instanceof Failure ? inner.retryAfterMs : undefined } = options;
    this.retryAfterMs = retryAfterMs === undefined ? undefined : delayOf(retryAfterMs);
    if (inner instanceof Error && inner.stack) this.stack = inner.stack;
  }
}

/** Gives an error a category: DATA_QUALITY, INFRASTRUCTURE, CONFIGURATION, TIMEOUT, CANCELLED or USER_CODE. */
export function categorize(category: ErrorCategory, error: unknown): Failure {
  return new Failure(textOf(error), { category, cause: error });
}

/** Marks an error as one that no other attempt can help. */
export function permanent(error: unknown): Failure {
  return new Failure(textOf(error), { retryable: false, cause: error });
}

/** Marks an error that another attempt may help. It starts this much later, in ms, at most 366 days, if the retry policy allows one. */
export function retryAfter(error: unknown, delayMs: number): Failure {
  return new Failure(textOf(error), { retryable: true, retryAfterMs: delayMs, cause: error });
}

/**
 * Thrown by a handler that cannot do its work yet: the task returns to its queue, and the next attempt starts after this time, in ms, at
 * most 366 days. The attempt does not count against the retry policy.
 */
export class Snooze extends Error {
  override readonly name = 'Snooze';
  readonly delayMs: number;
  constructor(delayMs: number) {
    const ms = delayOf(delayMs);
    super(`snoozed for ${ms} ms`);
    this.delayMs = ms;
  }
}

/** A delay in whole ms; one below zero, as until a time that has passed, is zero. */
export function delayOf(ms: number): number {
  if (Number.isFinite(ms) && ms <= maxDelay) return Math.max(0, Math.round(ms));
  throw new UsageError(`lubdub: a task cannot wait ${ms} ms; give at most ${maxDelay}, which is 366 days`);
}

/**
 * An output cannot be sent: it is not JSON, or the completion exceeds the server's limit. Nothing was sent and the attempt continues:
 * complete it in another way.
 */
export class OutputError extends Error {
  override readonly name = 'OutputError';
}

export function textOf(error: unknown): string {
  if (error instanceof Error) return error.message || error.name;
  return error === undefined || error === null ? 'it failed without an error' : String(error);
}

/** The completion for an error that a handler threw. */
export function endingOf(error: unknown): Omit<CompletedRequest, 'attempt'> {
  if (error instanceof Snooze) return { outcome: 'SNOOZED', delayMs: error.delayMs };
  if (error instanceof Cancelled) {
    const message = cut(error.reason, maxStack);
    return { outcome: 'CANCELLED', ...(message && { error: { category: 'CANCELLED', message } }) };
  }
  return { outcome: 'FAILED', error: taskErrorOf(error) };
}

/** The error in a completion. */
function taskErrorOf(error: unknown): TaskError {
  const out: TaskError = { category: 'USER_CODE', message: cut(textOf(error), maxStack) };
  if (error instanceof Failure) {
    out.category = error.category;
    if (error.retryable !== undefined) out.retryable = error.retryable;
    if (error.retryAfterMs !== undefined) out.retryAfterMs = error.retryAfterMs;
  }
  if (error instanceof Error && error.stack) out.stackTrace = cut(error.stack, maxStack);
  return out;
}

/** Whether an error means that the handler stopped because its signal ended for this reason. */
export function meansStopped(error: unknown, reason: unknown): boolean {
  if (error instanceof StoppedError || error instanceof Cancelled) return true;
  return error instanceof Error && (error.name === 'AbortError' || (error.cause !== undefined && error.cause === reason));
}

/** Encodes a completion, once, since retries must be byte for byte the same. */
export function completionOf(request: CompletedRequest): string {
  let body: string;
  try {
    body = JSON.stringify(request, finite);
  } catch (cause) {
    throw new OutputError(`lubdub: the output is not JSON: ${textOf(cause)}`, { cause });
  }
  for (const field of ['output', 'partialProgress'] as const) {
    const kind = typeof request[field] as string;
    if (kind === 'function' || kind === 'symbol') throw new OutputError(`lubdub: the output is not JSON: it is a ${kind}`);
  }
  const size = Buffer.byteLength(body);
  if (size <= maxCompletion) return body;
  throw new OutputError(
    `lubdub: the completion has ${size} bytes, and a server takes ${maxCompletion}; put the output elsewhere and send where it is`,
  );
}

/** Encodes a checkpoint. */
export function checkpointOf(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value, finite);
  } catch (cause) {
    throw new UsageError(`lubdub: the checkpoint is not JSON: ${textOf(cause)}`, { cause });
  }
  if (text === undefined || text === 'null') throw new UsageError('lubdub: the checkpoint has no value; set any JSON but null');
  const size = Buffer.byteLength(text);
  if (size > maxCheckpoint) {
    throw new UsageError(
      `lubdub: the checkpoint has ${size} bytes, and a server takes ${maxCheckpoint}; put the data elsewhere and set where it is`,
    );
  }
  const depth = depthOf(text);
  if (depth <= maxDepth) return text;
  throw new UsageError(`lubdub: the checkpoint is nested ${depth} levels deep, and a server takes ${maxDepth}; set it as a string`);
}

/** How deeply the arrays and objects of a JSON text are nested. */
function depthOf(text: string): number {
  let [depth, deepest] = [0, 0];
  for (const [bracket] of text.replace(/"(?:[^"\\]|\\.)*"/g, '').matchAll(/[[{}\]]/g)) {
    depth += bracket === '[' || bracket === '{' ? 1 : -1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

function finite(_: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`${value} is not a JSON number`);
  return value;
}

/** Shortens a text to a number of bytes in UTF-8, between characters. */
export function cut(text: string, bytes: number): string {
  const whole = Buffer.from(text);
  if (whole.length <= bytes) return whole.toString();
  let end = bytes;
  while (end > 0 && (whole[end]! & 0xc0) === 0x80) end--;
  return whole.toString('utf8', 0, end);
}

/** Shortens a progress message to the server's limit, measured as JSON. */
export function cutMessage(text: string): string {
  let short = cut(text, maxMessage);
  for (let over = 1; (over = Buffer.byteLength(JSON.stringify(short)) - 2 - maxMessage) > 0;) {
    short = cut(short, Buffer.byteLength(short) - Math.ceil(over / 6)); // a character is at most six bytes longer in JSON
  }
  return short;
}
