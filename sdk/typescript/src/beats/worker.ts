import { type Caller, seg } from '../call.js';
import { backoff, type Moment, read, spread, type Timer } from '../clock.js';
import { Endpoints } from '../endpoints.js';
import { copyOf, errorOf } from '../copies.js';
import { ApiError, isGone, isHeld, mayRetry, retryAfterOf, UnansweredError } from '../errors.js';
import { completionOf, textOf } from '../failure.js';
import { sendCompletion } from '../persist.js';
import type { Outage } from '../outage.js';
import { intervalOf, isObject, objects, plain, text, timeoutOf } from '../answers.js';
import type { TaskError } from '../types.js';
import { claimUntilAnswered } from './claim.js';
import { Free, type Held, lookEvery } from './held.js';
import type { Claimed, ClaimCommand, Emit, Session, Work } from './messages.js';
import { beatOf, bodyOf, share } from './reports.js';
import { takeResults } from './results.js';

/** Heartbeats per request. */
const maxBatch = 1000;

/** The limit of a stopping worker's calls, in ms. */
const lastCallLimit = 5000;

/** The limit of all its last heartbeats, in ms: after the hard stop as little as 5 s are left, and deregistering matters more. */
const lastBeatLimit = 2000;

/** How many of these are in flight at once. */
const lastBeats = 8;

/** An attempt in the inventory. */
interface Entry {
  taskId: string;
  attempt: number;
  held?: Held; // once it has started
  named: number; // the last heartbeat that includes it
}

/**
 * Heartbeats for a worker and its tasks. An attempt that is being completed is in no inventory, and the server takes what two inventories
 * in a row omit for lost. In an outage a completion may take longer than that. So after one inventory without it, heartbeats include no
 * inventory until the completion is settled. Attempts with their own timeout then get separate heartbeats.
 */
export class WorkerBeats {
  readonly #caller: Caller;
  readonly #emit: Emit;
  readonly #outage: Outage;
  readonly #onReport: () => void;
  readonly #number: number;
  readonly #entries = new Map<string, Entry>();
  readonly #free = new Free();
  readonly #ending = new Map<string, boolean>(); // completions in flight; true: an inventory has omitted the attempt
  #session: Session | undefined; // undefined: it must register first
  #workerId = '';
  #timer: Timer | undefined;
  #awake: number; // when the heartbeat loop was last awake
  #due = 0;
  #until = 0; // nothing is sent before this time, because of Retry-After
  #beating = false;
  #beats = 0; // the number of heartbeats sent
  #failures = 0;
  #seq = 0;
  #work: Work = { active: 0, completed: 0, failed: 0 };
  #counted = { completed: 0, failed: 0 }; // acknowledged by servers
  #unanswered: { seq: number; completed: number; failed: number } | undefined;
  #over = false;
  readonly #leaving = new AbortController();
  readonly #late = new AbortController(); // ends the last heartbeats
  #claim: AbortController | undefined; // in flight

  /** onReport is called when this thread completes an attempt whose handler has not returned in time. */
  constructor(caller: Caller, number: number, emit: Emit, outage: Outage, onReport: () => void) {
    this.#outage = outage;
    this.#caller = caller;
    this.#number = number;
    this.#emit = emit;
    this.#onReport = onReport;
    this.#awake = caller.set.clock.now();
  }

  enter(session: Session): void {
    this.#session = { ...session };
    this.#workerId = session.workerId;
    this.#seq = this.#failures = this.#until = 0;
    this.#unanswered = undefined; // refused with the old session, and so not counted
    this.#ending.clear(); // the new session does not hold them
    this.#due = session.accepted.mono + spread(session.intervalMs);
    queueMicrotask(() => this.#look());
  }

  count(work: Work): void {
    this.#work = work;
  }

  /** Adds a claimed attempt to the inventory before it has started. */
  list(key: string, taskId: string, attempt: number): void {
    this.#entries.set(key, { taskId, attempt, named: 0 });
  }

  /** Claims tasks. They are in the inventory as soon as the answer arrives. */
  async claim(command: ClaimCommand): Promise<Claimed> {
    const ended = (this.#claim = new AbortController());
    if (this.#over) return {};
    const claimed = await claimUntilAnswered(this.#caller, command, () => this.#session, ended.signal, this.#emit, this.#outage);
    if (claimed.failure && isHeld(errorOf(claimed.failure))) this.#hold();
    for (const { taskId, attempt } of claimed.tasks ?? []) this.list(`${taskId}/${attempt}`, taskId, attempt);
    return claimed;
  }

  /** Sends nothing more: an operator holds the worker offline. */
  #hold(): void {
    this.#session = undefined;
    for (const { held } of this.#entries.values()) if (held) held.ended = true;
    this.#entries.clear();
  }

  /** Cancels the claim in flight. */
  unclaim(): void {
    this.#claim?.abort();
  }

  carry(held: Held): void {
    const { key, taskId, attempt } = held.hold;
    const named = this.#entries.get(key)?.named ?? 0;
    this.#entries.set(key, { taskId, attempt, held, named });
    queueMicrotask(() => this.#look()); // its interval may be shorter
  }

  /** The completion of an attempt is sent from now on, or is settled. */
  end(key: string, isOver: boolean): void {
    if (isOver) this.#ending.delete(key);
    else this.#ending.set(key, false);
  }

  /** Stops heartbeats for an attempt, and waits until no heartbeat in flight includes it. */
  async remove(key: string): Promise<void> {
    const entry = this.#entries.get(key);
    if (!entry) return;
    this.#entries.delete(key);
    if (entry.held) entry.held.ended = true;
    await this.#free.until(() => !this.#beating || entry.named !== this.#beats);
  }

  /** Stops the heartbeats when none is in flight, and sends what they have not, within a limited time. */
  async leave(): Promise<void> {
    this.#over = true;
    this.#outage.gone(this);
    this.unclaim();
    this.#leaving.abort(new UnansweredError('POST completed', 'the worker has deregistered', false));
    this.#timer?.cancel();
    const late = new UnansweredError('POST heartbeat', `no answer within ${lastBeatLimit} ms`, false);
    const timer = this.#caller.set.clock.setTimeout(() => this.#late.abort(late), lastBeatLimit);
    await this.#free.until(() => !this.#beating);
    await this.#deliver();
    timer.cancel();
  }

  /**
   * Sends progress and checkpoints that no heartbeat has sent yet: the next attempts are given them. They go in separate heartbeats, since
   * the worker's next one may have to omit its inventory, and with the worker's token, since that of a task is not renewed.
   */
  async #deliver(): Promise<void> {
    const token = this.#session?.token;
    const send = async ({ taskId, attempt, held }: Entry) => {
      if (!token || !held?.unacknowledged || held.ended || this.#caller.closing.aborted) return;
      const path = `/v1/tasks/${seg(taskId)}/heartbeat`;
      const body = beatOf({ attempt }, held.unacknowledged);
      try {
        await this.#caller.do({ method: 'POST', path, token, body, tries: Infinity, signal: this.#late.signal });
      } catch (error) {
        const fields = { taskId, attempt, error: textOf(error) };
        this.#emit({ is: 'log', level: 'warn', message: 'The last progress of a task was not sent', fields });
      }
    };
    const entries = [...this.#entries.values()].values();
    const sendNext = async () => {
      for (const entry of entries) await send(entry);
    };
    await Promise.all(Array.from({ length: lastBeats }, sendNext));
  }

  /** Announces the drain. */
  async drain(): Promise<void> {
    await this.#part('drain').catch(() => {});
  }

  /** Stops the heartbeats and deregisters; returns the ids of the tasks that go back to the queue. */
  async quit(): Promise<string[]> {
    await this.leave();
    await this.#part('deregister').catch(() => {});
    return [...this.#entries.values()].filter(({ held }) => !held?.ended).map(({ taskId }) => taskId);
  }

  async #part(what: 'drain' | 'deregister'): Promise<void> {
    if (!this.#session) return;
    const { workerId, token } = this.#session;
    const path = `/v1/workers/${seg(workerId)}/${what}`;
    await this.#caller.do({ method: 'POST', path, token, body: JSON.stringify({ reason: 'it stops' }), limitMs: lastCallLimit });
  }

  /** Whether the heartbeat loop is on time. It makes no calls. */
  isAlive(): boolean {
    const bound = (this.#session?.timeoutMs ?? 0) / 2;
    return this.#caller.set.clock.now() - this.#awake <= bound;
  }

  /** Ends expired leases, and sends a heartbeat if one is due. */
  #look(): void {
    this.#timer?.cancel();
    const { clock } = this.#caller.set;
    const now = read(clock);
    this.#awake = now.mono;
    if (this.#over) return;
    let wait = lookEvery;
    let due = this.#due;
    for (const { held } of this.#entries.values()) {
      if (!held || held.ended) continue;
      wait = Math.min(wait, held.look(now));
      const limit = held.lookAtLimits(now.mono);
      if (typeof limit === 'number') wait = Math.min(wait, limit);
      else void this.#report(held, limit);
      if (held.hold.own && this.#session) due = Math.min(due, this.#session.accepted.mono + held.interval * 0.9);
    }
    due = Math.max(due, this.#until);
    if (this.#session && !this.#beating) {
      if (due <= now.mono) void this.#beat(this.#session, now);
      else wait = Math.min(wait, due - now.mono);
    }
    this.#timer = clock.setTimeout(() => this.#look(), wait);
  }

  /** Completes an attempt whose handler has not returned in time. */
  async #report(held: Held, error: TaskError): Promise<void> {
    const { key, taskId, attempt, limits } = held.hold;
    const { clock } = this.#caller.set;
    held.reporting = true;
    this.#emit({ is: 'reporting', key });
    this.#onReport();
    this.end(key, false);
    const completedAt = new Date(clock.wall()).toISOString();
    const body = completionOf({ attempt, completedAt, workerId: this.#workerId, outcome: 'FAILED', error });
    try {
      await this.remove(key);
      const progress = held.unacknowledged && beatOf({ attempt }, held.unacknowledged);
      const call = { base: new Endpoints(limits!.urls), token: held.token, signal: this.#leaving.signal };
      const persistence = { expires: () => held.expires, other: () => this.#session?.token, leaseMs: held.timeout };
      const answer = await sendCompletion(this.#caller, taskId, body, progress, call, persistence);
      this.#emit({ is: 'reported', key, answer });
    } catch (error) {
      this.#emit({ is: 'reported', key, failure: copyOf(error) });
    } finally {
      this.end(key, true);
    }
  }

  /** Encodes a heartbeat, with or without the inventory. Deltas keep their values and sequence number until they are answered. */
  #write(isInventory: boolean): string {
    this.#unanswered ??= {
      seq: ++this.#seq,
      completed: this.#work.completed - this.#counted.completed,
      failed: this.#work.failed - this.#counted.failed,
    };
    const { seq, completed, failed } = this.#unanswered;
    const counts = JSON.stringify({ seq, activeCount: this.#work.active, completedDelta: completed, failedDelta: failed });
    const listed = [...this.#entries.values()].filter(({ held }) => !held?.ended);
    const carried = listed.flatMap(({ held }) => held ?? []);
    for (const entry of listed) entry.named = this.#beats;
    if (!isInventory) {
      for (const held of carried) held.pack(0); // its progress waits
      return counts;
    }
    share(carried);
    for (const key of this.#ending.keys()) this.#ending.set(key, true);
    const tasks = listed.map(({ taskId, attempt, held }) => held?.beat() ?? JSON.stringify({ taskId, attempt }));
    return `${counts.slice(0, -1)},"tasks":[${tasks.join()}]}`;
  }

  async #beat(session: Session, sent: Moment): Promise<void> {
    this.#beating = true;
    this.#beats++;
    const { clock, timeoutMs } = this.#caller.set;
    const left: number[] = [];
    const attempts = this.#entries.size;
    let result: 'ok' | 'refused' | 'unanswered' = 'ok';
    let failure: unknown;
    try {
      const isInventory = ![...this.#ending.values()].includes(true);
      const answer = await this.#caller.do({
        method: 'POST',
        path: `/v1/workers/${seg(session.workerId)}/heartbeat`,
        token: session.token,
        body: this.#write(isInventory),
        tries: 1,
        limitMs: Math.min(timeoutMs, session.timeoutMs / 3),
        signal: this.#late.signal,
      });
      this.#outage.answered(this);
      if (this.#session === session) this.#handle(session, isObject(answer) ? answer : {}, sent, left, isInventory);
      if (!isInventory) await this.#beatAlone(session, left);
    } catch (error) {
      failure = error;
      result = mayRetry(error) ? 'unanswered' : 'refused';
    }
    this.#beating = false;
    this.#free.notify();
    if (this.#caller.closing.aborted) return;
    this.#emit({ is: 'beat', result, attempts, tookMs: clock.now() - sent.mono, left });
    if (failure !== undefined && this.#session === session) this.#failed(session, failure);
    this.#look();
  }

  /** Sends separate heartbeats for attempts that have their own timeout. */
  async #beatAlone(session: Session, left: number[]): Promise<void> {
    const { clock, timeoutMs } = this.#caller.set;
    const own = [...this.#entries.values()].flatMap(({ held }) => (held && held.hold.own && !held.ended ? [held] : []));
    for (let first = 0; first < own.length; first += maxBatch) {
      const batch = own.slice(first, first + maxBatch).filter((held) => !held.ended);
      if (this.#session !== session || batch.length === 0) return;
      const sent = read(clock);
      const limitMs = Math.min(timeoutMs, ...batch.map((held) => held.timeout / 3));
      const body = bodyOf(batch);
      const call = { method: 'POST', path: '/v1/heartbeats', open: true, body, limitMs, tries: 1, signal: this.#late.signal };
      try {
        const answer = await this.#caller.do(call);
        const taken = takeResults(batch, answer, sent, read(clock), this.#emit);
        left.push(...taken.left);
        if (taken.pause > 0) this.#until = Math.max(this.#until, clock.now() + taken.pause);
      } catch (error) {
        if (mayRetry(error)) this.#outage.failed(this, 'a heartbeat', error);
        else this.#emit({ is: 'log', level: 'warn', message: 'Heartbeats were not accepted', fields: { error: textOf(error) } });
        this.#until = Math.max(this.#until, clock.now() + retryAfterOf(error) + backoff(this.#failures, session.intervalMs / 4));
      }
    }
  }

  #failed(session: Session, error: unknown): void {
    const { workerId } = session;
    const why = error instanceof Error ? error.message : String(error);
    if (error instanceof ApiError) this.#emit({ is: 'refused', code: error.code });
    if (mayRetry(error)) this.#outage.failed(this, 'a heartbeat', error);
    else this.#emit({ is: 'log', level: 'warn', message: 'A heartbeat was not accepted', fields: { workerId, error: why } });
    if (isGone(error)) {
      this.#session = undefined;
      if (isHeld(error)) this.#hold();
      this.#emit({ is: 'gone', workerNumber: this.#number, workerId, why, forced: isHeld(error) });
      return;
    }
    this.#until = this.#caller.set.clock.now() + retryAfterOf(error) + backoff(this.#failures++, session.intervalMs / 4);
  }

  /** Applies the answer to a heartbeat. */
  #handle(session: Session, answer: Record<string, unknown>, sent: Moment, left: number[], isInventory: boolean): void {
    const acknowledged = this.#unanswered;
    if (acknowledged) {
      this.#counted.completed += acknowledged.completed;
      this.#counted.failed += acknowledged.failed;
      this.#unanswered = undefined;
    }
    session.timeoutMs = timeoutOf(answer['heartbeatTimeoutMs'], session.timeoutMs);
    session.intervalMs = intervalOf(answer['heartbeatIntervalMs'], session.timeoutMs, session.intervalMs);
    session.token = plain(answer['workerToken']) || session.token;
    session.accepted = sent;
    this.#failures = this.#until = 0;
    this.#due = sent.mono + spread(session.intervalMs);
    const before = left.length;
    this.#applyTasks(answer, sent, session.timeoutMs, left, isInventory);
    const { workerId } = session;
    const fields = { workerId, active: this.#work.active, extended: left.length - before };
    this.#emit({ is: 'log', level: 'debug', message: 'Heartbeat sent successfully', fields });
    const shouldDrain = answer['shouldDrain'] === true;
    const drainDeadline = text(answer['drainDeadline']) || undefined;
    this.#emit({ is: 'answered', workerNumber: this.#number, workerId, session: { ...session }, shouldDrain, drainDeadline });
  }

  #applyTasks(answer: Record<string, unknown>, sent: Moment, timeout: number, left: number[], isInventory: boolean): void {
    const lost = new Map(objects(answer['lostTasks']).map((task) => [keyOf(task), text(task['error'])]));
    const now = read(this.#caller.set.clock);
    for (const { held, named, taskId, attempt } of this.#entries.values()) {
      if (!held || held.ended) continue;
      const code = lost.get(keyOf({ taskId, attempt }));
      if (code !== undefined) {
        held.end(code, {});
      } else if (named === this.#beats && (isInventory || !held.hold.own)) {
        left.push(held.take(sent, now, timeout));
      }
    }
    for (const task of objects(answer['cancelTasks'])) {
      for (const { held, taskId, attempt } of this.#entries.values()) {
        if (held && keyOf({ taskId, attempt }) === keyOf(task)) held.cancel(text(task['reason']));
      }
    }
  }
}

function keyOf(task: { taskId?: unknown; attempt?: unknown }): string {
  return `${text(task.taskId)}/${typeof task.attempt === 'number' ? task.attempt : ''}`;
}
