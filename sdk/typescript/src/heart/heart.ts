import type { Caller } from '../call.js';
import type { Timer } from '../clock.js';
import { Endpoints } from '../endpoints.js';
import { Outage } from '../outage.js';
import { Batch } from './batch.js';
import { Crew } from './crew.js';
import { Held } from './held.js';
import type { Emit, Order, Stops } from './messages.js';
import { listen, type Listening } from './probe.js';
import { Watch } from './watch.js';

/** What only a thread of its own can do for a process whose event loop is blocked. */
export interface Process {
  /** Calls heard at every SIGTERM and SIGINT, until the returned function is called. */
  onSignal(heard: () => void): () => void;
  /** Ends the process. */
  end(code: number, why: string, taskIds: string[]): void;
}

/** How long the program has to honour a signal, or to answer at the hard stop, in ms. */
const prompt = 1000;

/** How many hard stops a handler that has exceeded its time may go on blocking the event loop. */
const patience = 4;

/** A worker, and when it stops. */
interface Member {
  crew: Crew;
  stops?: Stops;
  stopping?: { at: number; known: boolean; timers: Timer[] }; // known: the program itself says so
}

/** Beats for all that a client holds, wherever it runs. It knows nothing of handlers. */
export class Heart {
  readonly #caller: Caller;
  readonly #emit: Emit;
  readonly #batches = new Map<string, Batch>(); // by where the callbacks go
  readonly #crews = new Map<number, Member>();
  readonly #watch: Watch;
  readonly #outage: Outage;
  readonly #process: Process | undefined;
  #unhear: (() => void) | undefined; // no signals any more
  #ending = false;
  readonly #held = new Map<string, { held?: Held; remove(): Promise<void> }>();
  readonly #probes = new Map<number, Listening>();

  constructor(caller: Caller, emit: Emit, process?: Process) {
    this.#process = process;
    this.#outage = new Outage(caller.set.clock, (level, message, fields) => emit({ is: 'log', level, message, fields }));
    this.#watch = new Watch(caller.set.clock, emit);
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
      case 'join':
        return this.#join(order.crew, order.stops);
      case 'stop':
        return this.#stop(order.crew, order.at, true);
      case 'pong':
        return this.#watch.answered();
      case 'claim':
        return void this.#claim(order);
      case 'unclaim':
        return this.#crews.get(order.crew)?.crew.unclaim();
      case 'ending':
        return this.#crews.get(order.crew)?.crew.end(order.key, order.isOver);
      case 'progress':
        return this.#held.get(order.key)?.held?.say(order.said, this.#caller.set.clock.now());
      case 'giveBack': {
        const held = this.#held.get(order.key)?.held;
        if (held) held.limited = false;
        return;
      }
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
    for (const { crew } of this.#crews.values()) void crew.leave();
    this.#unhear?.();
    for (const probe of this.#probes.values()) probe.close();
  }

  async #release(order: Order & { do: 'release' }): Promise<void> {
    const { key, ticket, said } = order;
    const entry = this.#held.get(key);
    this.#held.delete(key);
    if (said) entry?.held?.say(said, this.#caller.set.clock.now());
    if (entry?.held?.reporting) return this.#emit({ is: 'done', ticket, reported: true });
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
    const member = this.#crews.get(crew);
    for (const timer of member?.stopping?.timers ?? []) timer.cancel();
    await member?.crew.leave();
    this.#crews.delete(crew);
    if (![...this.#crews.values()].some(({ stops }) => stops?.bySignal)) {
      this.#unhear?.(); // or nothing would end the process by a signal
      this.#unhear = undefined;
    }
    this.#emit({ is: 'done', ticket });
  }

  #batch(urls: string[]): Batch {
    const name = urls.join(' ');
    let batch = this.#batches.get(name);
    if (!batch) this.#batches.set(name, (batch = new Batch(this.#caller, new Endpoints(urls), this.#emit, this.#outage)));
    return batch;
  }

  #crew(number: number): Crew {
    return this.#member(number).crew;
  }

  #member(number: number): Member {
    let member = this.#crews.get(number);
    if (!member) {
      const crew = new Crew(this.#caller, number, this.#emit, this.#outage, () => this.#reporting(number));
      this.#crews.set(number, (member = { crew }));
    }
    return member;
  }

  #join(number: number, stops: Stops): void {
    this.#member(number).stops = stops;
    if (stops.bySignal) this.#unhear ??= this.#process?.onSignal(() => this.#signalled());
  }

  /** Has the workers stop, as the program does when it receives the signal; a second signal makes that short. */
  #signalled(): void {
    const now = this.#caller.set.clock.now();
    for (const [number, { stops, stopping }] of this.#crews) {
      if (!stops?.bySignal) continue;
      if (stopping) this.#endIfBlocked(prompt, 'the hard stop has come');
      else this.#emit({ is: 'stopping', crew: number, at: now });
      this.#stop(number, now, false);
    }
  }

  /** Sees to it that a worker that stops is drained and ended, whatever the event loop does. */
  #stop(number: number, at: number, known: boolean): void {
    const member = this.#crews.get(number);
    if (!member?.stops || !this.#process) return;
    if (member.stopping) {
      member.stopping.known ||= known;
      return;
    }
    const stopping = (member.stopping = { at, known, timers: [] as Timer[] });
    const { clock } = this.#caller.set;
    const after = (ms: number, f: () => void) => stopping.timers.push(clock.setTimeout(f, at + ms - clock.now()));
    after(prompt, () => {
      if (!stopping.known) void member.crew.drain();
    });
    after(member.stops.hardStopMs, () => this.#endIfBlocked(prompt, 'the hard stop has come'));
  }

  /** An attempt is reported as TIMEOUT, which may be since its handler blocks the event loop. */
  #reporting(number: number): void {
    this.#endIfBlocked(patience * (this.#crews.get(number)?.stops?.hardStopMs ?? 0), 'a task has exceeded its time');
  }

  /** Gives back what is held and ends the process, unless the event loop comes round within ms milliseconds. */
  #endIfBlocked(ms: number, why: string): void {
    if (!this.#process) return;
    this.#watch.ask(ms, () => void this.#end(why, this.#isStopping));
  }

  get #isStopping(): boolean {
    return [...this.#crews.values()].every(({ stopping }) => stopping !== undefined);
  }

  /** Gives back what is held and ends the process; with 0 where it was to stop and nothing is given back, as after every other stop. */
  async #end(why: string, isStop: boolean): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    const given = (await Promise.all([...this.#crews.values()].map(({ crew }) => crew.quit()))).flat();
    this.#process!.end(isStop && given.length === 0 ? 0 : 1, `${why}, and the event loop is blocked`, given);
  }
}
