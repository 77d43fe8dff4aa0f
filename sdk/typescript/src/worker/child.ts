import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import type { ProgressUpdate } from '../beats/messages.js';
import { type ErrorCopy, errorOf } from '../copies.js';
import { Failure, textOf } from '../failure.js';
import type { TaskEnvelope } from '../types.js';

/** What a child process is given to do: to load the module of a handler, or also to run an attempt. */
export type Work = { do: 'load'; module: string } | { do: 'run'; module: string; envelope: TaskEnvelope; drainBy?: string };

/** To a child process. */
export type ToChild = Work | { do: 'abort'; reason: ErrorCopy };

/** From a child process. */
export type FromChild =
  | { is: 'begun' } // the handler is called next
  | { is: 'update'; update: ProgressUpdate }
  | { is: 'done'; output?: unknown }
  | { is: 'failed'; error: ErrorCopy; isReusable: boolean }
  | { is: 'dying'; error: ErrorCopy }; // of an uncaught error

/** A child process has died, or cannot be started. */
export class Died extends Failure {
  /** Whether the handler was called. */
  readonly hasBegun: boolean;

  constructor(why: string, hasBegun: boolean, cause?: unknown) {
    const message = `the process of the isolated handler ${why}${cause ? `: ${textOf(cause)}` : ''}`;
    super(message, { category: 'INFRASTRUCTURE', retryable: true, cause });
    this.hasBegun = hasBegun;
  }
}

/** Work in progress. */
interface Current {
  hasBegun: boolean;
  signal: AbortSignal;
  update(update: ProgressUpdate): void;
  resolve(output: unknown): void;
  reject(error: Error): void;
}

/** Signals that end a process whose memory has run out: the first is V8's, the second the kernel's. */
const memory: NodeJS.Signals[] = ['SIGABRT', 'SIGKILL'];

/** A child process, which does one thing at a time. */
export class Child {
  readonly #process: ChildProcess;
  #current: Current | undefined; // undefined: what the child sends is dropped
  #dying: unknown; // the error that ends it

  /** onExit is called when it has ended, or cannot be started. */
  constructor(program: string, onExit: () => void) {
    this.#process = fork(program, { execArgv: execArgv(), stdio: ['ignore', 'inherit', 'inherit', 'ipc', 'pipe'] });
    this.#process.on('message', (message: FromChild | undefined) => this.#receive(message));
    this.#process.on('error', (error) => {
      if (this.pid !== undefined) return; // a message was not sent since the child has died, which is noticed
      this.#dying = error;
      onExit();
      this.#end('cannot be started');
    });
    this.#process.on('exit', (code, by) => {
      onExit();
      const why = by ? `was ended by ${by}${memory.includes(by) ? ', as when its memory ran out' : ''}` : `exited with ${code}`;
      if (this.#process.connected) this.#process.once('disconnect', () => this.#end(why));
      else this.#end(why); // all its messages were received
    });
  }

  /** Undefined if it cannot be started. */
  get pid(): number | undefined {
    return this.#process.pid;
  }

  get isKilled(): boolean {
    return this.#process.killed;
  }

  get isUsable(): boolean {
    const { pid, connected, killed, exitCode, signalCode } = this.#process;
    return pid !== undefined && connected && !killed && exitCode === null && signalCode === null;
  }

  /** Resolves with the output of work, and rejects with its error, or a Died. The signal's reason is the error if that is what it was. */
  run(work: Work, signal: AbortSignal, update: (update: ProgressUpdate) => void): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#current = { hasBegun: false, signal, update, resolve, reject };
      this.post(work);
    });
  }

  post(message: ToChild): void {
    this.#process.send?.(message, () => {}); // it fails if the child has died, which is noticed
  }

  kill(): void {
    this.#process.kill('SIGKILL');
  }

  /** Ends a child that has nothing to do. */
  end(): void {
    if (this.#process.connected) this.#process.disconnect();
    this.#pipe?.destroy();
  }

  /** Sets whether the child keeps this process alive. */
  setRef(how: 'ref' | 'unref'): void {
    this.#process[how]();
    this.#process.channel?.[how]();
    this.#pipe?.[how]();
  }

  /** The pipe that the child watches, since it is closed when this process dies. */
  get #pipe(): Socket | undefined {
    return this.#process.stdio?.[4] as Socket | undefined;
  }

  #receive(message: FromChild | undefined): void {
    if (message?.is === 'dying') this.#dying = errorOf(message.error);
    const current = this.#current;
    if (!current) return;
    switch (message?.is) {
      case 'begun':
        current.hasBegun = true;
        return;
      case 'update':
        return current.update(message.update);
      case 'done':
        this.#current = undefined;
        return current.resolve(message.output);
      case 'failed':
        this.#current = undefined;
        if (!message.isReusable) this.kill();
        return current.reject(errorOf(message.error, current.signal.reason));
    }
  }

  #end(why: string): void {
    this.#current?.reject(new Died(why, this.#current.hasBegun, this.#dying));
    this.#current = undefined;
  }
}

/** The options of Node that children inherit; undefined: all. A child cannot listen where this process's debugger does. */
function execArgv(): string[] | undefined {
  const isInspect = (arg: string) => arg.startsWith('--inspect');
  return process.execArgv.some(isInspect) ? process.execArgv.filter((arg) => !isInspect(arg)) : undefined;
}
