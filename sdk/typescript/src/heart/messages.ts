import type { Moment } from '../clock.js';
import type { ErrorCopy, ErrorFields } from '../errors.js';
import type { Level } from '../metrics.js';
import type { Expiry } from '../persist.js';
import type { ClaimRequest, CompletedResponse, TaskEnvelope } from '../types.js';

// What the program's thread and the one that beats say to each other. All of it can be copied.

/** How far the work has come. */
export interface Said {
  pct: number;
  message?: string;
}

/** An attempt that is to be beaten for. */
export interface Hold {
  key: string;
  taskId: string;
  attempt: number;
  token: string;
  intervalMs: number;
  timeoutMs: number; // how long it may be silent
  own: boolean; // that is its own, not its worker's
  strict: boolean;
  accepted: Moment; // when what was accepted last left
  limits?: Limits; // of a worker's attempt
}

/** How long the work on an attempt may take, and how it is reported where the handler does not end. */
export interface Limits {
  since: number; // when the work began, by the monotonic clock
  taskTimeoutMs: number; // 0: no limit
  graceMs: number; // how long the handler has after that
  watchdogMs: number; // 0: no limit
  urls: string[];
  expires?: Expiry; // the token
}

/** One registration of a worker. */
export interface Session {
  workerId: string;
  token: string;
  intervalMs: number;
  timeoutMs: number;
  accepted: Moment;
}

/** How a worker stops. */
export interface Stops {
  hardStopMs: number;
  bySignal: boolean; // at SIGTERM and SIGINT
}

/** What is counted of a worker's work, since it began. */
export interface Work {
  active: number;
  completed: number;
  failed: number;
}

/** A claim, which is sent until it is answered. */
export interface ClaimOrder {
  queue: string;
  request: ClaimRequest & { waitMs: number };
}

/** What a claim brought; nothing: it was given up. */
export interface Claimed {
  tasks?: TaskEnvelope[];
  gone?: string; // the worker must register again, and why
  failure?: ErrorCopy;
}

/** To whoever beats. A crew is a worker, by its number. */
export type Order =
  | { do: 'hold'; hold: Hold; urls: string[] }
  | { do: 'carry'; hold: Hold; crew: number }
  | { do: 'list'; key: string; taskId: string; attempt: number; crew: number }
  | { do: 'join'; crew: number; stops: Stops }
  | { do: 'stop'; crew: number; at: number } // the worker stops since then
  | { do: 'pong' }
  | { do: 'claim'; crew: number; claim: ClaimOrder; ticket: number }
  | { do: 'unclaim'; crew: number }
  | { do: 'progress'; key: string; said: Said }
  | { do: 'ending'; key: string; crew: number; isOver: boolean } // its completion is sent from now on, or is settled
  | { do: 'giveBack'; key: string } // it stays in the inventory, and nothing limits it
  | { do: 'release'; key: string; ticket: number; said?: Said }
  | { do: 'session'; crew: number; session: Session }
  | { do: 'work'; crew: number; work: Work }
  | { do: 'probe'; crew: number; host: string; port: number; ticket: number }
  | { do: 'leave'; crew: number; ticket: number };

/** From whoever beats. */
export type News =
  | { is: 'ended'; key: string; code: string; fields: Partial<ErrorFields> }
  | { is: 'leaseEnded'; key: string; silentMs: number }
  | { is: 'cancel'; key: string; reason: string }
  | { is: 'token'; key: string; token: string; lastsMs: number }
  | { is: 'accepted'; key: string; sent: Moment; timeoutMs: number } // of strict leases only
  | { is: 'timeUp'; key: string; limit: 'task' | 'watchdog' } // the handler is to end
  | { is: 'reporting'; key: string } // it is completed as TIMEOUT from here on
  | { is: 'reported'; key: string; answer?: CompletedResponse; failure?: ErrorCopy }
  | { is: 'ping' }
  | { is: 'stopping'; crew: number; at: number } // a signal was received
  | { is: 'done'; ticket: number; said?: Said; port?: number; error?: string; claimed?: Claimed; reported?: boolean } // said: what no server has acknowledged
  | { is: 'answered'; crew: number; workerId: string; session: Session; shouldDrain: boolean; drainDeadline?: string }
  | { is: 'gone'; crew: number; workerId: string; why: string; forced: boolean }
  | { is: 'beat'; result: 'ok' | 'refused' | 'unanswered'; attempts: number; tookMs: number; left: number[] }
  | { is: 'claimed'; result: 'ok' | 'refused' | 'unanswered'; tasks: number }
  | { is: 'refused'; code: string }
  | { is: 'log'; level: Level; message: string; fields: object };

export type Emit = (news: News) => void;
