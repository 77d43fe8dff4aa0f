import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Hub } from '../beats/hub.js';
import type { ProgressUpdate } from '../beats/messages.js';
import type { Clock, Timer } from '../clock.js';
import { copyOf } from '../copies.js';
import { graceOf, meansOver } from '../ends.js';
import { UsageError } from '../errors.js';
import { textOf } from '../failure.js';
import type { Logger } from '../metrics.js';
import { Child, Died, type Work } from './child.js';
import { Stopping, Stuck } from './ends.js';
import { withMargin } from './options.js';
import type { Handler, Task } from './task.js';

/** How many further children are started for an attempt if children die before it has begun. */
const spares = 2;

/** How long a child may be idle, in ms. */
const idleLimit = 60_000;

/** The child processes in which a worker runs its isolated handlers: one for each attempt that runs, and idle ones for the next. */
export class Children {
  readonly #clock: Clock;
  readonly #hub: Hub;
  readonly #log: Logger;
  readonly #modules = new Set<string>();
  readonly #busy = new Set<Child>();
  readonly #idle = new Map<Child, Timer>(); // with what ends them
  #closed = false;

  constructor({ clock, hub }: { clock: Clock; hub: Hub }, log: Logger) {
    this.#clock = clock;
    this.#hub = hub;
    this.#log = log;
  }

  /** Whether any handler is isolated. */
  get areUsed(): boolean {
    return this.#modules.size > 0;
  }

  /** Returns the handler that a module has as its default export; it runs in a child process. */
  handler({ href: module }: URL): Handler {
    program();
    this.#modules.add(module);
    return (task, signal) => {
      const { envelope, drainDeadline } = task;
      return this.#run({ do: 'run', module, envelope, drainBy: drainDeadline?.toISOString() }, signal, task);
    };
  }

  /** Loads all modules in a child, which is then idle; rejects if one cannot be loaded. */
  async load(signal: AbortSignal): Promise<void> {
    for (const module of this.#modules) await this.#run({ do: 'load', module }, signal);
  }

  /** Ends the children: idle ones exit, and others are killed. No more are started. */
  close(): void {
    this.#closed = true;
    for (const child of this.#busy) child.kill();
    for (const child of this.#idle.keys()) {
      this.#unpark(child);
      child.end();
    }
  }

  /** Does work in a child. One that dies before the handler was called is no failure of the attempt, and another one takes its place. */
  async #run(work: Work, signal: AbortSignal, task?: Task): Promise<unknown> {
    for (let left = spares; ; left--) {
      signal.throwIfAborted();
      const child = this.#take();
      try {
        return await this.#runIn(child, work, signal, task);
      } catch (error) {
        if (!(error instanceof Died)) throw error;
        const isLast = signal.aborted || error.hasBegun || left === 0;
        if (!child.isKilled && (signal.aborted || !isLast)) {
          this.#log.warn('The process of an isolated handler has died', { ...fieldsOf(task), pid: child.pid, error: textOf(error) });
        }
        signal.throwIfAborted();
        if (isLast) throw error;
      }
    }
  }

  async #runIn(child: Child, work: Work, signal: AbortSignal, task?: Task): Promise<unknown> {
    let killing: Timer | undefined;
    const kill = () => {
      this.#log.warn('An isolated handler has not ended, and its process is killed', { ...fieldsOf(task), pid: child.pid });
      child.kill();
    };
    const abort = () => {
      const reason: unknown = signal.reason;
      if (!task || meansOver(reason) || reason instanceof Stuck) return child.kill(); // another attempt may run
      child.post({ do: 'abort', reason: copyOf(reason) });
      if (!(reason instanceof Stopping)) killing = this.#clock.setTimeout(kill, withMargin(graceOf(task.envelope)));
    };
    signal.addEventListener('abort', abort, { once: true });
    try {
      return await child.run(work, signal, (update) => report(task, update));
    } finally {
      killing?.cancel();
      signal.removeEventListener('abort', abort);
      this.#release(child);
    }
  }

  #take(): Child {
    if (this.#closed) throw new UsageError('lubdub: the worker has ended, and with it its isolated handlers; create a new one');
    const usable = [...this.#idle.keys()].filter((child) => child.isUsable);
    const child = usable.at(-1) ?? this.#start(); // the last one, so that those that are not needed end
    this.#unpark(child);
    this.#busy.add(child);
    child.setRef('ref');
    if (child.pid !== undefined) this.#hub.child(child.pid, true);
    return child;
  }

  #start(): Child {
    try {
      const child: Child = new Child(program(), () => {
        this.#unpark(child);
        if (child.pid !== undefined) this.#hub.child(child.pid, false);
      });
      return child;
    } catch (error) {
      throw new Died('cannot be started', false, error);
    }
  }

  #release(child: Child): void {
    this.#busy.delete(child);
    if (!child.isUsable) return;
    if (this.#closed) return child.end();
    this.#hub.child(child.pid!, false);
    child.setRef('unref');
    const timer = this.#clock.setTimeout(() => {
      this.#unpark(child);
      child.end();
    }, idleLimit);
    timer.unref?.();
    this.#idle.set(child, timer);
  }

  /** Removes a child from the idle ones. */
  #unpark(child: Child): void {
    this.#idle.get(child)?.cancel();
    this.#idle.delete(child);
  }
}

function fieldsOf(task: Task | undefined): object {
  return task ? { taskId: task.id, type: task.type, attempt: task.attempt } : {};
}

function report(task: Task | undefined, { pct, message, details }: ProgressUpdate): void {
  try {
    if (pct !== undefined) task?.progress(pct, message);
    if (details !== undefined) task?.checkpoint(JSON.parse(details));
  } catch {
    // The attempt is over; the signal has notified the handler.
  }
}

function program(): string {
  const path = import.meta.url ? fileURLToPath(new URL('./isolated-child.js', import.meta.url)) : '';
  if (existsSync(path)) return path;
  throw new UsageError('lubdub: isolated handlers need the files of the package; exclude lubdub from the bundle');
}
