import { StoppedError } from './ends.js';
import type { CompletedRequest, ErrorCategory, TaskError } from './types.js';

/** How much of a message and of a stack is sent, in bytes. */
const maxStack = 16 << 10;

/** How large a completion may be, in bytes. */
const maxCompletion = 256 << 10;

/** How long a message of a progress may be, in bytes of JSON. */
const maxMessage = 1024;

export interface FailureOptions {
  /** Decides whether the task is tried again; USER_CODE unless told. */
  category?: ErrorCategory;
  /** Whether another try may help; unless told, as the category has it. */
  retryable?: boolean;
  cause?: unknown;
}

/** An error that says what kind of failure it is. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly category: ErrorCategory;
  readonly retryable: boolean | undefined;

  constructor(message: string, options: FailureOptions = {}) {
    super(message, { cause: options.cause });
    const inner = options.cause;
    this.category = options.category ?? (inner instanceof Failure ? inner.category : 'USER_CODE');
    this.retryable = options.retryable ?? (inner instanceof Failure ? inner.retryable : undefined);
    if (inner instanceof Error && inner.stack) this.stack = inner.stack;
  }
}

/** Makes an error one of a category: DATA_QUALITY, INFRASTRUCTURE, CONFIGURATION, TIMEOUT, CANCELLED or USER_CODE. */
export function categorize(category: ErrorCategory, error: unknown): Failure {
  return new Failure(textOf(error), { category, cause: error });
}

/** Makes an error one that no other try can help. */
export function permanent(error: unknown): Failure {
  return new Failure(textOf(error), { retryable: false, cause: error });
}

/**
 * An output cannot be sent: it is not JSON, or the completion would be larger than a server takes. Nothing was sent and the attempt goes
 * on: complete it otherwise.
 */
export class OutputError extends Error {
  override readonly name = 'OutputError';
}

export function textOf(error: unknown): string {
  if (error instanceof Error) return error.message || error.name;
  return error === undefined || error === null ? 'it failed, and nobody said why' : String(error);
}

/** What the server is told of an error. */
export function taskErrorOf(error: unknown): TaskError {
  const out: TaskError = { category: 'USER_CODE', message: cut(textOf(error), maxStack) };
  if (error instanceof Failure) {
    out.category = error.category;
    if (error.retryable !== undefined) out.retryable = error.retryable;
  }
  if (error instanceof Error && error.stack) out.stackTrace = cut(error.stack, maxStack);
  return out;
}

/** Whether an error says that the handler has stopped because its signal ended for this reason. */
export function saysStopped(error: unknown, reason: unknown): boolean {
  if (error instanceof StoppedError || error === reason) return true;
  return error instanceof Error && (error.name === 'AbortError' || (error.cause !== undefined && error.cause === reason));
}

/** Writes a completion; once, since repeats are the same byte for byte. */
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

function finite(_: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`${value} is no number of JSON`);
  return value;
}

/** Shortens a text to so many bytes of UTF-8, between characters. */
export function cut(text: string, bytes: number): string {
  const whole = Buffer.from(text);
  if (whole.length <= bytes) return whole.toString();
  let end = bytes;
  while (end > 0 && (whole[end]! & 0xc0) === 0x80) end--;
  return whole.toString('utf8', 0, end);
}

/** Shortens a message of a progress to what a server keeps, counted as JSON text. */
export function cutMessage(text: string): string {
  let short = cut(text, maxMessage);
  for (let over = 1; (over = Buffer.byteLength(JSON.stringify(short)) - 2 - maxMessage) > 0;) {
    short = cut(short, Buffer.byteLength(short) - Math.ceil(over / 6)); // a character is at most six bytes longer in JSON
  }
  return short;
}
