import assert from 'node:assert/strict';
import test from 'node:test';
import { gate, site, untilEnded } from './site.js';

test('lost responses count nothing twice, and an outage loses nothing', async () => {
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
  assert.deepEqual(
    s.server.workers().map((w) => w.completed),
    [50],
  );
  const bySeq = new Map<number, string>();
  for (const { seq, completedDelta, failedDelta } of s.beats()) {
    const deltas = `${completedDelta} ${failedDelta}`;
    assert.equal(bySeq.get(seq) ?? deltas, deltas, 'a repeated seq has the same deltas');
    bySeq.set(seq, deltas);
  }
  await s.stop();
});

for (const [how, lose] of [
  ['offline', 'expire'],
  ['forgotten', 'forget'],
] as const) {
  test(`a worker that is ${how} registers again; attempts that were taken from it are stopped, the others continue`, async () => {
    const reasons: unknown[] = [];
    const s = await site(
      async (_, signal) => {
        await untilEnded(signal);
        reasons.push(signal.reason);
        throw signal.reason;
      },
      { concurrency: 1 },
    ); // so that no claim is in flight, and the heartbeat finds out
    const id = s.server.enqueue({ type: 'work' });
    await s.server.until('it is at work', () => s.worker.activeCount === 1);
    const old = s.worker.workerId;
    const start = s.server.clock.now();
    s.server[lose](old);
    await s.server.until('it came back', () => s.worker.workerId !== old);
    assert.ok(s.server.clock.now() - start < 15_000, 'by its next beat');
    await s.server.until('the handler is notified', () => reasons.length === 1);
    assert.ok(s.lines.includes(`warn Worker ${old} is lost and registers again`));
    if (how === 'offline') await s.server.until('it is begun again', () => s.server.task(id).attempt === 2);
    else assert.equal(s.server.task(id).attempt, 1); // the fake server leaves it with the forgotten worker
    s.worker.kill();
    await s.server.finish(s.over);
    s.client.close();
  });
}

test('unconfirmed counts are sent after the next registration, and claimed tasks are listed before they start', async () => {
  const hold = gate();
  const s = await site((task) => (task.id === 'long' ? hold.opened : 1));
  await s.server.clock.advance(100_000); // seq has risen
  for (let i = 0; i < 3; i++) s.server.enqueue({ type: 'work' });
  s.server.enqueue({ type: 'work', taskId: 'long' });
  await s.server.until('one is left', () => s.worker.activeCount === 1);
  const old = s.worker.workerId;
  s.server.unavailable(); // the deltas are in flight from here on
  await s.server.clock.advance(15_000);
  s.server.up();
  s.server.forget(old);
  await s.server.until('it came back', () => s.worker.workerId !== old);
  await s.server.clock.advance(30_000);
  assert.deepEqual(
    s.server.workers().map((w) => w.completed),
    [3],
  );
  let answer = () => {};
  s.server.intercept((r) => (r.path.endsWith('/started') ? new Promise((resolve) => (answer = () => resolve(undefined))) : undefined));
  s.server.enqueue({ type: 'work', taskId: 'late' });
  await s.server.until('it is listed', () =>
    s
      .beats()
      .at(-1)!
      .tasks.some((t) => t.taskId === 'late'),
  );
  assert.ok(!s.server.requests.some((r) => r.path.endsWith('late/started') && r.status > 0));
  s.server.intercept(undefined);
  answer();
  hold.open();
  await s.server.until('it is done', () => s.server.isOver('late'));
  await s.server.clock.advance(30_000);
  assert.deepEqual(
    s.server.workers().map((w) => w.completed),
    [4],
  ); // long was its predecessor's, and is lost
  await s.stop();
});

test('a crash loop of registrations backs off', async () => {
  const s = await site(() => 1);
  s.server.intercept((r) =>
    /workers\/.*heartbeat|claim$/.test(r.path) ? { status: 410, body: { error: 'worker_offline', message: 'register again' } } : undefined,
  );
  await s.server.clock.advance(300_000);
  const entered = s.server.count('/v1/workers');
  assert.ok(entered > 5 && entered < 60, `${entered} registrations in five minutes`);
  s.server.intercept(undefined);
  await s.stop();
});
