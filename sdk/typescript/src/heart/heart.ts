import type { Caller } from '../call.js';
import { Endpoints } from '../endpoints.js';
import { Batch } from './batch.js';
import { Crew } from './crew.js';
import { Held } from './held.js';
import type { Emit, Order } from './messages.js';
import { listen, type Listening } from './probe.js';

/** Beats for all that a client holds, wherever it runs. It knows nothing of handlers. */
export class Heart {
  readonly #caller: Caller;
  readonly #emit: Emit;
  readonly #batches = new Map<string, Batch>(); // by where the callbacks go
  readonly #crews = new Map<number, Crew>();
  readonly #held = new Map<string, { held?: Held; remove(): Promise<void> }>();
  readonly #probes = new Map<number, Listening>();

  constructor(caller: Caller, emit: Emit) {
    this.#caller = caller;
    this.#emit = emit;
  }

  heed(order: Order): void {
    switch (order.do) {
      case 'hold': {
        const held = new Held(order.hold, this.#emit);
        const batch = this.#batch(order.urls);
        this.#held.set(order.hold.key, { held, remove: () => batch.remove(held) });
        return batch.add(held);
      }
      case 'carry': {
        const { key } = order.hold;
        const held = new Held(order.hold, this.#emit);
        const crew = this.#crew(order.crew);
        this.#held.set(key, { held, remove: () => crew.remove(key) });
        return crew.carry(held);
      }
      case 'list': {
        const crew = this.#crew(order.crew);
        this.#held.set(order.key, { remove: () => crew.remove(order.key) });
        return crew.list(order.key, order.taskId, order.attempt);
      }
      case 'claim':
        return void this.#claim(order);
      case 'unclaim':
        return this.#crews.get(order.crew)?.unclaim();
      case 'ending':
        return this.#crews.get(order.crew)?.end(order.key, order.isOver);
      case 'progress':
        return this.#held.get(order.key)?.held?.say(order.said);
      case 'release':
        return void this.#release(order);
      case 'session':
        return this.#crew(order.crew).enter(order.session);
      case 'work':
        return this.#crew(order.crew).count(order.work);
      case 'probe':
        return void this.#probe(order);
      case 'leave':
        return void this.#leave(order);
    }
  }

  close(): void {
    this.#caller.close();
    for (const batch of this.#batches.values()) batch.close();
    for (const crew of this.#crews.values()) void crew.leave();
    for (const probe of this.#probes.values()) probe.close();
  }

  async #release(order: Order & { do: 'release' }): Promise<void> {
    const { key, ticket, said } = order;
    const entry = this.#held.get(key);
    this.#held.delete(key);
    if (said) entry?.held?.say(said);
    await entry?.remove();
    this.#emit({ is: 'done', ticket, said: entry?.held?.unsaid });
  }

  async #claim({ crew: number, claim, ticket }: Order & { do: 'claim' }): Promise<void> {
    const crew = this.#crew(number);
    const claimed = await crew.claim(claim);
    for (const { taskId, attempt } of claimed.tasks ?? []) {
      const key = `${taskId}/${attempt}`;
      this.#held.set(key, { remove: () => crew.remove(key) });
    }
    this.#emit({ is: 'done', ticket, claimed });
  }

  async #probe({ crew, host, port, ticket }: Order & { do: 'probe' }): Promise<void> {
    try {
      const probe = await listen(host, port, () => this.#crew(crew).isAlive());
      this.#probes.set(crew, probe);
      this.#emit({ is: 'done', ticket, port: probe.port });
    } catch (error) {
      this.#emit({ is: 'done', ticket, error: error instanceof Error ? error.message : String(error) });
    }
  }

  async #leave({ crew, ticket }: Order & { do: 'leave' }): Promise<void> {
    this.#probes.get(crew)?.close();
    this.#probes.delete(crew);
    await this.#crews.get(crew)?.leave();
    this.#crews.delete(crew);
    this.#emit({ is: 'done', ticket });
  }

  #batch(urls: string[]): Batch {
    const name = urls.join(' ');
    let batch = this.#batches.get(name);
    if (!batch) this.#batches.set(name, (batch = new Batch(this.#caller, new Endpoints(urls), this.#emit)));
    return batch;
  }

  #crew(number: number): Crew {
    let crew = this.#crews.get(number);
    if (!crew) this.#crews.set(number, (crew = new Crew(this.#caller, number, this.#emit)));
    return crew;
  }
}
