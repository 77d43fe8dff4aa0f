import { type ApiError, ClosedError, type ErrorFields } from './errors.js';
import type { TaskEnvelope } from './types.js';

/**
 * Why the signal of a tracked attempt ends: its reason is one of these. After Cancelled the attempt is still ours and needs a completion;
 * after the others nothing more is sent.
 */
export abstract class AttemptEnd extends Error {}

/** Cancellation was requested: stop, clean up, and complete. A handler may also throw one with its own reason to cancel its task. */
export class Cancelled extends AttemptEnd {
  override readonly name = 'Cancelled';
  /** The reason given for the cancel; empty: none. */
  readonly reason: string;
  constructor(reason = '') {
    super('lubdub: the task is cancelled' + (reason && ': ' + reason));
    this.reason = reason;
  }
}

/** The attempt is no longer ours. */
export class Lost extends AttemptEnd {
  override readonly name = 'Lost';
  /** The state of the task; empty if unknown. */
  readonly state: string;
  /** The reason, such as TERMINATED. */
  readonly reason: string;
  constructor(state = '', reason = '') {
    const why = `${state} ${reason}`.trim();
    super('lubdub: the attempt is no longer ours' + (why && ': ' + why));
    this.state = state;
    this.reason = reason;
  }
}

/** A newer attempt took its place. */
export class Superseded extends AttemptEnd {
  override readonly name = 'Superseded';
  /** The number of that attempt; 0 if unknown. */
  readonly by: number;
  constructor(by = 0) {
    super(`lubdub: ${by > 0 ? `attempt ${by}` : 'a newer attempt'} took this one's place`);
    this.by = by;
  }
}

/** Lubdub ended the attempt. */
export class Expired extends AttemptEnd {
  override readonly name = 'Expired';
  /** The reason, such as HEARTBEAT_TIMEOUT. */
  readonly reason: string;
  constructor(reason = '') {
    super('lubdub: the attempt was ended' + (reason && ': ' + reason));
    this.reason = reason;
  }
}

/** The task's deadline has passed. */
export class DeadlineExceeded extends AttemptEnd {
  override readonly name = 'DeadlineExceeded';
  constructor() {
    super("lubdub: the task's deadline has passed");
  }
}

/** No heartbeat was accepted for the heartbeat timeout; with a strict lease only. */
export class LeaseEnded extends AttemptEnd {
  override readonly name = 'LeaseEnded';
  /** How long that was. */
  readonly silentMs: number;
  constructor(silentMs: number) {
    super(`lubdub: no heartbeat was accepted for ${Math.round(silentMs)} ms; the lease has expired`);
    this.silentMs = silentMs;
  }
}

/** Thrown by a handle that is used after its end, and the reason of its signal once it is completed. */
export class EndedError extends Error {
  override readonly name = 'EndedError';
  constructor() {
    super('lubdub: the attempt is completed or abandoned; do not use its handle any more');
  }
}

/** Whether the reason of a signal means that nothing more is sent about the attempt. */
export function meansOver(reason: unknown): boolean {
  if (reason instanceof Cancelled) return false;
  return reason instanceof AttemptEnd || reason instanceof EndedError || reason instanceof ClosedError;
}

/** Throws the reason of a signal if it means that nothing more is sent about the attempt. */
export function throwIfOver({ aborted, reason }: AbortSignal): void {
  if (aborted && meansOver(reason)) throw reason;
}

const reasonDeadline = 'DEADLINE_EXCEEDED';

/** The end that a refusal means; undefined: it does not end the attempt. */
export function endOf(code: string | undefined, fields: Partial<ErrorFields>): AttemptEnd | undefined {
  switch (code) {
    case 'attempt_mismatch':
      return new Superseded(fields.expectedAttempt);
    case 'task_already_terminal':
      return fields.reason === reasonDeadline ? new DeadlineExceeded() : new Lost(fields.state, fields.reason);
    case 'task_expired':
      return fields.reason === reasonDeadline ? new DeadlineExceeded() : new Expired(fields.reason);
    default:
      return undefined;
  }
}

export function endOfError(error: unknown): AttemptEnd | undefined {
  const refused = error as Partial<ApiError> | undefined;
  return refused?.name === 'ApiError' ? endOf(refused.code, refused.fields ?? {}) : undefined;
}

/** Thrown by a handler after a cancel to report the partial progress. */
export class StoppedError extends Error {
  override readonly name = 'StoppedError';
  /** The phase that was interrupted. */
  readonly phase: string;
  /** The partial progress: any JSON. */
  readonly partial: unknown;
  constructor(phase: string, partial?: unknown) {
    super('stopped in ' + phase);
    this.phase = phase;
    this.partial = partial;
  }
}

/** How long a handler may continue after its signal has ended, in ms. */
export function graceOf({ cancelGracePeriodMs }: TaskEnvelope): number {
  return Math.max(cancelGracePeriodMs, 1000);
}
