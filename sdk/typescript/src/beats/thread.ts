import { writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { Caller } from '../call.js';
import type { Travel } from '../context.js';
import { machineClock } from '../clock.js';
import { Endpoints } from '../endpoints.js';
import { nodeTransport } from '../transport.js';
import { Beater } from './beater.js';
import type { Command } from './messages.js';

// The heartbeat thread, so that a program that blocks its event loop is not declared dead.

/** A handle of libuv, as process.on uses one on the main thread. */
interface SignalHandle {
  onsignal: () => void;
  start(signal: number): number;
  unref(): void;
  close(): void;
}

/**
 * Calls back on SIGTERM and SIGINT. Node delivers signals in the main thread only, whose event loop may be blocked; libuv delivers them in
 * every loop that has a handle for them, which --expose-internals makes available. If that is refused, signals are noticed when the event
 * loop responds again.
 */
function onSignal(callback: () => void): () => void {
  const handles: SignalHandle[] = [];
  try {
    const { internalBinding } = createRequire(process.execPath)('internal/test/binding') as {
      internalBinding(name: string): { Signal: new () => SignalHandle };
    };
    const { Signal } = internalBinding('signal_wrap');
    for (const signal of [constants.signals.SIGTERM, constants.signals.SIGINT]) {
      const handle = new Signal();
      handle.onsignal = callback;
      handle.unref();
      handle.start(signal);
      handles.push(handle);
    }
  } catch {
    // See above.
  }
  return () => {
    for (const handle of handles) handle.close();
  };
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

/** Ends the process: with an exit code if the code that blocks the main thread can be interrupted, otherwise with SIGKILL. */
function end(code: number, why: string, taskIds: string[]): void {
  const given =
    taskIds.length > 0 ? `; ${taskIds.length} tasks were not finished and were returned to the queue: ${taskIds.join(', ')}` : '';
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), 1000);
  try {
    writeSync(2, `lubdub: ${why}: ending the process${given}\n`);
  } catch {
    // Standard error is closed or full.
  }
  try {
    const { Session } = createRequire(process.execPath)('node:inspector') as typeof import('node:inspector');
    const session = new Session();
    session.connectToMainThread();
    session.post('Runtime.evaluate', { expression: `process.exit(${code})` });
  } catch {
    // SIGKILL follows.
  }
}

const { port, travel } = workerData as { port: MessagePort; travel: Travel };
const { agent, allowHttp, timeoutMs } = travel;
const { fetch } = nodeTransport(travel.connecting);
const caller = new Caller({ base: new Endpoints(travel.urls), fetch, clock: machineClock, agent, allowHttp, timeoutMs, tries: 1 });
const beater = new Beater(caller, (notice) => port.postMessage(notice), { onSignal, kill, end });
// All pending messages are handled before a heartbeat is written, which happens in a microtask.
port.on('message', (command: Command) => {
  beater.handle(command);
  for (let more = receiveMessageOnPort(port); more; more = receiveMessageOnPort(port)) beater.handle(more.message as Command);
});
