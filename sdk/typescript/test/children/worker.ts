// A worker that blocks its event loop: with a file, until that is there; without one, for ever.
import { existsSync, writeSync } from 'node:fs';
import { Worker, type WorkerOptions } from 'lubdub';

const [options, file] = process.argv.slice(2) as [string, string | undefined];
const say = (line: string) => writeSync(1, line + '\n');
const logger = { debug() {}, info: say, warn: say, error: say };
const worker = new Worker('default', { ...(JSON.parse(options) as WorkerOptions), logger });
worker.handle('block', (task) => {
  say(`blocked ${task.id}`);
  while (!file || !existsSync(file)); // and gives way to nothing
  return task.attempt;
});
await worker.runUntilSignal();
