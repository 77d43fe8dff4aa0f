import assert from 'node:assert/strict';
import test from 'node:test';
import { Cancelled, categorize, LeaseEnded, Stuck, Superseded, type Task, TaskTimeout } from 'lubdub';
import { gate, once, site, untilEnded } from './site.js';

test('a cancel, a newer attempt and a loss reach the handler, and lost attempts are in no later heartbeat', async () => {
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
  await s.server.until('the handlers are notified', () => reasons.size === 3);
  assert.ok(reasons.get('c') instanceof Cancelled && (reasons.get('c') as Cancelled).reason === 'enough');
  assert.ok(reasons.get('s') instanceof Superseded);
  await s.server.until('it is cancelled', () => s.server.isOver('c'));
  assert.equal(s.server.task('c').state, 'CANCELLED');
  const before = s.beats().length;
  await s.server.clock.advance(30_000);
  assert.ok(s.beats().length > before);
  for (const beat of s.beats().slice(before)) assert.deepEqual(beat.tasks, []);
  assert.equal(s.worker.activeCount, 2, 'their places are taken until their handlers have ended');
  assert.ok(s.lines.filter((l) => l.startsWith('warn A handler is still running')).length === 2);
  hold.open();
  await s.stop();
  assert.ok(!s.server.requests.some((r) => /\/(s|l)\/completed$/.test(r.path)));
});

test('a task that was cancelled before its start is not started', async () => {
  const s = await site(() => assert.fail('it was begun'));
  s.server.intercept((r) =>
    r.path.endsWith('/started')
      ? { status: 200, body: { acknowledged: true, shouldCancel: true, cancelReason: 'late', serverTime: '' } }
      : undefined,
  );
  const id = s.server.enqueue({ type: 'work' });
  await s.server.until('it is over', () => s.server.isOver(id));
  assert.equal(s.server.task(id).state, 'CANCELLED');
  await s.stop();
});

test('a task that takes too long, and one that reports nothing, fail as TIMEOUT', async () => {
  const reasons: unknown[] = [];
  const s = await site(
    async (task, signal) => {
      for (let i = 0; task.id !== 'stuck' && i < 10; i++) task.progress(i);
      await untilEnded(signal);
      reasons.push(signal.reason);
      if (task.id === 'deaf') return new Promise(() => {});
      throw signal.reason;
    },
    { taskTimeoutMs: 40_000, concurrency: 2 },
  );
  s.server.enqueue({ type: 'work', taskId: 'slow', ...once });
  s.server.enqueue({ type: 'work', taskId: 'deaf', cancelGracePeriodMs: 5000, ...once });
  await s.server.until('both are over', () => s.server.isOver('slow') && s.server.isOver('deaf'));
  assert.ok(reasons.every((r) => r instanceof TaskTimeout));
  for (const id of ['slow', 'deaf']) assert.equal(s.server.task(id).error!.category, 'TIMEOUT');
  s.worker.kill();
  await s.server.finish(s.over);
  s.client.close();

  const w = await site(
    async (task, signal) => {
      if (task.id === 'moving')
        for (let i = 0; i < 20; i++) {
          task.progress(i);
          await new Promise<void>((resolve) => void w.server.clock.setTimeout(resolve, 5000));
        }
      else await untilEnded(signal);
      return 1;
    },
    { watchdogMs: 8000 },
  );
  w.server.enqueue({ type: 'work', taskId: 'moving' });
  w.server.enqueue({ type: 'work', taskId: 'stuck', ...once });
  await w.server.until('both are over', () => w.server.isOver('moving') && w.server.isOver('stuck'));
  assert.equal(w.server.task('moving').state, 'SUCCEEDED');
  const { error } = w.server.task('stuck');
  assert.deepEqual([error!.category, error!.message], ['TIMEOUT', new Stuck(8000).message]);
  await w.stop();
});

test('a handler that throws stops no other, and errors and outputs are reported as the contract requires', async () => {
  const hold = gate();
  const s = await site(async (task: Task) => {
    await Promise.resolve();
    if (task.id === 'bug') throw new TypeError('a bug');
    if (task.id === 'data') throw categorize('DATA_QUALITY', 'bad row');
    if (task.id === 'circle') return 1n;
    return hold.opened;
  });
  for (const taskId of ['bug', 'data', 'circle', 'good']) s.server.enqueue({ type: 'work', taskId, ...once });
  await s.server.until('three are over', () => ['bug', 'data', 'circle'].every((id) => s.server.isOver(id)));
  assert.deepEqual(
    ['bug', 'data', 'circle'].map((id) => s.server.task(id).error!.category),
    ['USER_CODE', 'DATA_QUALITY', 'USER_CODE'],
  );
  assert.equal(s.server.task('circle').error!.retryable, false);
  await s.server.clock.advance(100_000);
  hold.open();
  await s.server.until('the other is over', () => s.server.isOver('good'));
  assert.equal(s.server.task('good').state, 'SUCCEEDED');
  await s.server.clock.advance(15_000);
  assert.deepEqual([s.server.workers()[0]!.completed, s.server.workers()[0]!.failed], [1, 3]);
  await s.stop();
});

test('a patient worker continues through an outage, a strict one stops work when the lease expires', async () => {
  for (const lease of ['patient', 'strict'] as const) {
    const reasons: unknown[] = [];
    const s = await site(
      async (_, signal) => {
        await untilEnded(signal);
        reasons.push(signal.reason);
      },
      { lease },
    );
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
