import { randomUUID } from 'node:crypto';
import { maxPause } from '../call.js';
import { backoff, type Clock, sleep } from '../clock.js';
import { errorOf } from '../copies.js';
import { hasCode, isHeld } from '../errors.js';
import { textOf } from '../failure.js';
import type { Claimed, ClaimCommand, Session } from '../beats/messages.js';
import type { TaskEnvelope } from '../types.js';

/** How long a claim waits for the first task, in ms. */
const claimWait = 30_000;

/** Tasks per claim. */
export const maxClaim = 100;

/** The parts of a worker that claiming uses. */
export interface ClaimingWorker {
  clock: Clock;
  queue: string;
  /** The types to claim; undefined: all registered types, and tasks without a type. */
  types: string[] | undefined;
  /** Whether claims start their tasks. */
  starts: boolean;
  stopping: AbortSignal;
  session(): Session | undefined;
  /** Waits for free places and reserves them; 0: stop claiming. */
  reserve(): Promise<number>;
  /** Sends a claim until it is answered; undefined: send it again under the same id. */
  claim(command: ClaimCommand): Promise<Claimed | undefined>;
  /** Starts the claimed tasks, and frees the other reserved places. */
  accept(tasks: TaskEnvelope[]): void;
  /** Registers again; false: the worker stops. */
  registerAgain(workerId: string, why: string): Promise<boolean>;
  /** An operator holds the worker offline. */
  hold(workerId: string): undefined;
  /** The server drains the worker. */
  drain(): void;
  /** Claims are refused permanently. */
  give(error: Error): void;
}

/** Claims and starts tasks until claiming must stop or the signal ends. It does not reject. */
export async function keepClaiming(worker: ClaimingWorker, signal: AbortSignal): Promise<void> {
  try {
    await claimOn(worker, signal);
  } catch (error) {
    worker.give(error instanceof Error ? error : new Error(textOf(error)));
  } finally {
    worker.accept([]);
  }
}

async function claimOn(worker: ClaimingWorker, signal: AbortSignal): Promise<void> {
  const { clock } = worker;
  for (let idle = 0; ;) {
    const places = await worker.reserve();
    if (places === 0) return;
    const started = clock.now();
    const tasks = await claim(worker, places, signal);
    worker.accept(tasks ?? []);
    if (!tasks) return;
    if (tasks.length > 0 || clock.now() - started >= claimWait / 2) {
      idle = 0;
    } else if (!(await sleep(clock, backoff(2 + ++idle, maxPause), worker.stopping))) {
      return;
    }
  }
}

/** Claims under one id until it is answered; undefined: stop claiming. */
async function claim(worker: ClaimingWorker, places: number, signal: AbortSignal): Promise<TaskEnvelope[] | undefined> {
  const request = {
    max: places,
    waitMs: claimWait,
    claimId: randomUUID(),
    ...(worker.types && { types: worker.types }),
    ...(worker.starts && { start: true }),
  };
  for (;;) {
    const session = worker.session();
    if (!session || signal.aborted) return undefined;
    const claimed = await worker.claim({ queue: worker.queue, request });
    if (!claimed) continue; // the heartbeat thread has died, and may have claimed
    const { tasks, gone, failure } = claimed;
    if (tasks) return tasks;
    const error = failure && errorOf(failure);
    if (isHeld(error)) return worker.hold(session.workerId);
    if (gone !== undefined) return !signal.aborted && (await worker.registerAgain(session.workerId, gone)) ? [] : undefined;
    if (hasCode(error, 'worker_draining')) worker.drain();
    else if (error) worker.give(new Error(`lubdub: the worker's claims are refused: ${error.message}`, { cause: error }));
    return undefined;
  }
}
