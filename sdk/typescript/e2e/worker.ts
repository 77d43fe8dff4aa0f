// A worker for the tests: it prints what it does, line by line.
import { existsSync, writeSync } from 'node:fs';
import { Worker } from 'lubdub';

const [queue, file] = process.argv.slice(2) as [string, string];
const print = (line: string) => writeSync(1, line + '\n');
const worker = new Worker(queue, { concurrency: 20, logger: { debug() {}, info: print, warn: print, error: print } });

worker.handle('quick', (task) => ({ twice: 2 * (task.payload as { n: number }).n }));

worker.handle('fail', () => {
  throw new Error('no such file');
});

worker.handle('hold', async (task, signal) => {
  print(`begun ${task.id} ${task.attempt}`);
  if (task.attempt > 1) return task.lastProgress ?? null;
  task.progress(30, 'a third');
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  print(`ended ${task.id} ${(signal.reason as Error).name}`);
  throw signal.reason;
});

worker.handle('block', (task) => {
  print(`blocked ${task.id}`);
  while (!existsSync(file)); // without yielding
  return task.attempt;
});

await worker.runUntilSignal();
print('left');
