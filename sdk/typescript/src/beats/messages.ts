import type { Moment } from '../clock.js';
import type { ErrorCopy } from '../copies.js';
import type { ErrorFields } from '../errors.js';
import type { Level } from '../metrics.js';
import type { Expiry } from '../persist.js';
import type { ClaimRequest, CompletedResponse, TaskEnvelope } from '../types.js';

// The messages between the program's main thread and the heartbeat thread. All of them can be cloned.

/** Reported progress, and a checkpoint as JSON text; what is absent was not reported. */
export interface ProgressUpdate {
  pct?: number;
  message?: string;
  details?: string;
}

/** An attempt that needs heartbeats. */
export interface Hold {
  key: string;
  taskId: string;
  attempt: number;
  token: string;
  intervalMs: number;
  timeoutMs: number; // the heartbeat timeout
  own: boolean; // that is its own, not its worker's
  strict: boolean;
  accepted: Moment; // when the last accepted request was sent
  limits?: Limits; // of a worker's attempt
}

/** The time limits of an attempt, and how to report it if the handler does not return. */
export interface Limits {
  since: number; // when the work began, by the monotonic clock
  taskTimeoutMs: number; // 0: no limit
  graceMs: number; // how long the handler has after that
  watchdogMs: number; // 0: no limit
  urls: string[];
  expires?: Expiry; // of the token
}

/** One registration of a worker. */
export interface Session {
  workerId: string;
  token: string;
  intervalMs: number;
  timeoutMs: number;
  accepted: Moment;
  /** The server takes completions together. */
  exchange: boolean;
}

/** How a worker stops. */
export interface Stops {
  hardStopMs: number;
  bySignal: boolean; // at SIGTERM and SIGINT
}

/** The counts of a worker's tasks since it started. */
export interface Work {
  active: number;
  completed: number;
  failed: number;
}

/** A claim, which is sent until it is answered. */
export interface ClaimCommand {
  queue: string;
  request: ClaimRequest & { waitMs: number };
}

/** The result of a claim; empty: it was cancelled. */
export interface Claimed {
  tasks?: TaskEnvelope[];
  gone?: string; // the worker must register again, and why
  failure?: ErrorCopy;
}

/** To the heartbeat thread. A worker is identified by its number. */
export type Command =
  | { do: 'hold'; hold: Hold; urls: string[] }
  | { do: 'carry'; hold: Hold; workerNumber: number }
  | { do: 'list'; key: string; taskId: string; attempt: number; workerNumber: number }
  | { do: 'join'; workerNumber: number; stops: Stops }
  | { do: 'stop'; workerNumber: number; at: number } // the worker has been stopping since then
  | { do: 'pong' }
  | { do: 'claim'; workerNumber: number; claim: ClaimCommand; ticket: number }
  | { do: 'unclaim'; workerNumber: number }
  | { do: 'child'; pid: number; isRunning: boolean } // a child process runs an attempt, or does not any more
  | { do: 'progress'; key: string; update: ProgressUpdate }
  | { do: 'ending'; key: string; workerNumber: number; isOver: boolean } // its completion is sent from now on, or is settled
  | { do: 'giveBack'; key: string } // it stays in the inventory, without time limits
  | { do: 'release'; key: string; ticket: number; update?: ProgressUpdate }
  | { do: 'session'; workerNumber: number; session: Session }
  | { do: 'work'; workerNumber: number; work: Work }
  | { do: 'probe'; workerNumber: number; host: string; port: number; ticket: number }
  | { do: 'leave'; workerNumber: number; ticket: number };

/** From the heartbeat thread. */
export type Notice =
  | { is: 'ended'; key: string; code: string; fields: Partial<ErrorFields> }
  | { is: 'leaseEnded'; key: string; silentMs: number }
  | { is: 'cancel'; key: string; reason: string }
  | { is: 'token'; key: string; token: string; lastsMs: number }
  | { is: 'accepted'; key: string; sent: Moment; timeoutMs: number; at: number } // with strict leases, and once per attempt of a worker
  | { is: 'timeUp'; key: string; limit: 'task' | 'watchdog' } // the handler must end
  | { is: 'reporting'; key: string } // the heartbeat thread completes it as TIMEOUT
  | { is: 'reported'; key: string; answer?: CompletedResponse; failure?: ErrorCopy }
  | { is: 'ping' }
  | { is: 'stopping'; workerNumber: number; at: number } // a signal was received
  | { is: 'done'; ticket: number; update?: ProgressUpdate; port?: number; error?: string; claimed?: Claimed; reported?: boolean } // update: not acknowledged yet
  | { is: 'answered'; workerNumber: number; workerId: string; session: Session; shouldDrain: boolean; drainDeadline?: string }
  | { is: 'gone'; workerNumber: number; workerId: string; why: string; forced: boolean }
  | { is: 'beat'; result: 'ok' | 'refused' | 'unanswered'; attempts: number; tookMs: number; left: number[] }
  | { is: 'claimed'; result: 'ok' | 'refused' | 'unanswered'; tasks: number }
  | { is: 'refused'; code: string }
  | { is: 'log'; level: Level; message: string; fields: object };

export type Emit = (notice: Notice) => void;
