import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker as Thread } from 'node:worker_threads';
import type { Context } from '../context.js';
import { ClosedError } from '../errors.js';
import { Beater } from './beater.js';
import { source } from './source.js';
import type { Claimed, ClaimCommand, Hold, Notice, Command, ProgressUpdate, Session, Stops, Work } from './messages.js';

type WithoutTicket<T> = T extends unknown ? Omit<T, 'ticket'> : never;
type Of<K extends Notice['is']> = Extract<Notice, { is: K }>;

/** Receives messages about an attempt. */
export interface AttemptListener {
  receive(
    notice: Of<'ended'> | Of<'leaseEnded'> | Of<'cancel'> | Of<'token'> | Of<'accepted'> | Of<'timeUp'> | Of<'reporting'> | Of<'reported'>,
  ): void;
}

/** Receives messages about a worker. */
export interface WorkerListener {
  receive(notice: Of<'answered'> | Of<'gone'> | Of<'stopping'>): void;
}

/** What is needed to start again without the thread. */
interface Known {
  command?: Command;
  listener?: AttemptListener;
}

/** Starts heartbeats, in a thread or inline, and passes on their messages. */
export class Hub {
  readonly #client: Context;
  readonly #inline: boolean;
  readonly #attempts = new Map<string, Known>();
  readonly #workers = new Map<number, { listener: WorkerListener; stops: Stops; session?: Session; work?: Work }>();
  readonly #ending = new Map<string, number>(); // completions of workers' attempts in flight
  readonly #tickets = new Map<number, (done: Of<'done'>) => void>();
  #beater: Beater | undefined;
  #thread: Thread | undefined;
  #port: MessagePort | undefined;
  #number = 0;
  #closed = false;

  constructor(client: Context, inline: boolean) {
    this.#client = client;
    this.#inline = inline;
  }

  /** Starts the thread early, while the program waits for something else. */
  ready(): void {
    if (!this.#closed && !this.#beater && !this.#port) this.#begin();
  }

  /** Starts heartbeats for an attempt: its own at these addresses, or as part of its worker's. */
  hold(hold: Hold, where: { urls: string[] } | { workerNumber: number }, listener: AttemptListener): void {
    const command: Command =
      'workerNumber' in where ? { do: 'carry', hold, workerNumber: where.workerNumber } : { do: 'hold', hold, urls: where.urls };
    this.#attempts.set(hold.key, { command, listener });
    this.#post(command);
  }

  /** Claims tasks, which are then in the worker's inventory; undefined: the result of the claim is unknown. */
  async claim(workerNumber: number, claim: ClaimCommand): Promise<Claimed | undefined> {
    const { claimed } = await this.#ask({ do: 'claim', workerNumber, claim });
    for (const { taskId, attempt } of claimed?.tasks ?? []) {
      const command: Command = { do: 'list', key: `${taskId}/${attempt}`, taskId, attempt, workerNumber };
      this.#attempts.set(command.key, { command });
    }
    return claimed;
  }

  unclaim(workerNumber: number): void {
    if (!this.#closed) this.#post({ do: 'unclaim', workerNumber });
  }

  progress(key: string, update: ProgressUpdate): void {
    if (!this.#closed) this.#post({ do: 'progress', key, update });
  }

  /** A child process runs an attempt, or does not any more. The thread kills those that do when it ends this process. */
  child(pid: number, isRunning: boolean): void {
    if (this.#port && !this.#closed) this.#post({ do: 'child', pid, isRunning });
  }

  /** The completion of a worker's attempt is sent from now on, until settled is called. */
  ending(key: string, workerNumber: number): void {
    this.#ending.set(key, workerNumber);
    if (!this.#closed) this.#post({ do: 'ending', key, workerNumber, isOver: false });
  }

  settled(key: string, workerNumber: number): void {
    this.#ending.delete(key);
    if (!this.#closed) this.#post({ do: 'ending', key, workerNumber, isOver: true });
  }

  /** Leaves an attempt in its worker's inventory until the worker deregisters. */
  giveBack(key: string): void {
    if (!this.#closed && this.#attempts.has(key)) this.#post({ do: 'giveBack', key });
  }

  /**
   * Stops heartbeats for an attempt, and returns progress that no server has acknowledged. reported: the heartbeat thread completes it, and
   * release must be called again afterwards.
   */
  async release(key: string, update?: ProgressUpdate): Promise<{ update?: ProgressUpdate; reported?: boolean }> {
    if (!this.#attempts.has(key) || this.#closed) return { update };
    const done = await this.#ask({ do: 'release', key, update });
    if (done.reported) return { reported: true };
    this.#attempts.delete(key);
    this.#updateRef();
    return { update: done.update };
  }

  /** Registers a worker's listener and returns its number. */
  join(listener: WorkerListener, stops: Stops): number {
    const workerNumber = ++this.#number;
    this.#workers.set(workerNumber, { listener, stops });
    this.#post({ do: 'join', workerNumber, stops });
    return workerNumber;
  }

  /** The worker has been stopping since a time of the monotonic clock. */
  stop(workerNumber: number, at: number): void {
    if (this.#workers.has(workerNumber) && !this.#closed) this.#post({ do: 'stop', workerNumber, at });
  }

  enter(workerNumber: number, session: Session): void {
    const known = this.#workers.get(workerNumber);
    if (!known || this.#closed) return; // it has deregistered
    known.session = session;
    this.#post({ do: 'session', workerNumber, session });
  }

  work(workerNumber: number, work: Work): void {
    const known = this.#workers.get(workerNumber);
    if (!known || this.#closed) return;
    known.work = work;
    if (this.#beater || this.#port) this.#post({ do: 'work', workerNumber, work });
  }

  async probe(workerNumber: number, host: string, port: number): Promise<number> {
    const done = await this.#ask({ do: 'probe', workerNumber, host, port });
    if (done.error !== undefined) throw new Error('lubdub: the probe cannot listen: ' + done.error);
    return done.port ?? port;
  }

  async leave(workerNumber: number): Promise<void> {
    if (!this.#closed && (this.#beater || this.#port)) await this.#ask({ do: 'leave', workerNumber });
    this.#workers.delete(workerNumber);
    for (const [key, { command }] of this.#attempts)
      if (command && 'workerNumber' in command && command.workerNumber === workerNumber) this.#attempts.delete(key);
    this.#updateRef();
  }

  /** Handles messages that a busy program has not read yet. */
  catchUp(): void {
    if (!this.#port) return;
    for (let got = receiveMessageOnPort(this.#port); got; got = receiveMessageOnPort(this.#port)) this.#receive(got.message as Notice);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#beater?.close();
    this.#port?.close();
    void this.#thread?.terminate();
    for (const done of this.#tickets.values()) done({ is: 'done', ticket: 0 });
  }

  #ask(command: WithoutTicket<Extract<Command, { ticket: number }>>): Promise<Of<'done'>> {
    const ticket = ++this.#number;
    return new Promise((resolve) => {
      this.#tickets.set(ticket, resolve);
      this.#post({ ...command, ticket });
    });
  }

  #post(command: Command): void {
    if (this.#closed) throw new ClosedError();
    this.ready();
    this.#updateRef();
    if (this.#port) this.#port.postMessage(command);
    else this.#beater!.handle(command);
  }

  /** Keeps the process alive while there are attempts or workers. */
  #updateRef(): void {
    const busy = this.#attempts.size > 0 || this.#workers.size > 0;
    if (busy) this.#thread?.ref();
    else this.#thread?.unref();
  }

  #begin(): void {
    if (this.#inline) this.#beginInline();
    else this.#beginThread();
  }

  #beginInline(): void {
    this.#beater = new Beater(this.#client.caller, (notice) => this.#receive(notice));
  }

  #beginThread(): void {
    const { port1, port2 } = new MessageChannel();
    const start = (...execArgv: string[]) =>
      new Thread(source, {
        eval: true,
        workerData: { port: port2, travel: this.#client.travel },
        transferList: [port2],
        execArgv,
        name: 'lubdub beats',
      });
    let thread: Thread;
    try {
      thread = start('--expose-internals', '--no-warnings'); // see onSignal in thread.ts
    } catch {
      thread = start();
    }
    thread.unref();
    port1.on('message', (notice: Notice) => this.#receive(notice));
    port1.unref();
    thread.on('error', (error) => this.#continueInline(error.message));
    thread.on('exit', (code) => this.#continueInline(`it exited with ${code}`));
    this.#thread = thread;
    this.#port = port1;
  }

  /** Continues inline after the thread has died. */
  #continueInline(why: string): void {
    if (this.#closed || !this.#thread) return;
    this.#client.log.error('The heartbeat thread has died; heartbeats are now sent from the event loop', { error: why });
    this.#port?.close();
    this.#thread = this.#port = undefined;
    this.#beginInline();
    for (const [workerNumber, { stops, session, work }] of this.#workers) {
      this.#post({ do: 'join', workerNumber, stops });
      if (work) this.#post({ do: 'work', workerNumber, work });
      if (session) this.#post({ do: 'session', workerNumber, session });
    }
    for (const { command } of this.#attempts.values()) if (command) this.#post(command);
    for (const [key, workerNumber] of this.#ending) this.#post({ do: 'ending', key, workerNumber, isOver: false });
    for (const [ticket, done] of this.#tickets) {
      this.#tickets.delete(ticket);
      done({ is: 'done', ticket });
    }
  }

  #receive(notice: Notice): void {
    switch (notice.is) {
      case 'done': {
        const done = this.#tickets.get(notice.ticket);
        this.#tickets.delete(notice.ticket);
        return done?.(notice);
      }
      case 'ping':
        return this.#closed ? undefined : this.#post({ do: 'pong' });
      case 'stopping':
        return this.#workers.get(notice.workerNumber)?.listener.receive(notice);
      case 'answered':
      case 'gone': {
        const known = this.#workers.get(notice.workerNumber);
        if (known && notice.is === 'answered') known.session = notice.session;
        return known?.listener.receive(notice);
      }
      case 'log':
        return this.#client.log[notice.level](notice.message, notice.fields);
      case 'beat':
        this.#client.metrics.beat?.(notice.result, notice.attempts, notice.tookMs);
        for (const left of notice.left) this.#client.metrics.leaseLeft?.(left);
        return;
      case 'claimed':
        return this.#client.metrics.claimed?.(notice.result, notice.tasks);
      case 'refused':
        return this.#client.metrics.refused?.(notice.code);
      default:
        return this.#attempts.get(notice.key)?.listener?.receive(notice);
    }
  }
}
