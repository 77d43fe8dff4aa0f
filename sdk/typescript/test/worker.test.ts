import assert from 'node:assert/strict';
import test from 'node:test';
import { Client, currentTask, Failure, UsageError, Worker } from 'lubdub';
import { FakeServer } from 'lubdub/testing';
import { gate, site } from './site.js';

test('a worker registers, claims, does, completes, beats with all that it holds, and leaves', async () => {
  const hold = gate();
  const s = await site(async (task) => {
    if (task.id === 'slow') await hold.opened;
    assert.equal(currentTask(), task);
    task.progress(50, 'half');
    return { got: task.payload, trace: task.traceparent, type: task.type, attempt: task.attempt };
  });
  const fast = s.server.enqueue({ type: 'work', payload: { n: 1 }, traceparent: '00-1-2-01' });
  s.server.enqueue({ type: 'work', taskId: 'slow' });
  await s.server.until('it is done', () => s.server.isOver(fast));
  assert.deepEqual(s.server.task(fast).output, { got: { n: 1 }, trace: '00-1-2-01', type: 'work', attempt: 1 });
  assert.equal(s.server.task(fast).progressPct, 50);
  await s.server.clock.advance(10_000);
  assert.deepEqual(s.beats().at(-1)!.tasks, [{ taskId: 'slow', attempt: 1 }]);
  assert.equal(s.beats().at(-1)!.activeCount, 1);
  assert.equal(s.worker.activeCount, 1);
  hold.open();
  await s.server.clock.advance(20_000);
  const [known] = s.server.workers();
  assert.deepEqual([known!.completed, known!.failed, known!.activeCount], [2, 0, 0]);
  assert.ok(!s.lines.some((line) => line.includes('goes on though')), 'a handler that has returned goes on');
  assert.equal(await s.stop(), undefined);
  assert.equal(s.server.workers()[0]!.status, 'OFFLINE');
  assert.equal(s.worker.isRegistered, false);
  for (const line of [`info Worker registered with ID: ${known!.workerId}`, 'debug Heartbeat sent successfully',
    'info Draining: the worker stops', `info Deregistering worker ID: ${known!.workerId}`]) assert.ok(s.lines.includes(line), line);
  const { request } = known!;
  assert.deepEqual(request.runtimes, ['node', 'node' + process.versions.node.split('.')[0]]);
  assert.deepEqual([request.types, request.pid, request.maxConcurrent], [['work'], process.pid, 100]);
  assert.ok(request.machineId && request.name);
});

test('what a process is comes from its environment, and what it is told goes first', async () => {
  const before = { ...process.env };
  Object.assign(process.env, { POD_NAME: 'pod-1', NODE_NAME: 'node/1', ZONE: 'z', DEPLOYMENT: 'd' });
  const s = await site(() => 1, { labels: { zone: 'mine', x: 'y' }, version: '1.2', runtimes: ['gpu'], concurrency: 3 });
  process.env = before;
  const { request } = s.server.workers()[0]!;
  assert.deepEqual(request.labels, { pod: 'pod-1', node: 'node/1', zone: 'mine', deployment: 'd', x: 'y' });
  assert.deepEqual([request.name, request.machineId, request.version, request.maxConcurrent], ['pod-1', 'node-1', '1.2', 3]);
  assert.ok(request.runtimes!.includes('gpu'));
  await s.stop();
});

test('middleware wraps handlers, the first outermost', async () => {
  const order: string[] = [];
  const server = new FakeServer();
  const client = new Client(server.url, server.options());
  const worker = new Worker('default', { client });
  for (const name of ['outer', 'inner']) {
    worker.use((next) => async (task, signal) => {
      order.push(name);
      return next(task, signal);
    });
  }
  worker.handle('work', () => order.push('work'));
  const running = worker.run();
  const id = server.enqueue({ type: 'work' });
  await server.until('it is done', () => server.isOver(id));
  assert.deepEqual(order, ['outer', 'inner', 'work']);
  worker.close();
  await server.finish(running);
  client.close();
});

test('bad use of a worker fails early, in words that name the remedy', async () => {
  const { url, options } = { url: 'http://127.0.0.1:1', options: new FakeServer().options() };
  const client = new Client(url, options);
  const bad: [() => unknown, RegExp][] = [
    [() => new Worker('', { client }), /no queue/],
    [() => new Worker('q', { client, concurrency: 0 }), /1 is the least/],
    [() => new Worker('q', { client, softStopMs: 30_000 }), /must not come before the soft one/],
    [() => new Worker('q', { client, watchdogMs: -1 }), /must not be negative/],
    [() => new Worker('q', { client }).handle('', () => 1), /name the type/],
    [() => new Worker('q', { client }).handle('a', undefined as never), /is no function/],
    [() => new Worker('q', { client }).handle('a', () => 1).handle('a', () => 2), /two handlers for "a"; keep one/],
  ];
  for (const [use, says] of bad) assert.throws(use, (e) => e instanceof UsageError && says.test(e.message));
  process.env['TERMINATION_GRACE_PERIOD_SECONDS'] = '25';
  assert.throws(() => new Worker('q', { client }), /raise terminationGracePeriodSeconds/);
  delete process.env['TERMINATION_GRACE_PERIOD_SECONDS'];
  await assert.rejects(new Worker('q', { client }).run(), /no handler; call handle before run/);
  const unhandled = new Worker('q', { client, types: ['a', 'b'] }).handle('a', () => 1);
  await assert.rejects(unhandled.run(), /type "b" would be claimed and have no handler/);
  await assert.rejects(unhandled.run(), /has run already/);
  assert.throws(() => unhandled.handle('b', () => 1), /comes too late/);
  assert.ok(new Failure('x') instanceof Error);
  client.close();
});

test('what is counted of a worker', async () => {
  const seen: [string, ...unknown[]][] = [];
  const note = (name: string) => (...all: unknown[]) => {
    seen.push([name, ...all]);
    throw new Error('whoever counts is out of order');
  };
  const server = new FakeServer();
  const client = new Client(server.url, { ...server.options(), metrics: {
    claimed: note('claimed'), running: note('running'), completed: note('completed'), beat: note('beat'), leaseLeft: note('leaseLeft'),
  } });
  const worker = new Worker('default', { client }).handle('work', () => 1);
  const running = worker.run();
  const id = server.enqueue({ type: 'work' });
  await server.until('it is done', () => server.isOver(id));
  await server.clock.advance(11_000);
  worker.close();
  await server.finish(running);
  for (const one of [['claimed', 'ok', 1], ['running', 1], ['running', 0], ['completed', 'SUCCEEDED']]) {
    assert.ok(seen.some((got) => JSON.stringify(got) === JSON.stringify(one)), String(one));
  }
  assert.ok(seen.some(([name, result]) => name === 'beat' && result === 'ok'));
  client.close();
});

test('the probe answers while beats are on time, and its URL is told', async () => {
  const server = new FakeServer();
  const client = new Client(server.url, server.options());
  const worker = new Worker('default', { client, probe: { port: 0, host: '127.0.0.1' } }).handle('work', () => 1);
  const running = worker.run();
  while (server.workers().length === 0) await new Promise((resolve) => setTimeout(resolve, 5)); // a real socket opens first
  const { probeUrl } = server.workers()[0]!.request;
  assert.equal((await fetch(probeUrl!)).status, 200);
  assert.equal((await fetch(probeUrl!, { method: 'POST' })).status, 405);
  await server.clock.advance(20_000);
  assert.equal((await fetch(probeUrl!)).status, 200);
  worker.close();
  await server.finish(running);
  client.close();
  await assert.rejects(fetch(probeUrl!));
});

test('timeouts of workers that leave no room for one Retry-After are taken, and warned of', async () => {
  for (const workerTimeoutMs of [3000, 2999]) {
    const server = new FakeServer({ workerIntervalMs: 1000, workerTimeoutMs });
    const told: string[] = [];
    const logger = { debug() {}, info() {}, error() {}, warn: (message: string) => void told.push(message) };
    const client = new Client(server.url, server.options());
    const worker = new Worker('default', { client, logger }).handle('work', () => 1);
    const running = worker.run();
    await server.until('it is registered', () => worker.isRegistered);
    assert.deepEqual(told.map((m) => /no room for one Retry-After/.test(m)), workerTimeoutMs < 3000 ? [true] : []);
    worker.close();
    await server.finish(running);
    client.close();
  }
});
