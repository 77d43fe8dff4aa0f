import { randomUUID } from 'node:crypto';
import type { Client } from '../client.js';
import { backoff, read, sleep } from '../clock.js';
import { AnswerError, hasCode, mayRetry, retryAfterOf } from '../errors.js';
import { textOf } from '../failure.js';
import type { Session } from '../beats/messages.js';
import type { Logger } from '../metrics.js';
import { Outage } from '../outage.js';
import { intervalOf, plain, timeoutOf } from '../answers.js';
import { ForcedOfflineError } from './ends.js';
import type { RegisterWorkerRequest, RegisterWorkerResponse } from '../types.js';

/** How many registrations within a minute do not count as a crash loop. */
const crashCount = 3;

/** Receives the results of registrations. */
export interface SessionListener {
  /** A session has started; isDrained: its machine is drained, and the worker waits. */
  enter(session: Session, isDrained: boolean): void;
  /** An operator holds the worker offline. */
  hold(error: ForcedOfflineError): void;
}

/** Registers a worker, and registers it again when its session is lost. */
export class Sessions {
  readonly #client: Client;
  readonly #log: Logger;
  readonly #stopping: AbortSignal;
  readonly #listener: SessionListener;
  readonly #outage: Outage;
  #entering: number[] = []; // registrations of the last minute
  #joining: Promise<boolean> | undefined;
  current: Session | undefined;

  constructor(client: Client, log: Logger, stopping: AbortSignal, listener: SessionListener) {
    this.#client = client;
    this.#log = log;
    this.#outage = new Outage(client.clock, (level, message, fields) => log[level](message, fields));
    this.#stopping = stopping;
    this.#listener = listener;
  }

  /** Registers the worker until it is answered; rejects if it is refused, or the worker stops. */
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
          throw new ForcedOfflineError((error.fields as { remedy?: string }).remedy ?? 'lubdub worker resume', error);
        if (!mayRetry(error) || this.#stopping.aborted) throw error;
        this.#outage.failed(this, 'the registration', error);
        if (!(await sleep(clock, retryAfterOf(error) + backoff(n, 30_000), this.#stopping))) throw error;
      }
    }
  }

  /**
   * Registers again after a session was lost, until it is answered or the worker stops. A refusal does not end the worker: a deployment
   * that rejects tokens for a while must not end its workers. True: there is a session.
   */
  registerAgain(workerId: string, why: string, request: () => RegisterWorkerRequest): Promise<boolean> {
    if (this.#stopping.aborted) return Promise.resolve(false);
    if (this.current?.workerId !== workerId) return Promise.resolve(true);
    this.#joining ??= this.#rejoin(workerId, why, request).finally(() => {
      this.#joining = undefined;
    });
    return this.#joining;
  }

  /** Waits for a registration in flight. */
  async settle(): Promise<void> {
    await this.#joining;
  }

  async #rejoin(workerId: string, why: string, request: () => RegisterWorkerRequest): Promise<boolean> {
    this.#log.warn(`Worker ${workerId} is lost and registers again`, { workerId, error: why });
    for (let n = 0; ; n++) {
      try {
        await this.register(request());
        return true;
      } catch (error) {
        if (error instanceof ForcedOfflineError) this.#listener.hold(error);
        if (error instanceof ForcedOfflineError || this.#stopping.aborted) return false;
        this.#log.error('Registration is refused and will be retried', { error: textOf(error) });
        if (!(await sleep(this.#client.clock, 1000 + backoff(n, 30_000), this.#stopping))) return false;
      }
    }
  }

  /** Waits if the worker has registered repeatedly. */
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
    if (!workerId || !token) throw new AnswerError('lubdub: POST /v1/workers: the answer has no workerId or no workerToken');
    const granted = timeoutOf(answer.heartbeatTimeoutMs, 0);
    const intervalMs = intervalOf(answer.heartbeatIntervalMs, granted, granted / 3 || 10_000);
    const timeoutMs = granted || 3 * intervalMs;
    this.#log.info(`Worker registered with ID: ${workerId}`, { workerId, queue: request.queue, types: request.types, superseded });
    if (timeoutMs < 3000) this.#log.warn('A heartbeat timeout this short leaves no room for one Retry-After', { timeoutMs });
    this.#entering.push(this.#client.clock.now());
    const exchange = Array.isArray(answer.capabilities) && answer.capabilities.includes('exchange');
    this.current = { workerId, token, intervalMs, timeoutMs, accepted, exchange };
    const isDrained = (answer as { shouldDrain?: boolean }).shouldDrain === true;
    if (isDrained) this.#log.info(`Machine ${answer.machineId || request.machineId} is drained; waiting until it is resumed`, { workerId });
    this.#listener.enter(this.current, isDrained);
  }
}
