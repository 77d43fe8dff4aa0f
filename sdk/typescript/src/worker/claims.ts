import { randomUUID } from 'node:crypto';
import { link } from '../abort.js';
import { maxPause } from '../call.js';
import type { Client } from '../client.js';
import { backoff, sleep } from '../clock.js';
import { hasCode, mayRetry, retryAfterOf } from '../errors.js';
import { textOf } from '../failure.js';
import { isGone } from '../heart/crew.js';
import type { Session } from '../heart/messages.js';
import type { Logger } from '../metrics.js';
import { envelopesOf } from '../sane.js';
import type { TaskEnvelope } from '../types.js';

/** How long a claim waits for the first task, in ms. */
const claimWait = 30_000;

/** More than that no claim gets. */
export const maxClaim = 100;

/** What claiming needs of a worker. */
export interface Desk {
  client: Client;
  log: Logger;
  queue: string;
  types: string[];
  stopping: AbortSignal;
  session(): Session | undefined;
  /** Waits for free places and takes them; 0: nothing is to be claimed any more. */
  reserve(): Promise<number>;
  /** Begins what was claimed, and gives the other places back. */
  accept(tasks: TaskEnvelope[]): void;
  /** Registers anew; false: the worker is to stop. */
  comeBack(workerId: string, why: string): Promise<boolean>;
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
  const { clock } = desk.client;
  for (let idle = 0; ; ) {
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

/** Asks for tasks until it is answered, under one id; undefined: there will be no more. */
async function claim(desk: Desk, places: number, signal: AbortSignal): Promise<TaskEnvelope[] | undefined> {
  const { client, log, queue, types } = desk;
  const request = { types, max: places, waitMs: claimWait, claimId: randomUUID() };
  for (let n = 0; ; n++) {
    const session = desk.session();
    if (!session) return undefined;
    try {
      const tasks = envelopesOf((await client.claimTasks(queue, session.token, request, { signal })).tasks);
      client.metrics.claimed?.('ok', tasks.length);
      return tasks;
    } catch (error) {
      if (signal.aborted) return undefined;
      if (isGone(error)) return (await desk.comeBack(session.workerId, textOf(error))) ? [] : undefined;
      client.metrics.claimed?.(mayRetry(error) ? 'unanswered' : 'refused', 0);
      if (hasCode(error, 'worker_draining')) desk.drain();
      else if (!mayRetry(error)) desk.give(new Error(`lubdub: the worker's claims are refused: ${textOf(error)}`, { cause: error }));
      if (!mayRetry(error)) return undefined;
      log.warn('A claim was not answered, and is repeated', { workerId: session.workerId, error: textOf(error) });
      const ended = link(signal, client.caller.closing);
      const slept = await sleep(client.clock, retryAfterOf(error) + backoff(n, maxPause), ended.signal);
      ended.release();
      if (!slept) return undefined;
    }
  }
}
