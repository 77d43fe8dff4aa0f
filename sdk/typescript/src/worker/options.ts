import type { Client } from '../client.js';
import type { Lease } from '../context.js';
import { UsageError } from '../errors.js';
import type { Logger } from '../metrics.js';

export interface WorkerOptions {
  /** By default a client of LUBDUB_URL and LUBDUB_TOKEN or LUBDUB_TOKEN_FILE, which is closed when the worker ends. */
  client?: Client;
  /** The types to claim, each of which needs a handler; by default those that have one. */
  types?: readonly string[];
  /** What tasks may require, in addition to node and its version. */
  runtimes?: readonly string[];
  /** Labels for worker selection; POD_NAME, POD_NAMESPACE, NODE_NAME, ZONE and DEPLOYMENT in the environment add to them. */
  labels?: Record<string, string>;
  /** A readable name that also distinguishes this process from others on its machine; by default POD_NAME or the program's name. */
  name?: string;
  /** The machine; by default NODE_NAME or the host's name. */
  machineId?: string;
  /** The version of the program; by default npm's. */
  version?: string;
  /** How many tasks run at once; by default 100. */
  concurrency?: number;
  /** What happens to work while no server answers; by default the client's setting. */
  lease?: Lease;
  /**
   * How long a task may take, in ms: its signal ends with TaskTimeout, and it fails as TIMEOUT. By default 5 minutes for tasks without
   * their own runTimeoutMs; 0: no limit.
   */
  taskTimeoutMs?: number;
  /**
   * How long handlers may continue after the worker was stopped, in ms. By default both stops follow TERMINATION_GRACE_PERIOD_SECONDS,
   * which is 30 s if not set; then this is 20 s.
   */
  softStopMs?: number;
  /**
   * After how long tasks that still run are returned to the queue, in ms; 25 s with a grace period of 30 s. It must lie within the grace
   * period of the process, such as Kubernetes' terminationGracePeriodSeconds; this is checked if TERMINATION_GRACE_PERIOD_SECONDS is set.
   */
  hardStopMs?: number;
  /** Ends tasks that report no progress and set no checkpoint for this many ms: they fail as TIMEOUT. By default off. */
  watchdogMs?: number;
  /**
   * Answers GET on a port: 200 while the heartbeat loop is on time, 503 when it is not. The server probes the url before it declares the
   * worker dead; by default http://<host's name>:<port>/.
   */
  probe?: { port: number; host?: string; url?: string };
  /** Receives the worker's log messages; by default the client's logger. */
  logger?: Logger;
}

/** The options with their defaults. */
export type Settings = WorkerOptions & Required<Pick<WorkerOptions, 'concurrency' | 'softStopMs' | 'hardStopMs' | 'watchdogMs'>>;

export function settingsOf(queue: string, options: WorkerOptions): Settings {
  const seconds = process.env['TERMINATION_GRACE_PERIOD_SECONDS'];
  const isLimited = options.softStopMs !== undefined || options.hardStopMs !== undefined;
  const stops = stopsOf(!isLimited && seconds && /^\d+$/.test(seconds) ? Number(seconds) * 1000 : 30_000);
  const set = { concurrency: 100, ...stops, watchdogMs: 0, ...defined(options) };
  if (!queue) throw new UsageError('lubdub: no queue: name the one to claim from, such as "default"');
  if (!Number.isInteger(set.concurrency) || set.concurrency < 1) {
    throw new UsageError(`lubdub: a concurrency of ${set.concurrency} is too low; 1 is the least`);
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

/** A grace period without a margin for the calls at its end. */
export function withMargin(graceMs: number): number {
  return graceMs - Math.min(5000, graceMs / 6);
}

function stopsOf(graceMs: number): { softStopMs: number; hardStopMs: number } {
  const hardStopMs = withMargin(graceMs);
  return { softStopMs: hardStopMs - Math.min(5000, hardStopMs / 5), hardStopMs };
}

/** Refuses stops beyond the orchestrator's grace period. */
function checkGrace(hardStopMs: number, seconds: string | undefined): void {
  if (!seconds || !/^\d+$/.test(seconds) || hardStopMs < Number(seconds) * 1000) return;
  throw new UsageError(
    `lubdub: the process is killed ${seconds} s after SIGTERM, which leaves no time for a hard stop after ${hardStopMs} ms; ` +
      'lower softStopMs and hardStopMs, or raise terminationGracePeriodSeconds',
  );
}

function defined<T extends object>(given: T): T {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as T;
}
