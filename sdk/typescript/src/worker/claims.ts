import { randomUUID } from 'node:crypto';
import { maxPause } from '../call.js';
import { backoff, type Clock, sleep } from '../clock.js';
import { errorOf, hasCode, isHeld } from '../errors.js';
import { textOf } from '../failure.js';
import type { Claimed, ClaimOrder, Session } from '../heart/messages.js';
import type { TaskEnvelope } from '../types.js';

/** How long a claim waits for the first task, in ms. */
const claimWait = 30_000;

/** More than that no claim gets. */
export const maxClaim = 100;

/** What claiming needs of a worker. */
export interface Desk {
  clock: Clock;
  queue: string;
  /** The types to claim; undefined: all that were registered, and tasks without a type. */
  types: string[] | undefined;
  stopping: AbortSignal;
  session(): Session | undefined;
  /** Waits for free places and takes them; 0: nothing is to be claimed any more. */
  reserve(): Promise<number>;
  /** Sends a claim until it is answered; undefined: it is to be repeated under its id. */
  claim(order: ClaimOrder): Promise<Claimed | undefined>;
  /** Begins what was claimed, and gives the other places back. */
  accept(tasks: TaskEnvelope[]): void;
  /** Registers anew; false: the worker is to stop. */
  comeBack(workerId: string, why: string): Promise<boolean>;
  /** An operator holds the worker offline. */
  hold(workerId: string): undefined;
  /** The server drains the worker. */
  drain(): void;
  /** Claims are refused for good. */
  give(error: Error): void;
}

/** Claims tasks and has them done, until nothing is to be claimed any more, or the signal ends. It does not reject. */
export async function keepClaiming(desk: Desk, signal: AbortSignal): Promise<void> {
  try {
    await claimOn(desk, signal);
  } catch (error) {
    desk.give(error instanceof Error ? error : new Error(textOf(error)));
  } finally {
    desk.accept([]);
  }
}

async function claimOn(desk: Desk, signal: AbortSignal): Promise<void> {
  const { clock } = desk;
  for (let idle = 0; ;) {
    const places = await desk.reserve();
    if (places === 0) return;
    const asked = clock.now();
    const tasks = await claim(desk, places, signal);
    desk.accept(tasks ?? []);
    if (!tasks) return;
    if (tasks.length > 0 || clock.now() - asked >= claimWait / 2) {
      idle = 0;
    } else if (!(await sleep(clock, backoff(2 + ++idle, maxPause), desk.stopping))) {
      return;
    }
  }
}

/** Claims until that is answered, under one id; undefined: there will be no more. */
async function claim(desk: Desk, places: number, signal: AbortSignal): Promise<TaskEnvelope[] | undefined> {
  const request = { max: places, waitMs: claimWait, claimId: randomUUID(), ...(desk.types && { types: desk.types }) };
  for (;;) {
    const session = desk.session();
    if (!session || signal.aborted) return undefined;
    const claimed = await desk.claim({ queue: desk.queue, request });
    if (!claimed) continue; // the thread that beats has died, and may have claimed
    const { tasks, gone, failure } = claimed;
    if (tasks) return tasks;
    const error = failure && errorOf(failure);
    if (isHeld(error)) return desk.hold(session.workerId);
    if (gone !== undefined) return !signal.aborted && (await desk.comeBack(session.workerId, gone)) ? [] : undefined;
    if (hasCode(error, 'worker_draining')) desk.drain();
    else if (error) desk.give(new Error(`lubdub: the worker's claims are refused: ${error.message}`, { cause: error }));
    return undefined;
  }
}
