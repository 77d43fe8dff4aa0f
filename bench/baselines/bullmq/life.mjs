// Takes tasks with nothing to do through their whole life with BullMQ, as bench/baselines/life does with Lubdub's Go SDK.
import { parseArgs } from 'node:util';
import { Queue, Worker } from 'bullmq';

const { values } = parseArgs({ options: { redis: { type: 'string' }, tasks: { type: 'string' }, idle: { type: 'string' } } });
const [host, port] = values.redis.split(':');
const [tasks, idle] = [Number(values.tasks), Number(values.idle)];
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const queue = new Queue('life', { connection });
await queue.waitUntilReady();
const report = (phase, n, began, more = {}) =>
  console.log(JSON.stringify({ phase, n, seconds: (performance.now() - began) / 1000, ...more }));
console.log('{"phase":"ready"}');

/** Makes n calls, 16 at a time. */
async function parallel(n, call) {
  let next = 0;
  const caller = async () => {
    while (next++ < n) await call();
  };
  await Promise.all(Array.from({ length: 16 }, caller));
}

/** Lets a worker run n tasks, and meanwhile runs during. */
async function run(n, during = async () => {}, handle = async () => {}) {
  let done = 0;
  let worker;
  const over = new Promise((resolve) => {
    worker = new Worker(
      'life',
      async (job) => {
        await handle(job);
        if (++done === n) resolve();
      },
      { connection, concurrency: 32 },
    );
  });
  await worker.waitUntilReady();
  await during();
  await over;
  await worker.close();
}

for (const [name, each, call] of [
  ['create', 1, () => queue.add('noop', {})],
  ['batch', 100, () => queue.addBulk(Array.from({ length: 100 }, () => ({ name: 'noop', data: {} })))],
]) {
  let began = performance.now();
  await parallel(tasks / each, call);
  report(name, tasks, began);
  began = performance.now();
  await run(tasks);
  report('process after ' + name, tasks, began);
}

const waits = [];
let began = performance.now();
let started;
await run(
  idle,
  async () => {
    for (let i = 0; i < idle; i++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      const start = new Promise((resolve) => (started = resolve));
      await queue.add('noop', { at: performance.now() });
      await start;
    }
  },
  async (job) => {
    waits.push(performance.now() - job.data.at);
    started();
  },
);
waits.sort((a, b) => a - b);
report('idle', idle, began, { p50Ms: waits[idle >> 1], p99Ms: waits[Math.floor((idle * 99) / 100)] });
await queue.close();
process.exit(0);
