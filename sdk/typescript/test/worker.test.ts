import assert from 'node:assert/strict';
import test from 'node:test';
import {
  Cancelled, categorize, Client, currentTask, Failure, type Handler, hasCode, LeaseEnded, Stopping, Stuck, Superseded, type Task,
  TaskTimeout, UnfinishedError, UsageError, Worker, type WorkerOptions,
} from 'lubdub';
import { FakeServer } from 'lubdub/testing';

/** A worker of a server, which runs; gates are what its handlers wait for. */
async function site(handler: Handler, options: WorkerOptions = {}) {
  const server = new FakeServer();
  const lines: string[] = [];
  const note = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
  const logger = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') };
  const client = options.client ?? new Client(server.url, { ...server.options(), logger });
  const worker = new Worker('default', { client, logger, ...options });
  worker.handle('work', handler);
  const running = worker.run();
  const over = running.then(() => undefined, (e: unknown) => e);
  await server.until('it is registered', () => worker.isRegistered);
  const stop = async () => {
    worker.close();
    const end = await server.finish(over);
    client.close();
    return end;
  };
  const beats = () => server.requests.filter((r) => /workers\/.*\/heartbeat$/.test(r.path))
    .map((r) => JSON.parse(r.body) as { seq: number; completedDelta: number; failedDelta: number; activeCount: number;
      tasks: { taskId: string }[] });
  return { server, client, worker, lines, over, stop, beats };
}

function untilEnded(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** What many handlers wait for. */
function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

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

test('no more is claimed than is free, and a claim is repeated under its id until it is answered', async () => {
  const hold = gate();
  const s = await site(() => hold.opened, { concurrency: 3 });
  let lost = 0;
  s.server.loseAnswers((r) => r.path.endsWith('/claim') && r.status === 200 && ++lost <= 6);
  for (let i = 0; i < 5; i++) s.server.enqueue({ type: 'work', taskId: `t${i}` });
  await s.server.until('three are at work', () => s.worker.activeCount === 3);
  await s.server.clock.advance(60_000);
  assert.equal(s.worker.activeCount, 3);
  const claims = s.server.requests.filter((r) => r.path.endsWith('/claim'))
    .map((r) => JSON.parse(r.body) as { claimId: string; max: number });
  assert.ok(claims.every((c) => c.max <= 3));
  assert.ok(new Set(claims.map((c) => c.claimId)).size < claims.length);
  assert.equal(s.server.workers()[0]!.held.length, 3);
  hold.open();
  await s.server.until('all are done', () => ['t0', 't1', 't2', 't3', 't4'].every((id) => s.server.isOver(id)));
  await s.stop();
});

test('a queue that answers at once with nothing is asked with pauses', async () => {
  const s = await site(() => 1);
  s.server.intercept((r) => (r.path.endsWith('/claim') ? { status: 200, body: { tasks: [] } } : undefined));
  await s.server.clock.advance(30_000);
  const before = s.server.count('/v1/queues/default/claim');
  await s.server.clock.advance(60_000);
  const asked = s.server.count('/v1/queues/default/claim') - before;
  assert.ok(asked >= 5 && asked <= 120, `${asked} claims in a minute`);
  s.server.intercept(undefined);
  await s.stop();
});

test('lost answers count nothing twice, and a server that is away loses nothing', async () => {
  const s = await site(() => 1);
  let n = 0;
  s.server.loseAnswers(() => ++n % 3 !== 0);
  for (let i = 0; i < 50; i++) {
    s.server.enqueue({ type: 'work' });
    await s.server.clock.advance(2000);
    if (i !== 20) continue;
    s.server.unavailable(2000);
    await s.server.clock.advance(180_000);
    s.server.up();
  }
  s.server.loseAnswers(undefined);
  await s.server.clock.advance(60_000);
  assert.deepEqual(s.server.workers().map((w) => w.completed), [50]);
  const bySeq = new Map<number, string>();
  for (const { seq, completedDelta, failedDelta } of s.beats()) {
    const said = `${completedDelta} ${failedDelta}`;
    assert.equal(bySeq.get(seq) ?? said, said, 'a repeated seq has the same deltas');
    bySeq.set(seq, said);
  }
  await s.stop();
});

for (const [how, lose] of [['offline', 'offline'], ['forgotten', 'forget']] as const) {
  test(`a worker that is ${how} registers anew; what was taken from it is stopped, the rest goes on`, async () => {
    const reasons: unknown[] = [];
    const s = await site(async (_, signal) => {
      await untilEnded(signal);
      reasons.push(signal.reason);
      throw signal.reason;
    }, { concurrency: 1 }); // so that no claim is under way, and the beat finds out
    const id = s.server.enqueue({ type: 'work' });
    await s.server.until('it is at work', () => s.worker.activeCount === 1);
    const old = s.worker.workerId;
    const start = s.server.clock.now();
    s.server[lose](old);
    await s.server.until('it came back', () => s.worker.workerId !== old);
    assert.ok(s.server.clock.now() - start < 15_000, 'by its next beat');
    await s.server.until('it was told', () => reasons.length === 1);
    assert.ok(s.lines.includes(`warn Worker ${old} is lost and registers anew`));
    if (how === 'offline') await s.server.until('it is begun again', () => s.server.task(id).attempt === 2);
    else assert.equal(s.server.task(id).attempt, 1); // the fake leaves it with the one that it forgot
    s.worker.kill();
    await s.server.finish(s.over);
    s.client.close();
  });
}

test('what was counted and not answered is counted by the next registration, and what is claimed is listed before it starts', async () => {
  const hold = gate();
  const s = await site((task) => (task.id === 'long' ? hold.opened : 1));
  await s.server.clock.advance(100_000); // seq has risen
  for (let i = 0; i < 3; i++) s.server.enqueue({ type: 'work' });
  s.server.enqueue({ type: 'work', taskId: 'long' });
  await s.server.until('one is left', () => s.worker.activeCount === 1);
  const old = s.worker.workerId;
  s.server.unavailable(); // the deltas are under way from here on
  await s.server.clock.advance(15_000);
  s.server.up();
  s.server.forget(old);
  await s.server.until('it came back', () => s.worker.workerId !== old);
  await s.server.clock.advance(30_000);
  assert.deepEqual(s.server.workers().map((w) => w.completed), [3]);
  let answer = () => {};
  s.server.intercept((r) => (r.path.endsWith('/started') ? new Promise((resolve) => (answer = () => resolve(undefined))) : undefined));
  s.server.enqueue({ type: 'work', taskId: 'late' });
  await s.server.clock.advance(9000);
  assert.ok(s.beats().at(-1)!.tasks.some((t) => t.taskId === 'late'));
  s.server.intercept(undefined);
  answer();
  hold.open();
  await s.server.until('it is done', () => s.server.isOver('late'));
  await s.server.clock.advance(30_000);
  assert.deepEqual(s.server.workers().map((w) => w.completed), [4]); // long was its predecessor's, and is lost
  await s.stop();
});

test('a crash loop of registrations backs off', async () => {
  const s = await site(() => 1);
  s.server.intercept((r) => /workers\/.*heartbeat|claim$/.test(r.path)
    ? { status: 410, body: { error: 'worker_offline', message: 'register again' } } : undefined);
  await s.server.clock.advance(300_000);
  const entered = s.server.count('/v1/workers');
  assert.ok(entered > 5 && entered < 60, `${entered} registrations in five minutes`);
  s.server.intercept(undefined);
  await s.stop();
});

test('a cancel, a newer attempt and what is lost reach the handler, and what is lost is in no beat any more', async () => {
  const hold = gate();
  const reasons = new Map<string, unknown>();
  const s = await site(async (task, signal) => {
    await untilEnded(signal);
    reasons.set(task.id, signal.reason);
    if (task.id === 'c') throw signal.reason;
    await hold.opened;
  });
  for (const taskId of ['c', 's', 'l']) s.server.enqueue({ type: 'work', taskId });
  await s.server.until('they are at work', () => s.worker.activeCount === 3);
  s.server.cancel('c', 'enough');
  s.server.supersede('s');
  s.server.end('l', 'RUN_TIMEOUT');
  await s.server.until('they were told', () => reasons.size === 3);
  assert.ok(reasons.get('c') instanceof Cancelled && (reasons.get('c') as Cancelled).reason === 'enough');
  assert.ok(reasons.get('s') instanceof Superseded);
  await s.server.until('it is cancelled', () => s.server.isOver('c'));
  assert.equal(s.server.task('c').state, 'CANCELLED');
  const before = s.beats().length;
  await s.server.clock.advance(30_000);
  assert.ok(s.beats().length > before);
  for (const beat of s.beats().slice(before)) assert.deepEqual(beat.tasks, []);
  assert.equal(s.worker.activeCount, 2, 'their places are taken until their handlers have ended');
  assert.ok(s.lines.filter((l) => l.startsWith('warn A handler goes on')).length === 2);
  hold.open();
  await s.stop();
  assert.ok(!s.server.requests.some((r) => /\/(s|l)\/completed$/.test(r.path)));
});

test('what was cancelled before it has started is not begun', async () => {
  const s = await site(() => assert.fail('it was begun'));
  s.server.intercept((r) => (r.path.endsWith('/started')
    ? { status: 200, body: { acknowledged: true, shouldCancel: true, cancelReason: 'late', serverTime: '' } } : undefined));
  const id = s.server.enqueue({ type: 'work' });
  await s.server.until('it is over', () => s.server.isOver(id));
  assert.equal(s.server.task(id).state, 'CANCELLED');
  await s.stop();
});

test('the server drains a worker: it claims nothing more, finishes, and goes', async () => {
  const hold = gate();
  const s = await site(() => hold.opened, { concurrency: 1 }); // no claim is under way, and the beat says so
  const first = s.server.enqueue({ type: 'work' });
  await s.server.until('it is at work', () => s.worker.activeCount === 1);
  s.server.drain(s.worker.workerId);
  await s.server.clock.advance(11_000);
  const second = s.server.enqueue({ type: 'work' });
  const before = s.beats().length;
  await s.server.clock.advance(60_000);
  assert.ok(s.beats().length >= before + 5, 'it beats on');
  assert.equal(s.server.task(second).state, 'QUEUED');
  assert.ok(s.lines.includes('info Draining: the server asks for it'));
  hold.open();
  assert.equal(await s.server.finish(s.over), undefined);
  assert.equal(s.server.task(first).state, 'SUCCEEDED');
  s.client.close();
});

test('stopping: drain is announced, beats go on, handlers are told at the soft stop, what is left is given back', async () => {
  const hold = gate();
  const told: unknown[] = [];
  const s = await site(async (task, signal) => {
    if (task.id === 'quick') return hold.opened;
    await untilEnded(signal);
    told.push(signal.reason);
    if (task.id === 'polite') throw new Error('not finished');
    return new Promise(() => {});
  });
  for (const taskId of ['quick', 'polite', 'deaf']) s.server.enqueue({ type: 'work', taskId });
  await s.server.until('they are at work', () => s.worker.activeCount === 3);
  const start = s.server.clock.now();
  s.worker.close();
  await s.server.clock.advance(1000);
  assert.equal(s.server.workers()[0]!.status, 'DRAINING');
  const late = s.server.enqueue({ type: 'work' });
  hold.open();
  const before = s.beats().length;
  await s.server.clock.advance(18_500);
  assert.ok(s.beats().length > before, 'beats go on');
  assert.equal(told.length, 0, 'it is not yet time');
  await s.server.clock.advance(1000);
  const reasons = told.slice();
  assert.equal(reasons.length, 2);
  assert.ok(reasons.every((r) => r instanceof Stopping));
  const end = await s.server.finish(s.over);
  assert.ok(end instanceof UnfinishedError);
  assert.deepEqual(end.taskIds, ['deaf']);
  assert.ok(s.server.clock.now() - start >= 25_000 && s.server.clock.now() - start < 27_000);
  assert.equal(s.server.task('quick').state, 'SUCCEEDED');
  assert.equal(s.server.task('polite').error!.category, 'INFRASTRUCTURE');
  assert.deepEqual(s.server.task('deaf').error, { category: 'INFRASTRUCTURE', message: 'worker stopped', retryable: true });
  assert.equal(s.server.task(late).state, 'QUEUED');
  assert.ok(s.server.requests.at(-1)!.path.endsWith('/deregister'));
  s.client.close();
});

test('a second word makes the stop short', async () => {
  const s = await site(() => new Promise(() => {}));
  s.server.enqueue({ type: 'work', taskId: 'deaf' });
  await s.server.until('it is at work', () => s.worker.activeCount === 1);
  s.worker.close();
  await s.server.clock.advance(2000);
  const start = s.server.clock.now();
  s.worker.kill();
  const end = await s.server.finish(s.over);
  assert.ok(end instanceof UnfinishedError && s.server.clock.now() - start < 1000);
  s.client.close();
});

test('a worker that is told to stop while no server answers ends all the same', async () => {
  const s = await site(() => 1);
  s.server.down();
  const start = s.server.clock.now();
  assert.equal(await s.stop(), undefined);
  assert.ok(s.server.clock.now() - start < 20_000);
});

test('a task that takes too long, and one that reports nothing, fail as TIMEOUT', async () => {
  const reasons: unknown[] = [];
  const s = await site(async (task, signal) => {
    for (let i = 0; task.id !== 'stuck' && i < 10; i++) task.progress(i);
    await untilEnded(signal);
    reasons.push(signal.reason);
    if (task.id === 'deaf') return new Promise(() => {});
    throw signal.reason;
  }, { taskTimeoutMs: 40_000, concurrency: 2 });
  s.server.enqueue({ type: 'work', taskId: 'slow' });
  s.server.enqueue({ type: 'work', taskId: 'deaf', cancelGracePeriodMs: 5000 });
  await s.server.until('both are over', () => s.server.isOver('slow') && s.server.isOver('deaf'));
  assert.ok(reasons.every((r) => r instanceof TaskTimeout));
  for (const id of ['slow', 'deaf']) assert.equal(s.server.task(id).error!.category, 'TIMEOUT');
  s.worker.kill();
  await s.server.finish(s.over);
  s.client.close();

  const w = await site(async (task, signal) => {
    if (task.id === 'moving') for (let i = 0; i < 20; i++) {
      task.progress(i);
      await new Promise<void>((resolve) => void w.server.clock.setTimeout(resolve, 5000));
    } else await untilEnded(signal);
    return 1;
  }, { watchdogMs: 8000 });
  w.server.enqueue({ type: 'work', taskId: 'moving' });
  w.server.enqueue({ type: 'work', taskId: 'stuck' });
  await w.server.until('both are over', () => w.server.isOver('moving') && w.server.isOver('stuck'));
  assert.equal(w.server.task('moving').state, 'SUCCEEDED');
  const { error } = w.server.task('stuck');
  assert.deepEqual([error!.category, error!.message], ['TIMEOUT', new Stuck(8000).message]);
  await w.stop();
});

test('one that throws stops no neighbour, and errors, panics and outputs become what the contract has for them', async () => {
  const hold = gate();
  const s = await site(async (task: Task) => {
    await Promise.resolve();
    if (task.id === 'bug') throw new TypeError('a bug');
    if (task.id === 'data') throw categorize('DATA_QUALITY', 'bad row');
    if (task.id === 'circle') return 1n;
    return hold.opened;
  });
  for (const taskId of ['bug', 'data', 'circle', 'good']) s.server.enqueue({ type: 'work', taskId });
  await s.server.until('three are over', () => ['bug', 'data', 'circle'].every((id) => s.server.isOver(id)));
  assert.deepEqual(['bug', 'data', 'circle'].map((id) => s.server.task(id).error!.category), ['USER_CODE', 'DATA_QUALITY', 'USER_CODE']);
  assert.equal(s.server.task('circle').error!.retryable, false);
  await s.server.clock.advance(100_000);
  hold.open();
  await s.server.until('the other is over', () => s.server.isOver('good'));
  assert.equal(s.server.task('good').state, 'SUCCEEDED');
  await s.server.clock.advance(15_000);
  assert.deepEqual([s.server.workers()[0]!.completed, s.server.workers()[0]!.failed], [1, 3]);
  await s.stop();
});

test('a worker goes on in patience, and stops work at the end of the lease where that is strict', async () => {
  for (const lease of ['patient', 'strict'] as const) {
    const reasons: unknown[] = [];
    const s = await site(async (_, signal) => {
      await untilEnded(signal);
      reasons.push(signal.reason);
    }, { lease });
    s.server.enqueue({ type: 'work' });
    await s.server.until('it is at work', () => s.worker.activeCount === 1);
    await s.server.clock.advance(5000);
    s.server.down();
    await s.server.clock.advance(35_000);
    assert.equal(reasons.length, lease === 'strict' ? 1 : 0);
    if (lease === 'strict') assert.ok(reasons[0] instanceof LeaseEnded);
    s.server.up();
    s.worker.kill();
    await s.server.finish(s.over);
    s.client.close();
  }
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

test('claims that are refused for good end the worker in good order, and so does a refused registration', async () => {
  const s = await site(() => 1);
  s.server.intercept((r) => (r.path.endsWith('/claim') ? { status: 403, body: { error: 'forbidden', message: 'no' } } : undefined));
  s.server.enqueue({ type: 'work' });
  const end = await s.server.finish(s.over);
  assert.match(String(end), /claims are refused/);
  assert.ok(s.server.requests.at(-1)!.path.endsWith('/deregister'));
  s.client.close();
  const server = new FakeServer();
  const client = new Client(server.url, { ...server.options(), token: 'other' });
  const worker = new Worker('default', { client }).handle('work', () => 1);
  await assert.rejects(server.finish(worker.run()), (e) => hasCode(e, 'unauthorized'));
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
