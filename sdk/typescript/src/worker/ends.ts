import { Cancelled } from '../ends.js';
import { categorize, Failure, Snooze, textOf } from '../failure.js';

/** Further reasons why a handler's signal ends. The attempt is still ours, and an error that the handler throws is sent. */
export abstract class WorkerEnd extends Error {}

/** The worker stops. */
export class Stopping extends WorkerEnd {
  override readonly name = 'Stopping';
  constructor() {
    super('lubdub: the worker stops');
  }
}

/** The task exceeds taskTimeoutMs. */
export class TaskTimeout extends WorkerEnd {
  override readonly name = 'TaskTimeout';
  constructor(ms: number) {
    super(`lubdub: the task reached its time limit of ${ms} ms`);
  }
}

/** The task has reported no progress and set no checkpoint for watchdogMs. It has already failed. */
export class Stuck extends WorkerEnd {
  override readonly name = 'Stuck';
  constructor(ms: number) {
    super(`no progress for ${ms} ms`);
  }
}

/** An operator took the worker offline. It stops, and cannot register again until it is resumed. */
export class ForcedOfflineError extends Error {
  override readonly name = 'ForcedOfflineError';
  /** The command that lets the worker register again. */
  readonly remedy: string;
  constructor(remedy: string, cause?: unknown) {
    super(`lubdub: an operator took the worker offline; run \`${remedy}\` to let it register again`, { cause });
    this.remedy = remedy;
  }
}

/** Tasks were returned to the queue as the worker stopped. */
export class UnfinishedError extends Error {
  override readonly name = 'UnfinishedError';
  readonly taskIds: readonly string[];
  constructor(taskIds: readonly string[], cause?: unknown) {
    super(`lubdub: ${taskIds.length} tasks were not finished and were returned to the queue: ${taskIds.join(', ')}`, { cause });
    this.taskIds = taskIds;
  }
}

/** The failure to report for an error that a handler threw, whose signal may have ended for a reason. */
export function explain(error: unknown, reason: unknown): unknown {
  if (error instanceof Failure || error instanceof Snooze || error instanceof Cancelled) return error;
  if (!(reason instanceof TaskTimeout)) return error;
  return categorize('TIMEOUT', error === reason ? reason : new Error(`${reason.message}: ${textOf(error)}`, { cause: error }));
}
