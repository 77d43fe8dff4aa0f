// A worker that blocks its event loop until a file exists; without a file, for ever.
import { existsSync, writeSync } from 'node:fs';
import { Client, Worker, type WorkerOptions } from 'lubdub';

const [options, file] = process.argv.slice(2) as [string, string | undefined];
const print = (line: string) => writeSync(1, line + '\n');
const logger = { debug() {}, info: print, warn: print, error: print };
const client = new Client(undefined, { logger, metrics: { ended: (end) => print(`ended ${JSON.stringify(end)}`) } });
const worker = new Worker('default', { ...(JSON.parse(options) as WorkerOptions), client });
worker.handle('block', (task) => {
  task.progress(1);
  task.checkpoint({ blocked: task.id });
  print(`blocked ${task.id}`);
  while (!file || !existsSync(file)); // without yielding
  return task.attempt;
});
worker.handle('isolated', new URL('./isolated.js', import.meta.url));
await worker.runUntilSignal();
client.close();
