import { type ChildProcess, fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { ProgressUpdate } from '../beats/messages.js';
import type { Clock } from '../clock.js';
import { copyOf, type ErrorCopy, errorOf } from '../copies.js';
import { UsageError } from '../errors.js';
import { Failure, textOf } from '../failure.js';
import type { Logger } from '../metrics.js';
import type { TaskEnvelope } from '../types.js';
import { Stopping } from './ends.js';
import { withMargin } from './options.js';
import type { Handler, Task } from './task.js';

/** To a child process. */
export type ToChild = { do: 'run'; module: string; envelope: TaskEnvelope; drainBy?: string } | { do: 'abort'; reason: ErrorCopy };

/** From a child process. */
export type FromChild =
  | { is: 'update'; update: ProgressUpdate }
  | { is: 'done'; output?: unknown }
  | { is: 'failed'; error: ErrorCopy; isReusable: boolean }
  | { is: 'dying'; error: ErrorCopy }; // of an uncaught error

/** The child processes in which a worker runs its isolated handlers: one for each attempt that runs, and idle ones for the next. */
export class Children {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #busy = new Set<ChildProcess>();
  readonly #idle = new Set<ChildProcess>();

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Returns the handler that a module has as its default export; it runs in a child process. */
  handler(what: string, module: URL): Handler {
    if (module.protocol === 'file:' && !existsSync(module)) {
      throw new UsageError(`lubdub: the handler ${what} is a module that does not exist: ${fileURLToPath(module)}`);
    }
    program();
    return (task, signal) => this.#run(module.href, task, signal);
  }

  /** Ends the children: idle ones exit, and others are killed. */
  close(): void {
    for (const child of this.#busy) child.kill('SIGKILL');
    for (const child of this.#idle) {
      child.disconnect();
      pipeOf(child)?.destroy();
    }
    this.#idle.clear();
  }

  async #run(module: string, task: Task, signal: AbortSignal): Promise<unknown> {
    let child: ChildProcess;
    try {
      child = this.#take();
    } catch (error) {
      throw failureOf('cannot be started', error);
    }
    let dying: Error | undefined; // the uncaught error that ends it
    let killing: { cancel(): void } | undefined;
    const kill = () => {
      const { id: taskId, type, attempt } = task;
      this.#log.warn('An isolated handler has not ended, and its process is killed', { taskId, type, attempt, pid: child.pid });
      child.kill('SIGKILL');
    };
    const abort = () => {
      post(child, { do: 'abort', reason: copyOf(signal.reason) });
      if (signal.reason instanceof Stopping) return; // it has until the hard stop
      killing = this.#clock.setTimeout(kill, withMargin(graceOf(task.envelope)));
    };
    const ended = new Promise<unknown>((resolve, reject) => {
      const died = (why: string) => reject(signal.aborted ? (signal.reason as Error) : failureOf(why, dying));
      child.on('message', (message: FromChild | undefined) => {
        switch (message?.is) {
          case 'update':
            return report(task, message.update);
          case 'dying':
            dying = errorOf(message.error);
            return;
          case 'done':
            return resolve(message.output);
          case 'failed':
            if (!message.isReusable) child.kill('SIGKILL');
            return reject(errorOf(message.error, signal.reason));
        }
      });
      child.on('error', (error) => {
        dying = error;
        if (!child.pid) died('cannot be started');
      });
      child.on('exit', (code, by) => {
        const end = () =>
          died(by ? `was ended by ${by}${memory.includes(by) ? ', as when its memory ran out' : ''}` : `exited with ${code}`);
        if (child.connected) child.once('disconnect', end);
        else end(); // all its messages were received
      });
      signal.addEventListener('abort', abort, { once: true });
      post(child, { do: 'run', module, envelope: task.envelope, drainBy: task.drainDeadline?.toISOString() });
      if (signal.aborted) abort();
    });
    try {
      return await ended;
    } finally {
      killing?.cancel();
      signal.removeEventListener('abort', abort);
      this.#release(child);
    }
  }

  #take(): ChildProcess {
    const [idle] = this.#idle;
    if (idle) this.#idle.delete(idle);
    const child = idle ?? fork(program(), { stdio: ['ignore', 'inherit', 'inherit', 'ipc', 'pipe'] });
    this.#busy.add(child);
    setRef(child, 'ref');
    return child;
  }

  #release(child: ChildProcess): void {
    this.#busy.delete(child);
    for (const event of ['message', 'error', 'exit', 'disconnect']) child.removeAllListeners(event);
    child.on('error', () => {}); // such as a message that was not sent
    if (!child.connected || child.killed) return;
    setRef(child, 'unref');
    this.#idle.add(child);
    child.on('exit', () => this.#idle.delete(child));
  }
}

/** Signals that end a process whose memory has run out: the first is V8's, the second the kernel's. */
const memory: NodeJS.Signals[] = ['SIGABRT', 'SIGKILL'];

function failureOf(why: string, dying: unknown): Failure {
  const message = `the process of the isolated handler ${why}${dying ? `: ${textOf(dying)}` : ''}`;
  return new Failure(message, { category: 'INFRASTRUCTURE', retryable: true, cause: dying });
}

/** How long a handler may continue after its signal has ended, in ms. */
function graceOf({ cancelGracePeriodMs }: TaskEnvelope): number {
  return Math.max(cancelGracePeriodMs, 1000);
}

function report(task: Task, { pct, message, details }: ProgressUpdate): void {
  try {
    if (pct !== undefined) task.progress(pct, message);
    if (details !== undefined) task.checkpoint(JSON.parse(details));
  } catch {
    // The attempt is over; the signal has notified the handler.
  }
}

function post(child: ChildProcess, message: ToChild): void {
  child.send?.(message, () => {}); // it fails if the child has died, which is noticed
}

/** The pipe that a child watches, since it is closed when this process dies. */
function pipeOf(child: ChildProcess): Socket | undefined {
  return child.stdio?.[4] as Socket | undefined;
}

/** Whether a child keeps this process alive. */
function setRef(child: ChildProcess, how: 'ref' | 'unref'): void {
  child[how]();
  child.channel?.[how]();
  pipeOf(child)?.[how]();
}

function program(): string {
  const path = import.meta.url ? fileURLToPath(new URL('./child.js', import.meta.url)) : '';
  if (existsSync(path)) return path;
  throw new UsageError('lubdub: isolated handlers need the files of the package; exclude lubdub from the bundle');
}
