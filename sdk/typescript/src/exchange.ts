import { type Call, type Caller, seg } from './call.js';
import type { Endpoints } from './endpoints.js';
import { AnswerError, ApiError, mayRetry } from './errors.js';
import type { CompletedResponse, ExchangeResponse } from './types.js';

/** The most completions in one request, and the longest that shares one, in characters. */
const mostTogether = 100;
const longestShared = 64 * 1024;

interface Waiting {
  base: Endpoints;
  taskId: string;
  body: string;
  resolve(answer: CompletedResponse | undefined): void;
  reject(error: unknown): void;
}

/** Sends completions of a worker's attempts. One request at a time is in flight; what comes meanwhile shares the next one. */
export class Exchange {
  readonly #caller: Caller;
  readonly #worker: () => { workerId: string; token: string } | undefined;
  readonly #over: AbortSignal;
  #waiting: Waiting[] = [];
  #busy = false;

  /** worker: whose token opens the requests; undefined while the server has no exchanges. over: ends all of them. */
  constructor(caller: Caller, worker: () => { workerId: string; token: string } | undefined, over: AbortSignal) {
    this.#caller = caller;
    this.#worker = worker;
    this.#over = over;
  }

  /** Sends a completion once. undefined: it must be sent on its own, with the token of its task. */
  complete(base: Endpoints, taskId: string, body: string): Promise<CompletedResponse | undefined> {
    if (!this.#worker() || body.length > longestShared) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ base, taskId, body, resolve, reject });
      if (!this.#busy) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#busy = true;
    for (let first; (first = this.#waiting[0]);) {
      const { base } = first;
      const some = this.#waiting.filter((one) => one.base === base).slice(0, mostTogether);
      this.#waiting = this.#waiting.filter((one) => !some.includes(one));
      await this.#send(base, some);
    }
    this.#busy = false;
  }

  async #send(base: Endpoints, some: Waiting[]): Promise<void> {
    const worker = this.#worker();
    if (!worker) return some.forEach((one) => one.resolve(undefined));
    const items = some.map(({ taskId, body }) => `{"taskId":${JSON.stringify(taskId)},${body.slice(1)}`);
    const call: Call = {
      method: 'POST',
      path: `/v1/workers/${seg(worker.workerId)}/exchange`,
      body: `{"completed":[${items.join(',')}]}`,
      base,
      token: worker.token,
      signal: this.#over,
      tries: 1,
    };
    try {
      const { completed } = (await this.#caller.do(call)) as ExchangeResponse;
      if (completed?.length !== some.length)
        throw new AnswerError(`lubdub: POST ${call.path}: the answer has not a result for each completion`);
      some.forEach((one, i) => settle(one, completed[i]!));
    } catch (error) {
      // an older server, or a token that is not valid: each is sent on its own
      for (const one of some) mayRetry(error) ? one.reject(error) : one.resolve(undefined);
    }
  }
}

function settle(one: Waiting, result: ExchangeResponse['completed'][number]): void {
  const { status, retryAfterMs, taskId: _, ...fields } = result;
  if (status === 403) one.resolve(undefined);
  else if (status >= 200 && status < 300) one.resolve(fields as CompletedResponse);
  else one.reject(new ApiError(`POST /v1/tasks/${seg(one.taskId)}/completed`, status, fields, '', retryAfterMs ?? 0));
}
