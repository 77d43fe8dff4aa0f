import type { Caller } from '../call.js';
import type { Timer } from '../clock.js';
import { Endpoints } from '../endpoints.js';
import { Outage } from '../outage.js';
import { Batch } from './batch.js';
import { WorkerBeats } from './worker.js';
import { Held } from './held.js';
import type { Emit, Command, Stops } from './messages.js';
import { listen, type Listening } from './probe.js';
import { Watch } from './watch.js';

/** What only the heartbeat thread can do for a process whose event loop is blocked. */
export interface Process {
  /** Calls back on every SIGTERM and SIGINT, until the returned function is called. */
  onSignal(callback: () => void): () => void;
  /** Kills a child process. */
  kill(pid: number): void;
  /** Ends the process. */
  end(code: number, why: string, taskIds: string[]): void;
}

/** How long the program may take to handle a signal, or to answer at the hard stop, in ms. */
const prompt = 1000;

/** For how many hard stops a handler past its time limit may block the event loop. */
const patience = 4;

/** A worker, and when it stops. */
interface Member {
  workerNumber: WorkerBeats;
  stops?: Stops;
  stopping?: { at: number; known: boolean; timers: Timer[] }; // known: the program reported it
}

/** Heartbeats for all attempts and workers of a client, in whichever thread it runs. It knows nothing of handlers. */
export class Beater {
  readonly #caller: Caller;
  readonly #emit: Emit;
  readonly #batches = new Map<string, Batch>(); // by the endpoints of the callbacks
  readonly #workers = new Map<number, Member>();
  readonly #children = new Set<number>(); // the processes that run attempts
  readonly #watch: Watch;
  readonly #outage: Outage;
  readonly #process: Process | undefined;
  #stopSignals: (() => void) | undefined; // stops watching signals
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

  handle(command: Command): void {
    switch (command.do) {
      case 'hold': {
        const held = new Held(command.hold, this.#emit);
        const batch = this.#batch(command.urls);
        this.#held.set(command.hold.key, { held, remove: () => batch.remove(held) });
        return batch.add(held);
      }
      case 'carry': {
        const { key } = command.hold;
        const held = new Held(command.hold, this.#emit);
        const workerNumber = this.#workerNumber(command.workerNumber);
        this.#held.set(key, { held, remove: () => workerNumber.remove(key) });
        return workerNumber.carry(held);
      }
      case 'list': {
        const workerNumber = this.#workerNumber(command.workerNumber);
        this.#held.set(command.key, { remove: () => workerNumber.remove(command.key) });
        return workerNumber.list(command.key, command.taskId, command.attempt);
      }
      case 'join':
        return this.#join(command.workerNumber, command.stops);
      case 'stop':
        return this.#stop(command.workerNumber, command.at, true);
      case 'child':
        return void (command.isRunning ? this.#children.add(command.pid) : this.#children.delete(command.pid));
      case 'pong':
        return this.#watch.answered();
      case 'claim':
        return void this.#claim(command);
      case 'unclaim':
        return this.#workers.get(command.workerNumber)?.workerNumber.unclaim();
      case 'ending':
        return this.#workers.get(command.workerNumber)?.workerNumber.end(command.key, command.isOver);
      case 'progress':
        return this.#held.get(command.key)?.held?.report(command.update, this.#caller.set.clock.now());
      case 'giveBack': {
        const held = this.#held.get(command.key)?.held;
        if (held) held.limited = false;
        return;
      }
      case 'release':
        return void this.#release(command);
      case 'session':
        return this.#workerNumber(command.workerNumber).enter(command.session);
      case 'work':
        return this.#workerNumber(command.workerNumber).count(command.work);
      case 'probe':
        return void this.#probe(command);
      case 'leave':
        return void this.#leave(command);
    }
  }

  close(): void {
    this.#caller.close();
    for (const batch of this.#batches.values()) batch.close();
    for (const { workerNumber } of this.#workers.values()) void workerNumber.leave();
    this.#stopSignals?.();
    for (const probe of this.#probes.values()) probe.close();
  }

  async #release(command: Command & { do: 'release' }): Promise<void> {
    const { key, ticket, update } = command;
    const entry = this.#held.get(key);
    this.#held.delete(key);
    if (update) entry?.held?.report(update, this.#caller.set.clock.now());
    if (entry?.held?.reporting) return this.#emit({ is: 'done', ticket, reported: true });
    await entry?.remove();
    this.#emit({ is: 'done', ticket, update: entry?.held?.unacknowledged });
  }

  async #claim({ workerNumber: number, claim, ticket }: Command & { do: 'claim' }): Promise<void> {
    const workerNumber = this.#workerNumber(number);
    const claimed = await workerNumber.claim(claim);
    for (const { taskId, attempt } of claimed.tasks ?? []) {
      const key = `${taskId}/${attempt}`;
      this.#held.set(key, { remove: () => workerNumber.remove(key) });
    }
    this.#emit({ is: 'done', ticket, claimed });
  }

  async #probe({ workerNumber, host, port, ticket }: Command & { do: 'probe' }): Promise<void> {
    try {
      const probe = await listen(host, port, () => this.#workerNumber(workerNumber).isAlive());
      this.#probes.set(workerNumber, probe);
      this.#emit({ is: 'done', ticket, port: probe.port });
    } catch (error) {
      this.#emit({ is: 'done', ticket, error: error instanceof Error ? error.message : String(error) });
    }
  }

  async #leave({ workerNumber, ticket }: Command & { do: 'leave' }): Promise<void> {
    this.#probes.get(workerNumber)?.close();
    this.#probes.delete(workerNumber);
    const member = this.#workers.get(workerNumber);
    for (const timer of member?.stopping?.timers ?? []) timer.cancel();
    await member?.workerNumber.leave();
    this.#workers.delete(workerNumber);
    if (![...this.#workers.values()].some(({ stops }) => stops?.bySignal)) {
      this.#stopSignals?.(); // otherwise no handler would end the process on a signal
      this.#stopSignals = undefined;
    }
    this.#emit({ is: 'done', ticket });
  }

  #batch(urls: string[]): Batch {
    const name = urls.join(' ');
    let batch = this.#batches.get(name);
    if (!batch) this.#batches.set(name, (batch = new Batch(this.#caller, new Endpoints(urls), this.#emit, this.#outage)));
    return batch;
  }

  #workerNumber(number: number): WorkerBeats {
    return this.#member(number).workerNumber;
  }

  #member(number: number): Member {
    let member = this.#workers.get(number);
    if (!member) {
      const workerNumber = new WorkerBeats(this.#caller, number, this.#emit, this.#outage, () => this.#reporting(number));
      this.#workers.set(number, (member = { workerNumber }));
    }
    return member;
  }

  #join(number: number, stops: Stops): void {
    this.#member(number).stops = stops;
    if (stops.bySignal) this.#stopSignals ??= this.#process?.onSignal(() => this.#signalled());
  }

  /** Stops the workers as the program does on the signal; a second signal shortens that. */
  #signalled(): void {
    const now = this.#caller.set.clock.now();
    for (const [number, { stops, stopping }] of this.#workers) {
      if (!stops?.bySignal) continue;
      if (stopping) this.#endIfBlocked(prompt, 'hard stop reached');
      else this.#emit({ is: 'stopping', workerNumber: number, at: now });
      this.#stop(number, now, false);
    }
  }

  /** Makes sure that a stopping worker is drained and ended, even if the event loop is blocked. */
  #stop(number: number, at: number, known: boolean): void {
    const member = this.#workers.get(number);
    if (!member?.stops || !this.#process) return;
    if (member.stopping) {
      member.stopping.known ||= known;
      return;
    }
    const stopping = (member.stopping = { at, known, timers: [] as Timer[] });
    const { clock } = this.#caller.set;
    const after = (ms: number, f: () => void) => stopping.timers.push(clock.setTimeout(f, at + ms - clock.now()));
    after(prompt, () => {
      if (!stopping.known) void member.workerNumber.drain();
    });
    after(member.stops.hardStopMs, () => this.#endIfBlocked(prompt, 'hard stop reached'));
  }

  /** An attempt is reported as TIMEOUT, possibly because its handler blocks the event loop. */
  #reporting(number: number): void {
    this.#endIfBlocked(patience * (this.#workers.get(number)?.stops?.hardStopMs ?? 0), 'a task exceeded its time limit');
  }

  /** Returns tasks to the queue and ends the process, unless the event loop responds within ms milliseconds. */
  #endIfBlocked(ms: number, why: string): void {
    if (!this.#process) return;
    this.#watch.ask(ms, () => void this.#end(why, this.#isStopping));
  }

  get #isStopping(): boolean {
    return [...this.#workers.values()].every(({ stopping }) => stopping !== undefined);
  }

  /**
   * Returns tasks to the queue and ends the process; with exit code 0 if it was to stop and no tasks are returned, as after every other
   * stop.
   */
  async #end(why: string, isStop: boolean): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    for (const pid of this.#children) this.#process!.kill(pid); // before other workers get the tasks
    const given = (await Promise.all([...this.#workers.values()].map(({ workerNumber }) => workerNumber.quit()))).flat();
    this.#process!.end(isStop && given.length === 0 ? 0 : 1, `${why} while the event loop is blocked`, given);
  }
}
