/** Former names, which the next release removes. */
import type { Task, Worker } from './types.js';
import { ForcedOfflineError } from './worker/ends.js';

/** @deprecated Use types.Task. */
export type TaskRecord = Task;

/** @deprecated Use types.Worker. */
export type WorkerRecord = Worker;

/** @deprecated Use ForcedOfflineError. */
export const HeldOfflineError = ForcedOfflineError;
/** @deprecated Use ForcedOfflineError. */
export type HeldOfflineError = ForcedOfflineError;
