import { machineClock } from '../clock.js';
import { copyOf, errorOf } from '../copies.js';
import { EndedError } from '../ends.js';
import { Failure, textOf } from '../failure.js';
import { Updates } from '../updates.js';
import type { FromChild, ToChild, Work } from './child.js';
import { type Handler, outputOf, reportsOf, Task } from './task.js';

// What a child process does: it runs isolated handlers, one attempt at a time.

let running: AbortController | undefined;

function send(message: FromChild, sent = () => {}): void {
  process.send!(message, undefined, undefined, sent); // fails if the worker is gone, and this process ends
}

class Unloadable extends Failure {
  constructor(why: string, cause?: unknown) {
    super(`the module of the isolated handler ${why}`, { category: 'CONFIGURATION', retryable: true, cause });
  }
}

async function load(module: string): Promise<Handler> {
  try {
    const { default: found } = (await import(module)) as { default?: Handler | { default?: Handler } };
    const handler = typeof found === 'object' ? found.default : found; // an ES module that was compiled to CommonJS
    if (typeof handler === 'function') return handler;
  } catch (cause) {
    throw new Unloadable(`cannot be loaded: ${module}: ${textOf(cause)}`, cause);
  }
  throw new Unloadable(`has no function as its default export: ${module}`);
}

async function handle(handler: Handler, { envelope, drainBy }: Work & { do: 'run' }, signal: AbortSignal): Promise<unknown> {
  const updates = new Updates(machineClock, (update) => send({ is: 'update', update }));
  updates.open();
  const reports = reportsOf(envelope, signal, (update) => updates.add(update));
  await new Promise<void>((resolve) => send({ is: 'begun' }, resolve)); // the handler may end this process at once
  try {
    return await outputOf(handler, new Task(reports, () => (drainBy ? new Date(drainBy) : undefined)), signal);
  } finally {
    updates.flush();
    updates.close();
  }
}

async function run(work: Work): Promise<void> {
  const ending = (running = new AbortController());
  const { signal } = ending;
  let end: FromChild;
  try {
    const handler = await load(work.module);
    end = { is: 'done', output: work.do === 'run' ? await handle(handler, work, signal) : undefined };
  } catch (error) {
    // Node does not load a module again that has failed, so only another process can.
    end = { is: 'failed', error: copyOf(error, signal.reason), isReusable: !(error instanceof Unloadable) };
  }
  running = undefined;
  ending.abort(new EndedError());
  send(end);
}

process.on('uncaughtExceptionMonitor', (error) => send({ is: 'dying', error: copyOf(error) }));
process.on('message', (message: ToChild) => {
  if (message.do === 'abort') running?.abort(errorOf(message.reason));
  else void run(message);
});
