import { type Caller, seg } from '../call.js';
import { backoff, type Moment, read, spread, type Timer } from '../clock.js';
import { ApiError, hasCode, mayRetry, retryAfterOf } from '../errors.js';
import type { WorkerHeartbeatResponse } from '../types.js';
import { Free, type Held, lookEvery } from './held.js';
import type { Emit, Session, Work } from './messages.js';

/** An attempt in the inventory. */
interface Entry {
  taskId: string;
  attempt: number;
  held?: Held; // once it has started
  named: number; // the last beat that names it
}

/** Whether an error says that a worker is not known any more, or not as one that may act: it must register anew. */
export function isGone(error: unknown): boolean {
  return hasCode(error, 'worker_not_found', 'worker_offline') || (error instanceof ApiError && error.status === 401);
}

/** Beats for a worker and all that it holds. */
export class Crew {
  readonly #caller: Caller;
  readonly #emit: Emit;
  readonly #number: number;
  readonly #entries = new Map<string, Entry>();
  readonly #free = new Free();
  #session: Session | undefined; // undefined: it must register first
  #timer: Timer | undefined;
  #awake: number; // when the beats were looked at last
  #due = 0;
  #until = 0; // nothing is sent before: the server does not answer
  #beating = false;
  #beats = 0; // how many were sent
  #failures = 0;
  #seq = 0;
  #work: Work = { active: 0, completed: 0, failed: 0 };
  #counted = { completed: 0, failed: 0 }; // that servers have acknowledged
  #unanswered: { seq: number; completed: number; failed: number } | undefined;
  #over = false;

  constructor(caller: Caller, number: number, emit: Emit) {
    this.#caller = caller;
    this.#number = number;
    this.#emit = emit;
    this.#awake = caller.set.clock.now();
  }

  enter(session: Session): void {
    this.#session = { ...session };
    this.#seq = this.#failures = this.#until = 0;
    this.#unanswered = undefined; // refused with the old one, and so not counted
    this.#due = session.accepted.mono + spread(session.intervalMs);
    queueMicrotask(() => this.#look());
  }

  count(work: Work): void {
    this.#work = work;
  }

  /** Has an attempt that was claimed in the inventory, from before it has started. */
  list(key: string, taskId: string, attempt: number): void {
    this.#entries.set(key, { taskId, attempt, named: 0 });
  }

  carry(held: Held): void {
    const { key, taskId, attempt } = held.hold;
    const named = this.#entries.get(key)?.named ?? 0;
    this.#entries.set(key, { taskId, attempt, held, named });
    queueMicrotask(() => this.#look()); // it may want to be heard more often
  }

  /** Has nothing more sent for an attempt. It returns once no beat is under way that names it. */
  async remove(key: string): Promise<void> {
    const entry = this.#entries.get(key);
    if (!entry) return;
    this.#entries.delete(key);
    if (entry.held) entry.held.ended = true;
    await this.#free.until(() => !this.#beating || entry.named !== this.#beats);
  }

  /** Ends the beats, once none is under way. */
  async leave(): Promise<void> {
    this.#over = true;
    this.#timer?.cancel();
    await this.#free.until(() => !this.#beating);
  }

  /** Whether its beats are on time. It asks nobody. */
  isAlive(): boolean {
    const bound = (this.#session?.timeoutMs ?? 0) / 2;
    return this.#caller.set.clock.now() - this.#awake <= bound;
  }

  /** Ends leases that are over, and sends a beat if one is due. */
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
      if (held.hold.own && this.#session) due = Math.min(due, this.#session.accepted.mono + held.interval * 0.9);
    }
    due = Math.max(due, this.#until);
    if (this.#session && !this.#beating) {
      if (due <= now.mono) void this.#beat(this.#session, now);
      else wait = Math.min(wait, due - now.mono);
    }
    this.#timer = clock.setTimeout(() => this.#look(), wait);
  }

  /** Writes a beat with all that is held. Deltas stay as they are, with their number, until they are answered. */
  #write(): string {
    this.#unanswered ??= {
      seq: ++this.#seq, completed: this.#work.completed - this.#counted.completed, failed: this.#work.failed - this.#counted.failed,
    };
    const { seq, completed, failed } = this.#unanswered;
    const tasks: object[] = [];
    for (const entry of this.#entries.values()) {
      if (entry.held?.ended) continue;
      entry.named = this.#beats;
      tasks.push(entry.held?.beat() ?? { taskId: entry.taskId, attempt: entry.attempt });
    }
    return JSON.stringify({ seq, activeCount: this.#work.active, completedDelta: completed, failedDelta: failed, tasks });
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
      const answer = await this.#caller.do({
        method: 'POST', path: `/v1/workers/${seg(session.workerId)}/heartbeat`, token: session.token, body: this.#write(), tries: 1,
        limitMs: Math.min(timeoutMs, session.timeoutMs / 3),
      });
      if (this.#session === session) this.#heed(session, answer as WorkerHeartbeatResponse, sent, left);
    } catch (error) {
      failure = error;
      result = mayRetry(error) ? 'unanswered' : 'refused';
    }
    this.#beating = false;
    this.#free.tell();
    if (this.#caller.closing.aborted) return;
    this.#emit({ is: 'beat', result, attempts, tookMs: clock.now() - sent.mono, left });
    if (failure !== undefined && this.#session === session) this.#failed(session, failure);
    this.#look();
  }

  #failed(session: Session, error: unknown): void {
    const { workerId } = session;
    const why = error instanceof Error ? error.message : String(error);
    if (error instanceof ApiError) this.#emit({ is: 'refused', code: error.code });
    this.#emit({ is: 'log', level: 'warn', message: 'A heartbeat was not accepted', fields: { workerId, error: why } });
    if (isGone(error)) {
      this.#session = undefined;
      this.#emit({ is: 'gone', crew: this.#number, workerId, why });
      return;
    }
    this.#until = this.#caller.set.clock.now() + retryAfterOf(error) + backoff(this.#failures++, session.intervalMs / 4);
  }

  /** Does what the answer to a beat asks for. */
  #heed(session: Session, answer: WorkerHeartbeatResponse, sent: Moment, left: number[]): void {
    const acknowledged = this.#unanswered;
    if (acknowledged) {
      this.#counted.completed += acknowledged.completed;
      this.#counted.failed += acknowledged.failed;
      this.#unanswered = undefined;
    }
    session.intervalMs = answer.heartbeatIntervalMs || session.intervalMs;
    session.timeoutMs = answer.heartbeatTimeoutMs || session.timeoutMs;
    session.token = answer.workerToken || session.token;
    session.accepted = sent;
    this.#failures = this.#until = 0;
    this.#due = sent.mono + spread(session.intervalMs);
    this.#heedTasks(answer, sent, session.timeoutMs, left);
    const { shouldDrain, drainDeadline } = answer;
    const { workerId } = session;
    const fields = { workerId, active: this.#work.active };
    this.#emit({ is: 'log', level: 'debug', message: 'Heartbeat sent successfully', fields });
    this.#emit({ is: 'answered', crew: this.#number, workerId, session: { ...session }, shouldDrain, drainDeadline });
  }

  #heedTasks(answer: WorkerHeartbeatResponse, sent: Moment, timeout: number, left: number[]): void {
    const key = (task: { taskId: string; attempt: number }) => `${task.taskId}/${task.attempt}`;
    const lost = new Map((answer.lostTasks ?? []).map((task) => [key(task), task]));
    const now = read(this.#caller.set.clock);
    for (const { held, named, taskId, attempt } of this.#entries.values()) {
      if (!held || held.ended) continue;
      const told = lost.get(key({ taskId, attempt }));
      if (told) {
        const fields = { taskId, attempt, error: told.error };
        this.#emit({ is: 'log', level: 'warn', message: `Task ${taskId} is lost`, fields });
        held.end(told.error, {});
      } else if (named === this.#beats) {
        left.push(held.take(sent, now, timeout));
      }
    }
    for (const task of answer.cancelTasks ?? []) {
      for (const { held, taskId, attempt } of this.#entries.values()) {
        if (held && taskId === task.taskId && attempt === task.attempt) held.cancel(task.reason ?? '');
      }
    }
  }
}
