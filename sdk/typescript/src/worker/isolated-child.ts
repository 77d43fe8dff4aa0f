import { Worker as Thread } from 'node:worker_threads';

// The program of a child process that runs isolated handlers. What protects it comes before all that takes time to load.

/** Ends this process soon after the worker has closed its pipe or died, even if a handler blocks the event loop. */
const guard = `const pipe = new (require('node:net').Socket)({ fd: 4 });
pipe.on('error', () => {}).on('close', () => setTimeout(() => process.kill(process.pid, 'SIGKILL'), 1000)).resume();`;

// Stop signals may reach all processes of a group, but the worker decides when an attempt ends.
process.on('SIGTERM', () => {}).on('SIGINT', () => {});
new Thread(guard, { eval: true, execArgv: [], env: {} }).unref();
process.on('disconnect', () => process.exit());
await import('./isolated.js');
