import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker as Thread } from 'node:worker_threads';
import type { Context } from '../context.js';
import { ClosedError } from '../errors.js';
import { Heart } from './heart.js';
import { source } from './source.js';
import type { Claimed, ClaimOrder, Hold, News, Order, Said, Session, Stops, Work } from './messages.js';

type WithoutTicket<T> = T extends unknown ? Omit<T, 'ticket'> : never;
type Of<K extends News['is']> = Extract<News, { is: K }>;

/** What is told of an attempt. */
export interface AttemptEars {
  hear(
    news: Of<'ended'> | Of<'leaseEnded'> | Of<'cancel'> | Of<'token'> | Of<'accepted'> | Of<'timeUp'> | Of<'reporting'> | Of<'reported'>,
  ): void;
}

/** What is told of a worker. */
export interface CrewEars {
  hear(news: Of<'answered'> | Of<'gone'> | Of<'stopping'>): void;
}

/** What is needed to begin anew with somebody else who beats. */
interface Known {
  order?: Order;
  ears?: AttemptEars;
}

/** Has the beats sent, and passes on what is heard. */
export class Hub {
  readonly #client: Context;
  readonly #inline: boolean;
  readonly #attempts = new Map<string, Known>();
  readonly #crews = new Map<number, { ears: CrewEars; stops: Stops; session?: Session; work?: Work }>();
  readonly #ending = new Map<string, number>(); // completions of workers that are under way
  readonly #tickets = new Map<number, (done: Of<'done'>) => void>();
  #heart: Heart | undefined;
  #thread: Thread | undefined;
  #port: MessagePort | undefined;
  #number = 0;
  #closed = false;

  constructor(client: Context, inline: boolean) {
    this.#client = client;
    this.#inline = inline;
  }

  /** Makes ready whoever beats, while something else is waited for. */
  ready(): void {
    if (!this.#closed && !this.#heart && !this.#port) this.#begin();
  }

  /** Has an attempt beaten for: by itself, at these addresses, or by a worker. */
  hold(hold: Hold, where: { urls: string[] } | { crew: number }, ears: AttemptEars): void {
    const order: Order = 'crew' in where ? { do: 'carry', hold, crew: where.crew } : { do: 'hold', hold, urls: where.urls };
    this.#attempts.set(hold.key, { order, ears });
    this.#tell(order);
  }

  /** Claims tasks, which are in the worker's inventory from then on; undefined: nobody knows what became of the claim. */
  async claim(crew: number, claim: ClaimOrder): Promise<Claimed | undefined> {
    const { claimed } = await this.#ask({ do: 'claim', crew, claim });
    for (const { taskId, attempt } of claimed?.tasks ?? []) {
      const order: Order = { do: 'list', key: `${taskId}/${attempt}`, taskId, attempt, crew };
      this.#attempts.set(order.key, { order });
    }
    return claimed;
  }

  unclaim(crew: number): void {
    if (!this.#closed) this.#tell({ do: 'unclaim', crew });
  }

  progress(key: string, said: Said): void {
    this.#tell({ do: 'progress', key, said });
  }

  /** The completion of a worker's attempt is sent from now on, until settled is called. */
  ending(key: string, crew: number): void {
    this.#ending.set(key, crew);
    if (!this.#closed) this.#tell({ do: 'ending', key, crew, isOver: false });
  }

  settled(key: string, crew: number): void {
    this.#ending.delete(key);
    if (!this.#closed) this.#tell({ do: 'ending', key, crew, isOver: true });
  }

  /** Leaves an attempt in its worker's inventory until that leaves. */
  giveBack(key: string): void {
    if (!this.#closed && this.#attempts.has(key)) this.#tell({ do: 'giveBack', key });
  }

  /**
   * Has nothing more sent for an attempt; what no server has acknowledged of its progress is returned. reported: it is completed where
   * the beats come from, and is to be released again when that is over.
   */
  async release(key: string, said?: Said): Promise<{ said?: Said; reported?: boolean }> {
    if (!this.#attempts.has(key) || this.#closed) return { said };
    const done = await this.#ask({ do: 'release', key, said });
    if (done.reported) return { reported: true };
    this.#attempts.delete(key);
    this.#mind();
    return { said: done.said };
  }

  /** Makes a worker's number. */
  join(ears: CrewEars, stops: Stops): number {
    const crew = ++this.#number;
    this.#crews.set(crew, { ears, stops });
    this.#tell({ do: 'join', crew, stops });
    return crew;
  }

  /** The worker stops since a moment of the monotonic clock. */
  stop(crew: number, at: number): void {
    if (this.#crews.has(crew) && !this.#closed) this.#tell({ do: 'stop', crew, at });
  }

  enter(crew: number, session: Session): void {
    const known = this.#crews.get(crew);
    if (!known || this.#closed) return; // it has left
    known.session = session;
    this.#tell({ do: 'session', crew, session });
  }

  work(crew: number, work: Work): void {
    const known = this.#crews.get(crew);
    if (!known || this.#closed) return;
    known.work = work;
    if (this.#heart || this.#port) this.#tell({ do: 'work', crew, work });
  }

  async probe(crew: number, host: string, port: number): Promise<number> {
    const done = await this.#ask({ do: 'probe', crew, host, port });
    if (done.error !== undefined) throw new Error('lubdub: the probe cannot listen: ' + done.error);
    return done.port ?? port;
  }

  async leave(crew: number): Promise<void> {
    if (!this.#closed && (this.#heart || this.#port)) await this.#ask({ do: 'leave', crew });
    this.#crews.delete(crew);
    for (const [key, { order }] of this.#attempts) if (order && 'crew' in order && order.crew === crew) this.#attempts.delete(key);
    this.#mind();
  }

  /** Takes in what was said already, which a program that was busy has not read yet. */
  catchUp(): void {
    if (!this.#port) return;
    for (let got = receiveMessageOnPort(this.#port); got; got = receiveMessageOnPort(this.#port)) this.#hear(got.message as News);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#heart?.close();
    this.#port?.close();
    void this.#thread?.terminate();
    for (const done of this.#tickets.values()) done({ is: 'done', ticket: 0 });
  }

  #ask(order: WithoutTicket<Extract<Order, { ticket: number }>>): Promise<Of<'done'>> {
    const ticket = ++this.#number;
    return new Promise((resolve) => {
      this.#tickets.set(ticket, resolve);
      this.#tell({ ...order, ticket });
    });
  }

  #tell(order: Order): void {
    if (this.#closed) throw new ClosedError();
    this.ready();
    this.#mind();
    if (this.#port) this.#port.postMessage(order);
    else this.#heart!.heed(order);
  }

  /** Lets the process end while nothing is held, and not before. */
  #mind(): void {
    const busy = this.#attempts.size > 0 || this.#crews.size > 0;
    if (busy) this.#thread?.ref();
    else this.#thread?.unref();
  }

  #begin(): void {
    if (this.#inline) this.#beginInline();
    else this.#beginThread();
  }

  #beginInline(): void {
    this.#heart = new Heart(this.#client.caller, (news) => this.#hear(news));
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
    port1.on('message', (news: News) => this.#hear(news));
    port1.unref();
    thread.on('error', (error) => this.#goOn(error.message));
    thread.on('exit', (code) => this.#goOn(`it ended with ${code}`));
    this.#thread = thread;
    this.#port = port1;
  }

  /** Goes on without the thread, should that have died. */
  #goOn(why: string): void {
    if (this.#closed || !this.#thread) return;
    this.#client.log.error('The thread that beats has died; beats come from the event loop now', { error: why });
    this.#port?.close();
    this.#thread = this.#port = undefined;
    this.#beginInline();
    for (const [crew, { stops, session, work }] of this.#crews) {
      this.#tell({ do: 'join', crew, stops });
      if (work) this.#tell({ do: 'work', crew, work });
      if (session) this.#tell({ do: 'session', crew, session });
    }
    for (const { order } of this.#attempts.values()) if (order) this.#tell(order);
    for (const [key, crew] of this.#ending) this.#tell({ do: 'ending', key, crew, isOver: false });
    for (const [ticket, done] of this.#tickets) {
      this.#tickets.delete(ticket);
      done({ is: 'done', ticket });
    }
  }

  #hear(news: News): void {
    switch (news.is) {
      case 'done': {
        const done = this.#tickets.get(news.ticket);
        this.#tickets.delete(news.ticket);
        return done?.(news);
      }
      case 'ping':
        return this.#closed ? undefined : this.#tell({ do: 'pong' });
      case 'stopping':
        return this.#crews.get(news.crew)?.ears.hear(news);
      case 'answered':
      case 'gone': {
        const known = this.#crews.get(news.crew);
        if (known && news.is === 'answered') known.session = news.session;
        return known?.ears.hear(news);
      }
      case 'log':
        return this.#client.log[news.level](news.message, news.fields);
      case 'beat':
        this.#client.metrics.beat?.(news.result, news.attempts, news.tookMs);
        for (const left of news.left) this.#client.metrics.leaseLeft?.(left);
        return;
      case 'claimed':
        return this.#client.metrics.claimed?.(news.result, news.tasks);
      case 'refused':
        return this.#client.metrics.refused?.(news.code);
      default:
        return this.#attempts.get(news.key)?.ears?.hear(news);
    }
  }
}
