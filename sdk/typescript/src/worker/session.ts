import { randomUUID } from 'node:crypto';
import type { Client } from '../client.js';
import { backoff, read, sleep } from '../clock.js';
import { AnswerError, hasCode, mayRetry, retryAfterOf } from '../errors.js';
import { textOf } from '../failure.js';
import type { Session } from '../heart/messages.js';
import type { Logger } from '../metrics.js';
import { Outage } from '../outage.js';
import { intervalOf, plain, timeoutOf } from '../sane.js';
import { HeldOfflineError } from './ends.js';
import type { RegisterWorkerRequest, RegisterWorkerResponse } from '../types.js';

/** How many registrations within a minute are no crash loop. */
const crashCount = 3;

/** Receives what becomes of registrations. */
export interface SessionEars {
  /** There is a session; isDrained: its machine is drained, and the worker waits. */
  enter(session: Session, isDrained: boolean): void;
  /** An operator holds the worker offline. */
  hold(error: HeldOfflineError): void;
}

/** Registers a worker, and again should it be lost. */
export class Sessions {
  readonly #client: Client;
  readonly #log: Logger;
  readonly #stopping: AbortSignal;
  readonly #ears: SessionEars;
  readonly #outage: Outage;
  #entering: number[] = []; // registrations of the last minute
  #joining: Promise<boolean> | undefined;
  current: Session | undefined;

  constructor(client: Client, log: Logger, stopping: AbortSignal, ears: SessionEars) {
    this.#client = client;
    this.#log = log;
    this.#outage = new Outage(client.clock, (level, message, fields) => log[level](message, fields));
    this.#stopping = stopping;
    this.#ears = ears;
  }

  /** Enters the worker, until that is answered; it rejects where that is refused, or the worker is to stop. */
  async register(request: RegisterWorkerRequest): Promise<void> {
    const { clock } = this.#client;
    const registrationId = randomUUID();
    await this.#pauseBeforeRejoining();
    for (let n = 0; ; n++) {
      const accepted = read(clock);
      try {
        const options = { signal: this.#stopping };
        const answer = await this.#client.registerWorker({ ...request, registrationId }, options);
        this.#outage.answered(this);
        return this.#take(request, answer, accepted);
      } catch (error) {
        if (hasCode(error, 'worker_held_offline'))
          throw new HeldOfflineError((error.fields as { remedy?: string }).remedy ?? 'lubdub worker resume', error);
        if (!mayRetry(error) || this.#stopping.aborted) throw error;
        this.#outage.failed(this, 'the registration', error);
        if (!(await sleep(clock, retryAfterOf(error) + backoff(n, 30_000), this.#stopping))) throw error;
      }
    }
  }

  /**
   * Registers anew instead of a session that is gone, until that is answered or the worker is told to stop. A refusal does not end it: a
   * deployment that takes no token for a while must not end its workers. True: there is a session.
   */
  comeBack(workerId: string, why: string, request: () => RegisterWorkerRequest): Promise<boolean> {
    if (this.#stopping.aborted) return Promise.resolve(false);
    if (this.current?.workerId !== workerId) return Promise.resolve(true);
    this.#joining ??= this.#rejoin(workerId, why, request).finally(() => {
      this.#joining = undefined;
    });
    return this.#joining;
  }

  /** Waits until it is not coming back just now. */
  async settle(): Promise<void> {
    await this.#joining;
  }

  async #rejoin(workerId: string, why: string, request: () => RegisterWorkerRequest): Promise<boolean> {
    this.#log.warn(`Worker ${workerId} is lost and registers anew`, { workerId, error: why });
    for (let n = 0; ; n++) {
      try {
        await this.register(request());
        return true;
      } catch (error) {
        if (error instanceof HeldOfflineError) this.#ears.hold(error);
        if (error instanceof HeldOfflineError || this.#stopping.aborted) return false;
        this.#log.error('The worker may not come back, and asks again', { error: textOf(error) });
        if (!(await sleep(this.#client.clock, 1000 + backoff(n, 30_000), this.#stopping))) return false;
      }
    }
  }

  /** Waits where the worker has registered again and again. */
  async #pauseBeforeRejoining(): Promise<void> {
    const { clock } = this.#client;
    this.#entering = this.#entering.filter((at) => clock.now() - at <= 60_000);
    const often = this.#entering.length - crashCount;
    if (often >= 0) await sleep(clock, Math.min(60_000, 1000 * 2 ** Math.min(often, 10)), this.#stopping);
  }

  #take(request: RegisterWorkerRequest, answer: RegisterWorkerResponse, accepted: Session['accepted']): void {
    const { superseded } = answer;
    const workerId = plain(answer.workerId);
    const token = plain(answer.workerToken);
    if (!workerId || !token) throw new AnswerError('lubdub: POST /v1/workers: there is no workerId or no workerToken in the answer');
    const told = timeoutOf(answer.heartbeatTimeoutMs, 0);
    const intervalMs = intervalOf(answer.heartbeatIntervalMs, told, told / 3 || 10_000);
    const timeoutMs = told || 3 * intervalMs;
    this.#log.info(`Worker registered with ID: ${workerId}`, { workerId, queue: request.queue, types: request.types, superseded });
    if (timeoutMs < 3000) this.#log.warn('A heartbeat timeout this short leaves no room for one Retry-After', { timeoutMs });
    this.#entering.push(this.#client.clock.now());
    this.current = { workerId, token, intervalMs, timeoutMs, accepted };
    const isDrained = (answer as { shouldDrain?: boolean }).shouldDrain === true;
    if (isDrained) this.#log.info(`Machine ${answer.machineId || request.machineId} is drained; waiting until it is resumed`, { workerId });
    this.#ears.enter(this.current, isDrained);
  }
}
