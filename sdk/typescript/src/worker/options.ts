import type { Client, Lease } from '../client.js';
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
   * How long a task may take here, in ms: its signal ends with TaskTimeout, and it fails as TIMEOUT. 5 minutes unless told; 0: no
   * bound.
   */
  taskTimeoutMs?: number;
  /** How long after it was told to stop the worker lets handlers go on, in ms; 20,000 unless told. */
  softStopMs?: number;
  /**
   * How long after it was told to stop what still runs is given back, in ms; 25,000 unless told. It must lie within the grace that the
   * process has, such as Kubernetes' terminationGracePeriodSeconds, which is checked where TERMINATION_GRACE_PERIOD_SECONDS tells it.
   */
  hardStopMs?: number;
  /** Ends tasks that report no progress for so many ms: they fail as TIMEOUT. Off unless told. */
  watchdogMs?: number;
  /**
   * Has the process answer GET on a port: 200 while its beats are on time, 503 when they are not. The url is told to the server, which asks
   * there before it takes the worker for dead; unless told, http://<host's name>:<port>/.
   */
  probe?: { port: number; host?: string; url?: string };
  /** Is told what the worker does; unless told, console without its debug lines. */
  logger?: Logger;
}

/** The options with what holds where nothing is told. */
export type Settings = WorkerOptions &
  Required<Pick<WorkerOptions, 'concurrency' | 'taskTimeoutMs' | 'softStopMs' | 'hardStopMs' | 'watchdogMs'>>;

export function settingsOf(queue: string, options: WorkerOptions): Settings {
  const set = { concurrency: 100, taskTimeoutMs: 300_000, softStopMs: 20_000, hardStopMs: 25_000, watchdogMs: 0, ...defined(options) };
  if (!queue) throw new UsageError('lubdub: no queue: say from which one to claim, such as "default"');
  if (!Number.isInteger(set.concurrency) || set.concurrency < 1) {
    throw new UsageError(`lubdub: with a concurrency of ${set.concurrency} nothing is done; 1 is the least`);
  }
  for (const name of ['taskTimeoutMs', 'softStopMs', 'hardStopMs', 'watchdogMs'] as const) {
    if (!(set[name] >= 0)) throw new UsageError(`lubdub: ${name} is ${set[name]}; it must not be negative`);
  }
  if (set.hardStopMs < set.softStopMs) {
    throw new UsageError(
      `lubdub: the hard stop, after ${set.hardStopMs} ms, must not come before the soft one, after ${set.softStopMs}; see hardStopMs`,
    );
  }
  checkGrace(set.hardStopMs, process.env['TERMINATION_GRACE_PERIOD_SECONDS']);
  return set;
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
