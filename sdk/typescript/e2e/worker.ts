// A worker for the tests: it says what it does, line by line.
import { existsSync, writeSync } from 'node:fs';
import { Worker } from 'lubdub';

const [queue, file] = process.argv.slice(2) as [string, string];
const say = (line: string) => writeSync(1, line + '\n');
const worker = new Worker(queue, { concurrency: 20, logger: { debug() {}, info: say, warn: say, error: say } });

worker.handle('quick', (task) => ({ twice: 2 * (task.payload as { n: number }).n }));

worker.handle('hold', async (task, signal) => {
  say(`begun ${task.id} ${task.attempt}`);
  if (task.attempt > 1) return task.lastProgress ?? null;
  task.progress(30, 'a third');
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  say(`ended ${task.id} ${(signal.reason as Error).name}`);
  throw signal.reason;
});

worker.handle('block', (task) => {
  say(`blocked ${task.id}`);
  while (!existsSync(file)); // and gives way to nothing
  return task.attempt;
});

await worker.runUntilSignal();
say('left');
