import { Worker as Thread } from 'node:worker_threads';
import { machineClock } from '../clock.js';
import { copyOf, errorOf } from '../copies.js';
import { EndedError, throwIfOver } from '../ends.js';
import { Failure, textOf } from '../failure.js';
import { detailsOf, progressOf, Updates } from '../updates.js';
import type { FromChild, ToChild } from './children.js';
import { type Handler, outputOf, type Reports, Task } from './task.js';

// The program of a child process that runs isolated handlers, one attempt at a time.

/** Ends this process soon after the worker has closed its pipe or died, even if a handler blocks the event loop. */
const guard = `const pipe = new (require('node:net').Socket)({ fd: 4 });
pipe.on('error', () => {}).on('close', () => setTimeout(() => process.kill(process.pid, 'SIGKILL'), 1000)).resume();`;

let running: AbortController | undefined;

function send(message: FromChild): void {
  process.send!(message, undefined, undefined, () => {}); // fails if the worker is gone, and this process ends
}

class Unloadable extends Failure {}

async function load(module: string): Promise<Handler> {
  try {
    const { default: found } = (await import(module)) as { default?: Handler | { default?: Handler } };
    const handler = typeof found === 'object' ? found.default : found; // an ES module that was compiled to CommonJS
    if (typeof handler === 'function') return handler;
  } catch (cause) {
    const message = `the module of the isolated handler cannot be loaded: ${module}: ${textOf(cause)}`;
    throw new Unloadable(message, { category: 'CONFIGURATION', cause });
  }
  throw new Unloadable(`the module of the isolated handler has no function as its default export: ${module}`, {
    category: 'CONFIGURATION',
  });
}

/** Passes the reports of a handler on to the worker, until its attempt is over. */
function reportsOf(envelope: Reports['envelope'], signal: AbortSignal, updates: Updates): Reports {
  return {
    envelope,
    progress(pct, message) {
      const update = progressOf(pct, message);
      throwIfOver(signal);
      updates.add(update);
    },
    checkpoint(value) {
      const update = detailsOf(value);
      throwIfOver(signal);
      updates.add(update);
    },
  };
}

async function run({ module, envelope, drainBy }: ToChild & { do: 'run' }): Promise<void> {
  const ending = (running = new AbortController());
  const { signal } = ending;
  const updates = new Updates(machineClock, (update) => send({ is: 'update', update }));
  updates.open();
  let end: FromChild;
  try {
    const handler = await load(module);
    const task = new Task(reportsOf(envelope, signal, updates), () => (drainBy ? new Date(drainBy) : undefined));
    end = { is: 'done', output: await outputOf(handler, task, signal) };
  } catch (error) {
    end = { is: 'failed', error: copyOf(error, signal.reason), isReusable: !(error instanceof Unloadable) };
  }
  updates.flush();
  running = undefined;
  ending.abort(new EndedError());
  send(end);
}

new Thread(guard, { eval: true, execArgv: [], env: {} }).unref();
// Stop signals may reach all processes of a group, but the worker decides when an attempt ends.
process.on('SIGTERM', () => {}).on('SIGINT', () => {});
process.on('disconnect', () => process.exit());
process.on('uncaughtExceptionMonitor', (error) => send({ is: 'dying', error: copyOf(error) }));
process.on('message', (message: ToChild) => {
  if (message.do === 'run') void run(message);
  else running?.abort(errorOf(message.reason));
});
