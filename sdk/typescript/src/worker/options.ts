import type { Client } from '../client.js';
import type { Lease } from '../context.js';
import { UsageError } from '../errors.js';
import type { Logger } from '../metrics.js';

export interface WorkerOptions {
  /** Unless told, a client of LUBDUB_URL and LUBDUB_TOKEN or LUBDUB_TOKEN_FILE, which is closed when the worker ends. */
  client?: Client;
  /** The types that are claimed, each of which needs a handler; unless told, those that have one. */
  types?: readonly string[];
  /** What tasks may ask for, besides node and its version, which are found. */
  runtimes?: readonly string[];
  /** What workers are selected by; POD_NAME, POD_NAMESPACE, NODE_NAME, ZONE and DEPLOYMENT in the environment add to it. */
  labels?: Record<string, string>;
  /** For people, and part of what tells this process from others on its machine; unless told, POD_NAME or the program's name. */
  name?: string;
  /** The host; unless told, NODE_NAME or the host's name. */
  machineId?: string;
  /** That of the program; unless told, what npm says. */
  version?: string;
  /** How many tasks are done at once; 100 unless told. */
  concurrency?: number;
  /** What becomes of work while no server answers; unless told, as the client says. */
  lease?: Lease;
  /**
   * How long a task may take here, in ms: its signal ends with TaskTimeout, and it fails as TIMEOUT. Unless told, 5 minutes for tasks
   * without a runTimeoutMs of their own; 0: no limit.
   */
  taskTimeoutMs?: number;
  /**
   * How long after it was told to stop the worker lets handlers go on, in ms. Where neither stop is given, they follow the environment's
   * TERMINATION_GRACE_PERIOD_SECONDS; of 30 s, which holds without it, this is 20 s.
   */
  softStopMs?: number;
  /**
   * How long after it was told to stop what still runs is given back, in ms; of a grace of 30 s, 25 s. It must lie within the grace
   * that the process has, such as Kubernetes' terminationGracePeriodSeconds, which is checked where TERMINATION_GRACE_PERIOD_SECONDS
   * names it.
   */
  hardStopMs?: number;
  /** Ends tasks that report no progress for so many ms: they fail as TIMEOUT. Off unless told. */
  watchdogMs?: number;
  /**
   * Has the process answer GET on a port: 200 while its beats are on time, 503 when they are not. The url is told to the server, which asks
   * there before it takes the worker for dead; unless told, http://<host's name>:<port>/.
   */
  probe?: { port: number; host?: string; url?: string };
  /** Is told what the worker does; unless told, as the client says. */
  logger?: Logger;
}

/** The options with what holds where nothing is told. */
export type Settings = WorkerOptions & Required<Pick<WorkerOptions, 'concurrency' | 'softStopMs' | 'hardStopMs' | 'watchdogMs'>>;

export function settingsOf(queue: string, options: WorkerOptions): Settings {
  const seconds = process.env['TERMINATION_GRACE_PERIOD_SECONDS'];
  const isLimited = options.softStopMs !== undefined || options.hardStopMs !== undefined;
  const stops = stopsOf(!isLimited && seconds && /^\d+$/.test(seconds) ? Number(seconds) * 1000 : 30_000);
  const set = { concurrency: 100, ...stops, watchdogMs: 0, ...defined(options) };
  if (!queue) throw new UsageError('lubdub: no queue: say from which one to claim, such as "default"');
  if (!Number.isInteger(set.concurrency) || set.concurrency < 1) {
    throw new UsageError(`lubdub: with a concurrency of ${set.concurrency} nothing is done; 1 is the least`);
  }
  for (const name of ['taskTimeoutMs', 'softStopMs', 'hardStopMs', 'watchdogMs'] as const) {
    const ms = set[name];
    if (ms !== undefined && !(ms >= 0)) throw new UsageError(`lubdub: ${name} is ${ms}; it must not be negative`);
  }
  if (set.hardStopMs < set.softStopMs) {
    throw new UsageError(
      `lubdub: the hard stop, after ${set.hardStopMs} ms, must not come before the soft one, after ${set.softStopMs}; see hardStopMs`,
    );
  }
  if (isLimited) checkGrace(set.hardStopMs, seconds);
  return set;
}

/** The stops within a grace, with a margin for the calls of the worker that leaves. */
function stopsOf(graceMs: number): { softStopMs: number; hardStopMs: number } {
  const hardStopMs = graceMs - Math.min(5000, graceMs / 6);
  return { softStopMs: hardStopMs - Math.min(5000, hardStopMs / 5), hardStopMs };
}

/** Refuses stops that the orchestrator would cut off. */
function checkGrace(hardStopMs: number, seconds: string | undefined): void {
  if (!seconds || !/^\d+$/.test(seconds) || hardStopMs < Number(seconds) * 1000) return;
  throw new UsageError(
    `lubdub: the process is killed ${seconds} s after it was told to stop, which leaves no time for a hard stop after ${hardStopMs} ms; ` +
      'lower softStopMs and hardStopMs, or raise terminationGracePeriodSeconds',
  );
}

function defined<T extends object>(given: T): T {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as T;
}
