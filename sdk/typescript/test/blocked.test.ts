import assert from 'node:assert/strict';
import { existsSync, mkdtempSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { sockets, until } from './sockets.js';

test('tasks claimed while the event loop is blocked are in the inventory at once, and run afterwards', async (t) => {
  const { server, work, beats, close } = await sockets();
  t.after(close);
  const worker = work({ concurrency: 3 });
  server.enqueue({ type: 'block', taskId: 'first' });
  await until(() => worker.lines.includes('blocked first') && server.count('/v1/queues/default/claim') === 2);
  for (const taskId of ['second', 'third']) server.enqueue({ type: 'block', taskId });
  await until(() => server.task('second').attempt === 1);
  const before = beats().length;
  await until(() => beats().length >= before + 4);
  const named = beats()
    .slice(before + 2)
    .map((beat) => beat.tasks!.map((task) => task.taskId).sort());
  for (const tasks of named) assert.ok(tasks.includes('first') && tasks.includes('second'), tasks.join());
  worker.release();
  await until(() => ['first', 'second', 'third'].every((id) => server.isOver(id)));
  worker.child.kill('SIGTERM');
  assert.equal(await worker.ended, 0);
  const [end] = worker.lines.filter((line) => line.startsWith('ended '));
  const { firstHeartbeatMs, durationMs } = JSON.parse(end!.slice(6)) as { firstHeartbeatMs: number; durationMs: number };
  assert.ok(firstHeartbeatMs < durationMs, `${firstHeartbeatMs} is a time of the blocked event loop; the handler took ${durationMs} ms`);
  assert.deepEqual(
    ['first', 'second', 'third'].map((id) => server.task(id).attempt),
    [1, 1, 1],
  );
});

const ends = process.platform === 'win32' ? [null] : [1, 'SIGKILL'];

test('a handler that blocks the event loop beyond its time is reported as TIMEOUT, and the process ends', async (t) => {
  const { server, work, beats, close } = await sockets();
  t.after(close);
  const worker = work({ concurrency: 2, taskTimeoutMs: 300, softStopMs: 300, hardStopMs: 600 }, true);
  server.enqueue({ type: 'block', taskId: 'endless', cancelGracePeriodMs: 1, retry: { maxAttempts: 1 } });
  await until(() => worker.lines.includes('blocked endless') && server.count('/v1/queues/default/claim') === 2);
  server.enqueue({ type: 'block', taskId: 'waits' });
  await until(() => server.isOver('endless'));
  const { state, error } = server.task('endless');
  assert.deepEqual([state, error!.category, error!.message], ['FAILED', 'TIMEOUT', 'lubdub: the task reached its time limit of 300 ms']);
  const before = beats().length;
  const end = await worker.ended;
  assert.ok(ends.includes(end as never), String(end));
  for (const { tasks = [] } of beats().slice(before)) assert.ok(!tasks.some((task) => task.taskId === 'endless'));
  assert.ok(server.requests.at(-1)!.path.endsWith('/deregister'));
  assert.equal(server.task('waits').state, 'QUEUED');
  assert.ok(
    worker.lines.some((line) => /exceeded its time limit while the event loop is blocked: .* returned to the queue: waits$/.test(line)),
  );
});

test('SIGTERM drains and ends a worker whose event loop is blocked, and returns its tasks with their checkpoints', async (t) => {
  const { server, work, beats, close } = await sockets();
  t.after(close);
  const worker = work({ concurrency: 1, taskTimeoutMs: 0, softStopMs: 1000, hardStopMs: 2000 }, true);
  const unavailable = { status: 503, body: { error: 'store_unavailable', message: 'no' } };
  server.intercept((r) => (/workers\/.*\/heartbeat$/.test(r.path) && r.body.includes('details') ? unavailable : undefined));
  server.enqueue({ type: 'block', taskId: 'endless' });
  await until(() => worker.lines.includes('blocked endless'));
  const before = beats().length;
  worker.child.kill('SIGTERM');
  await until(() => server.workers()[0]!.status === 'DRAINING');
  const end = await worker.ended;
  assert.ok(ends.includes(end as never), String(end));
  assert.ok(
    beats()
      .slice(before)
      .every(({ tasks = [] }) => tasks.some((task) => task.taskId === 'endless')),
  );
  assert.ok(server.requests.at(-1)!.path.endsWith('/deregister'));
  const { state, details } = server.task('endless');
  assert.deepEqual([state, details], ['QUEUED', { blocked: 'endless' }]);
  assert.ok(
    worker.lines.some((line) => /hard stop reached while the event loop is blocked: .* returned to the queue: endless$/.test(line)),
  );
});

test('isolated handlers are killed before a worker whose event loop is blocked returns their tasks', async (t) => {
  const { server, work, close } = await sockets();
  t.after(close);
  let connected = 0;
  const net = createServer((socket) => {
    connected++;
    socket
      .resume()
      .on('error', () => {})
      .once('close', () => connected--);
  }).listen(0, '127.0.0.1');
  t.after(() => net.close());
  await new Promise((resolve) => net.once('listening', resolve));
  const worker = work({ concurrency: 2, taskTimeoutMs: 0, softStopMs: 1000, hardStopMs: 2000 }, true);
  const file = join(mkdtempSync(join(tmpdir(), 'lubdub-')), 'begun');
  const { port } = net.address() as AddressInfo;
  server.enqueue({ type: 'isolated', taskId: 'isolated', payload: { does: 'block', file, port } });
  await until(() => existsSync(file));
  server.enqueue({ type: 'block', taskId: 'endless' });
  await until(() => worker.lines.includes('blocked endless'));
  assert.equal(connected, 1);
  let hasExited = false;
  worker.child.once('exit', () => (hasExited = true));
  const order: string[] = [];
  server.intercept(async (r) => {
    if (!r.path.endsWith('/deregister')) return undefined;
    await until(() => connected === 0 || hasExited); // the worker waits for the answer
    order.push(hasExited ? 'the worker ended first' : 'the child ended first');
    return undefined;
  });
  worker.child.kill('SIGTERM');
  assert.ok(ends.includes((await worker.ended) as never));
  assert.deepEqual(order, ['the child ended first']);
});

test('a second signal ends a worker whose event loop is blocked at once, even if it cannot write its last line', async (t) => {
  const { server, work, close } = await sockets();
  t.after(close);
  const worker = work({ taskTimeoutMs: 0, softStopMs: 3_600_000, hardStopMs: 3_600_000 }, true);
  server.enqueue({ type: 'block', taskId: 'endless' });
  await until(() => worker.lines.includes('blocked endless'));
  worker.child.kill('SIGTERM');
  await until(() => server.workers()[0]!.status === 'DRAINING');
  for (const stream of [worker.child.stdout, worker.child.stderr]) stream!.destroy();
  worker.child.kill('SIGTERM');
  assert.ok(ends.includes((await worker.ended) as never));
  assert.equal(server.task('endless').state, 'QUEUED');
});
