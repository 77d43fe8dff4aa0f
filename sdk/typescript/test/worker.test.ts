import assert from 'node:assert/strict';
import test from 'node:test';
import { Client, currentTask, Failure, UsageError, Worker } from 'lubdub';
import { FakeServer } from 'lubdub/testing';
import { gate, once, site, untilEnded } from './site.js';

test('a worker registers, claims, runs and completes tasks, sends heartbeats, and deregisters', async () => {
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
  await s.server.until('the lease that it extended is logged', () => s.extended.at(-1) === 1);
  assert.equal(s.worker.activeCount, 1);
  hold.open();
  await s.server.clock.advance(20_000);
  const [known] = s.server.workers();
  assert.deepEqual([known!.completed, known!.failed, known!.activeCount], [2, 0, 0]);
  assert.ok(!s.lines.some((line) => line.includes('still running though')), 'a returned handler counts as running');
  assert.equal(await s.stop(), undefined);
  assert.equal(s.server.workers()[0]!.status, 'OFFLINE');
  assert.equal(s.worker.isRegistered, false);
  for (const line of [
    `info Worker registered with ID: ${known!.workerId}`,
    'debug Heartbeat sent successfully',
    'info Draining: the worker is stopping',
    `info Deregistering worker ID: ${known!.workerId}`,
  ])
    assert.ok(s.lines.includes(line), line);
  const { request } = known!;
  assert.deepEqual(request.runtimes, ['node', 'node' + process.versions.node.split('.')[0]]);
  assert.deepEqual([request.types, request.pid, request.maxConcurrent], [['work'], process.pid, 100]);
  assert.ok(request.machineId && request.name);
});

test('the identity of a worker comes from its environment, and options override it', async () => {
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

test('wrong use of a worker fails early with an error that names the remedy', async () => {
  const { url, options } = { url: 'http://127.0.0.1:1', options: new FakeServer().options() };
  const client = new Client(url, options);
  const bad: [() => unknown, RegExp][] = [
    [() => new Worker('', { client }), /no queue/],
    [() => new Worker('q', { client, concurrency: 0 }), /1 is the least/],
    [() => new Worker('q', { client, softStopMs: 30_000 }), /must not come before the soft one/],
    [() => new Worker('q', { client, watchdogMs: -1 }), /must not be negative/],
    [() => new Worker('q', { client }).handle('', () => 1), /name the type/],
    [() => new Worker('q', { client }).handleDefault(() => 1).handleDefault(() => 2), /two default handlers; keep one/],
    [() => new Worker('q', { client }).handle('a', undefined as never), /is neither a function nor/],
    [() => new Worker('q', { client }).handle('a', () => 1).handle('a', () => 2), /two handlers for "a"; keep one/],
  ];
  for (const [use, words] of bad) assert.throws(use, (e) => e instanceof UsageError && words.test(e.message));
  process.env['TERMINATION_GRACE_PERIOD_SECONDS'] = '25';
  assert.throws(() => new Worker('q', { client, hardStopMs: 25_000 }), /raise terminationGracePeriodSeconds/);
  delete process.env['TERMINATION_GRACE_PERIOD_SECONDS'];
  await assert.rejects(new Worker('q', { client }).run(), /no handler; call handle before run/);
  await assert.rejects(new Worker('q', { client }).handleDefault(() => 1).run(), /call handle as well/);
  const unhandled = new Worker('q', { client, types: ['a', 'b'] }).handle('a', () => 1);
  await assert.rejects(unhandled.run(), /type "b" would be claimed but have no handler/);
  await assert.rejects(unhandled.run(), /has already run/);
  assert.throws(() => unhandled.handle('b', () => 1), /after the worker started/);
  assert.ok(new Failure('x') instanceof Error);
  client.close();
});

test('metrics of a worker', async () => {
  const seen: [string, ...unknown[]][] = [];
  const note =
    (name: string) =>
    (...all: unknown[]) => {
      seen.push([name, ...all]);
      throw new Error('the metrics fail');
    };
  const server = new FakeServer();
  const client = new Client(server.url, {
    ...server.options(),
    metrics: {
      claimed: note('claimed'),
      running: note('running'),
      completed: note('completed'),
      beat: note('beat'),
      leaseLeft: note('leaseLeft'),
    },
  });
  const worker = new Worker('default', { client }).handle('work', () => 1);
  const running = worker.run();
  const id = server.enqueue({ type: 'work' });
  await server.until('it is done', () => server.isOver(id));
  await server.clock.advance(11_000);
  worker.close();
  await server.finish(running);
  for (const one of [
    ['claimed', 'ok', 1],
    ['running', 1],
    ['running', 0],
    ['completed', 'SUCCEEDED'],
  ]) {
    assert.ok(
      seen.some((got) => JSON.stringify(got) === JSON.stringify(one)),
      String(one),
    );
  }
  assert.ok(seen.some(([name, result]) => name === 'beat' && result === 'ok'));
  client.close();
});

test('the probe answers while heartbeats are on time, and its URL is registered', async () => {
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

test('worker timeouts that are too short for one Retry-After are accepted with one warning', async () => {
  for (const workerTimeoutMs of [3000, 2999]) {
    const server = new FakeServer({ workerIntervalMs: 1000, workerTimeoutMs });
    const warnings: string[] = [];
    const logger = { debug() {}, info() {}, error() {}, warn: (message: string) => void warnings.push(message) };
    const client = new Client(server.url, { ...server.options(), logger });
    const worker = new Worker('default', { client }).handle('work', () => 1);
    const running = worker.run();
    await server.until('it is registered', () => worker.isRegistered);
    const taskId = server.enqueue({ type: 'work' });
    await server.until('a task is done', () => server.task(taskId).state === 'SUCCEEDED');
    assert.deepEqual(
      warnings.map((m) => /no room for one Retry-After/.test(m)),
      workerTimeoutMs < 3000 ? [true] : [],
    );
    worker.close();
    await server.finish(running);
    client.close();
  }
});

test("the stops follow the orchestrator's grace period unless the user sets them", async () => {
  const stops = async (grace: string | undefined, options: { softStopMs?: number; hardStopMs?: number } = {}) => {
    if (grace !== undefined) process.env['TERMINATION_GRACE_PERIOD_SECONDS'] = grace;
    const seen: number[] = [];
    const s = await site(async (_, signal) => {
      await untilEnded(signal);
      seen.push(s.server.clock.now());
      return new Promise(() => {});
    }, options);
    delete process.env['TERMINATION_GRACE_PERIOD_SECONDS'];
    s.server.enqueue({ type: 'work' });
    await s.server.until('it is at work', () => s.worker.activeCount === 1);
    const start = s.server.clock.now();
    await s.stop();
    return [seen[0]! - start, s.server.clock.now() - start];
  };
  assert.deepEqual(await stops(undefined), [20_000, 25_000]);
  assert.deepEqual(await stops('30'), [20_000, 25_000]);
  assert.deepEqual(await stops('120'), [110_000, 115_000]);
  assert.deepEqual(await stops('6'), [4000, 5000]);
  assert.deepEqual(await stops('120', { softStopMs: 1000, hardStopMs: 2000 }), [1000, 2000]);
});

test("a task's own run timeout replaces the default limit, and not one that the user has set", async () => {
  for (const [taskTimeoutMs, state] of [
    [undefined, 'SUCCEEDED'],
    [60_000, 'FAILED'],
  ] as const) {
    const s = await site(
      (_, signal) =>
        new Promise((resolve, reject) => {
          s.server.clock.setTimeout(() => resolve(1), 400_000);
          signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
        }),
      { taskTimeoutMs },
    );
    const own = s.server.enqueue({ type: 'work', runTimeoutMs: 1_000_000, ...once });
    const none = s.server.enqueue({ type: 'work', ...once });
    await s.server.until('both are over', () => s.server.isOver(own) && s.server.isOver(none));
    assert.deepEqual([s.server.task(own).state, s.server.task(none).state], [state, 'FAILED']);
    await s.stop();
  }
});

test('workers of one process with the same name get different names', async () => {
  const server = new FakeServer();
  const client = new Client(server.url, server.options());
  const make = (queue: string, name?: string) => new Worker(queue, { client, name }).handle('work', () => 1);
  const workers = [make('default', 'w'), make('default', 'w'), make('default', 'w'), make('other', 'w'), make('default'), make('default')];
  const running = workers.map((worker) => worker.run());
  await server.until('all are registered', () => workers.every((worker) => worker.isRegistered));
  const names = server.workers().map((w) => w.request.name!);
  assert.deepEqual(names.slice(0, 4), ['w', 'w-2', 'w-3', 'w']);
  assert.equal(names[5], names[4] + '-2');
  for (const worker of workers) worker.close();
  await server.finish(Promise.all(running));
  const next = make('default', 'w');
  const last = next.run();
  await server.until('it is registered', () => next.isRegistered);
  assert.equal(server.workers().at(-1)!.request.name, 'w', 'a name that is free is used again');
  next.close();
  await server.finish(last);
  client.close();
});

test('tasks without a type are run by the default handler, and not claimed without one', async () => {
  const s = await site(() => 1);
  const [left, typed] = [s.server.enqueue({}), s.server.enqueue({ type: 'work' })];
  await s.server.until('the typed one is over', () => s.server.isOver(typed));
  await s.stop();
  assert.equal(s.server.task(left).state, 'QUEUED');
  const server = new FakeServer();
  const client = new Client(server.url, server.options());
  const worker = new Worker('default', { client }).handle('work', () => 'typed').handleDefault(() => 'untyped');
  const running = worker.run();
  const ids = [server.enqueue({}), server.enqueue({ type: 'work' })];
  await server.until('both are over', () => ids.every((id) => server.isOver(id)));
  assert.deepEqual(
    ids.map((id) => server.task(id).output),
    ['untyped', 'typed'],
  );
  worker.close();
  await server.finish(running);
  client.close();
});

test('a failure logs one line, and so do the beginning and the end of an outage', async () => {
  const written: string[] = [];
  const { error } = console;
  console.error = (line: string) => void written.push(line);
  const server = new FakeServer();
  const client = new Client(server.url, server.options()); // without a logger
  const worker = new Worker('default', { client }).handle('work', (task) => {
    if (task.id === 'fine') return 1;
    throw new Error(`${task.id} is broken`);
  });
  const running = worker.run();
  server.intercept((r) =>
    r.path.endsWith('/again/completed')
      ? { status: 200, body: { acknowledged: true, finalState: 'FAILED', willRetry: true, nextAttempt: 2, serverTime: '' } }
      : undefined,
  );
  for (const taskId of ['fine', 'bad', 'again']) server.enqueue({ type: 'work', taskId, ...once });
  await server.until('they are over', () => server.isOver('bad') && server.isOver('fine') && worker.activeCount === 0);
  assert.deepEqual(written.filter((line) => /fine|bad|again/.test(line)).sort(), [
    'error: A task failed and will not be retried taskId="bad" type="work" attempt=1 error="bad is broken"',
    'warn: A task failed and will be retried taskId="again" type="work" attempt=1 error="again is broken"',
  ]);
  for (const fall of [() => server.down(), () => server.unavailable(1000)]) {
    written.length = 0;
    fall();
    await server.clock.advance(120_000);
    assert.equal(written.length, 1, written.join('\n'));
    assert.match(written[0]!, /^warn: No answer from Lubdub: a (claim|heartbeat) failed and is retried error=/);
    server.up();
    await server.clock.advance(60_000);
    assert.equal(written.length, 2, written.join('\n'));
    assert.match(written[1]!, /^info: Lubdub answers again afterSeconds=1[1-9]\d/);
  }
  worker.close();
  await server.finish(running);
  client.close();
  console.error = error;
});
