import { type ApiError, type ErrorFields } from './errors.js';

/**
 * Why the signal of a tracked attempt ends: its reason is one of these. After Cancelled the attempt is still ours and wants its
 * completion; after each of the others nothing more is sent.
 */
export abstract class AttemptEnd extends Error {}

/** The task's end was asked for: stop, clean up, and complete. */
export class Cancelled extends AttemptEnd {
  override readonly name = 'Cancelled';
  /** What whoever cancelled said; empty: nothing. */
  readonly reason: string;
  constructor(reason = '') {
    super('lubdub: the task is cancelled' + (reason && ': ' + reason));
    this.reason = reason;
  }
}

/** The attempt is not ours any more. */
export class Lost extends AttemptEnd {
  override readonly name = 'Lost';
  /** What became of the task; empty where that is not known. */
  readonly state: string;
  /** Why, such as TERMINATED. */
  readonly reason: string;
  constructor(state = '', reason = '') {
    super(`lubdub: the attempt is not ours any more: ${state} ${reason}`.trimEnd());
    this.state = state;
    this.reason = reason;
  }
}

/** A newer attempt took its place. */
export class Superseded extends AttemptEnd {
  override readonly name = 'Superseded';
  /** The number of that attempt; 0 where that is not known. */
  readonly by: number;
  constructor(by = 0) {
    super(`lubdub: ${by > 0 ? `attempt ${by}` : 'a newer attempt'} took this one's place`);
    this.by = by;
  }
}

/** Lubdub has ended the attempt. */
export class Expired extends AttemptEnd {
  override readonly name = 'Expired';
  /** Why, such as HEARTBEAT_TIMEOUT. */
  readonly reason: string;
  constructor(reason = '') {
    super('lubdub: the attempt was ended: ' + reason);
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

/** No beat was accepted for as long as the attempt may be silent; with a strict lease only. */
export class LeaseEnded extends AttemptEnd {
  override readonly name = 'LeaseEnded';
  /** How long that was. */
  readonly silentMs: number;
  constructor(silentMs: number) {
    super(`lubdub: no beat was accepted for ${Math.round(silentMs)} ms, which ends the lease`);
    this.silentMs = silentMs;
  }
}

/** What a handle says that is used after its end, and the reason of its signal once it is completed. */
export class EndedError extends Error {
  override readonly name = 'EndedError';
  constructor() {
    super('lubdub: the attempt is completed or given up; make no further use of its handle');
  }
}

const reasonDeadline = 'DEADLINE_EXCEEDED';

/** What a refusal makes of an attempt; undefined: it does not end it. */
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

/** What a handler throws after a cancel that wants to say how far it had come. */
export class StoppedError extends Error {
  override readonly name = 'StoppedError';
  /** Where the cancel met the work. */
  readonly phase: string;
  /** How far it had come: anything that is JSON. */
  readonly partial: unknown;
  constructor(phase: string, partial?: unknown) {
    super('stopped in ' + phase);
    this.phase = phase;
    this.partial = partial;
  }
}
