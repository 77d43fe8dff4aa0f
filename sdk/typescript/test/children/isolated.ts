// An isolated handler whose payload names what it does. It writes the files it is given, since other messages wait for the clock.
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { Cancelled, currentTask, Failure, permanent, retryAfter, Snooze, StoppedError, type Task } from 'lubdub';

interface Payload {
  does: string;
  file: string;
  port?: number;
}

class NoSuchFile extends Error {}

const throws: Record<string, () => unknown> = {
  snooze: () => new Snooze(1000),
  cancelled: () => new Cancelled('unsubscribed'),
  stopped: () => new StoppedError('phase', { rows: 1 }),
  failure: () => new Failure('bad row', { category: 'DATA_QUALITY' }),
  permanent: () => permanent(new TypeError('no')),
  retryAfter: () => retryAfter('busy', 5000),
  own: () => Object.assign(new NoSuchFile('gone', { cause: new RangeError('why') }), { code: 'ENOENT', self: process }),
  text: () => 'text',
  usage: () => {
    currentTask()!.progress(101);
  },
};

function show(task: Task): object {
  const { id, type, attempt, traceparent, lastCheckpoint, lastProgress } = task;
  return { pid: process.pid, id, type, attempt, traceparent, lastCheckpoint, lastProgress, isCurrent: currentTask() === task };
}

export default async function work(task: Task<Payload>, signal: AbortSignal): Promise<unknown> {
  const { does, file, port } = task.payload;
  if (does === 'snooze' && task.attempt > 1) return show(task);
  task.progress(5, does);
  task.checkpoint({ attempt: task.attempt, pid: process.pid });
  if (port) await once(connect(port, '127.0.0.1'), 'connect'); // it is closed when this process dies
  if (file) writeFileSync(file, String(process.pid));
  switch (does) {
    case 'show':
      return show(task);
    case 'print':
      console.log('printed by', process.pid);
      return null;
    case 'notJson':
      return 1n;
    case 'block':
      for (;;);
    case 'exit':
      return process.exit(3);
    case 'kill':
      process.kill(process.pid, 'SIGKILL');
      return setImmediate();
    case 'uncaught':
      void Promise.reject(new NoSuchFile('not awaited'));
      return setImmediate();
    case 'sendLater':
      setImmediate().then(() => process.send!({ is: 'done', output: 'late' }, () => writeFileSync(file + '.sent', '')));
      return null;
    case 'execArgv':
      return process.execArgv;
    case 'wait':
    case 'rethrow':
    case 'exitWhenStopped':
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      if (does === 'rethrow') throw signal.reason;
      if (does === 'exitWhenStopped') return process.exit(4);
      return [(signal.reason as Error).name, signal.reason instanceof Error && signal.reason.message];
    default:
      throw throws[does]!();
  }
}
