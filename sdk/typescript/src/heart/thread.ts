import { writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { Caller } from '../call.js';
import type { Travel } from '../context.js';
import { machineClock } from '../clock.js';
import { Endpoints } from '../endpoints.js';
import { nodeTransport } from '../transport.js';
import { Heart } from './heart.js';
import type { Order } from './messages.js';

// The thread that beats, so that a program which blocks its event loop is not taken for dead.

/** A handle of libuv, as process.on uses one on the main thread. */
interface SignalHandle {
  onsignal: () => void;
  start(signal: number): number;
  unref(): void;
  close(): void;
}

/**
 * Calls heard at SIGTERM and SIGINT. Node passes signals on in the main thread only, whose event loop may be blocked; libuv passes them on
 * in every loop that has a handle for them, which Node lets be made by --expose-internals. Where that is refused, signals are noticed when
 * the event loop comes round.
 */
function onSignal(heard: () => void): () => void {
  const handles: SignalHandle[] = [];
  try {
    const { internalBinding } = createRequire(process.execPath)('internal/test/binding') as {
      internalBinding(name: string): { Signal: new () => SignalHandle };
    };
    const { Signal } = internalBinding('signal_wrap');
    for (const signal of [constants.signals.SIGTERM, constants.signals.SIGINT]) {
      const handle = new Signal();
      handle.onsignal = heard;
      handle.unref();
      handle.start(signal);
      handles.push(handle);
    }
  } catch {
    // As said.
  }
  return () => {
    for (const handle of handles) handle.close();
  };
}

/** Ends the process: with an exit code where the code that blocks the main thread can be interrupted, otherwise by SIGKILL. */
function end(code: number, why: string, taskIds: string[]): void {
  const given = taskIds.length > 0 ? `; ${taskIds.length} tasks were not finished and were given back: ${taskIds.join(', ')}` : '';
  writeSync(2, `lubdub: ${why}: the process ends${given}\n`);
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), 1000);
  try {
    const { Session } = createRequire(process.execPath)('node:inspector') as typeof import('node:inspector');
    const session = new Session();
    session.connectToMainThread();
    session.post('Runtime.evaluate', { expression: `process.exit(${code})` });
  } catch {
    // SIGKILL does.
  }
}

const { port, travel } = workerData as { port: MessagePort; travel: Travel };
const { agent, allowHttp, timeoutMs } = travel;
const { fetch } = nodeTransport(travel.connecting);
const caller = new Caller({ base: new Endpoints(travel.urls), fetch, clock: machineClock, agent, allowHttp, timeoutMs, tries: 1 });
const heart = new Heart(caller, (news) => port.postMessage(news), { onSignal, end });
// All that waits is taken in before a beat is written, which is in a microtask.
port.on('message', (order: Order) => {
  heart.heed(order);
  for (let more = receiveMessageOnPort(port); more; more = receiveMessageOnPort(port)) heart.heed(more.message as Order);
});
