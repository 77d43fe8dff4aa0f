// A worker of the queue mail, a process for incidents.test.mjs: node worker.mjs NAME MACHINE VERSION.
import { Worker } from '../../sdk/typescript/dist/index.js';

const [name, machineId, version] = process.argv.slice(2);
const worker = new Worker('mail', { name, machineId, version, concurrency: 5 });

worker.handle('letter', () => {
  if (version === '2.0') throw new Error('no template for 2.0');
});

// The first attempt never ends.
worker.handle('parcel', async (task, signal) => {
  if (task.attempt > 1) return;
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  throw signal.reason;
});

worker.handle('bomb', () => process.exit(1));

await worker.runUntilSignal();
