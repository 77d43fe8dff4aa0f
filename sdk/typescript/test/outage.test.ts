import assert from 'node:assert/strict';
import test from 'node:test';
import { Superseded } from 'lubdub';
import { site } from './site.js';

const away = { status: 503, body: { error: 'store_unavailable', message: 'come again' }, headers: { 'retry-after': '60' } };
const own = { heartbeatIntervalMs: 10_000, heartbeatTimeoutMs: 45_000 };

/** A worker whose task "ends" ends after 15 s, and whose completion is not answered for as long as `answers` tells. */
async function outage(answers: number) {
  const reasons = new Map<string, unknown>();
  const s = await site(
    async (task, signal) => {
      task.progress(5);
      await new Promise<void>((resolve) => {
        s.server.clock.setTimeout(resolve, task.id === 'ends' ? 15_000 : 400_000);
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
      if (signal.aborted) reasons.set(task.id, signal.reason);
    },
    { lease: 'strict' },
  );
  let refused = 0;
  s.server.intercept((r) => (r.path.endsWith('/ends/completed') && refused++ < answers ? away : undefined));
  s.server.enqueue({ type: 'work', taskId: 'ends' });
  s.server.enqueue({ type: 'work', taskId: 'own', ...own });
  s.server.enqueue({ type: 'work', taskId: 'workers' });
  await s.server.until('its completion is away', () => refused > 0);
  const alone = () => s.server.requests.filter((r) => r.path === '/v1/heartbeats');
  const end = async () => {
    s.worker.kill();
    await s.server.finish(s.over);
    s.client.close();
  };
  return { ...s, reasons, alone, end };
}

test('while a completion is in flight at most one inventory omits its attempt, and no attempt is lost', async () => {
  const s = await outage(3);
  const from = s.beats().length;
  await s.server.until('it is completed', () => s.server.isOver('ends'));
  const beats = s.beats().slice(from);
  assert.equal(beats.filter((b) => b.tasks).length, 1);
  assert.deepEqual(
    beats
      .find((b) => b.tasks)!
      .tasks.map((t) => t.taskId)
      .sort(),
    ['own', 'workers'],
  );
  assert.ok(beats.length > 10);
  for (const r of s.alone()) {
    const { heartbeats } = JSON.parse(r.body) as { heartbeats: { taskId: string }[] };
    assert.deepEqual(
      heartbeats.map((b) => b.taskId),
      ['own'],
    );
  }
  assert.equal(s.alone().length, beats.length - 1);
  const before = s.beats().length;
  await s.server.clock.advance(60_000);
  assert.ok(
    s
      .beats()
      .slice(before)
      .every((b) => b.tasks.length === 2),
    'it lists again what it holds',
  );
  assert.equal(s.server.task('ends').state, 'SUCCEEDED');
  assert.deepEqual([s.server.task('own').state, s.server.task('workers').state, s.reasons.size], ['RUNNING', 'RUNNING', 0]);
  assert.equal(s.server.task('own').progressPct, 5);
  await s.end();
});

test("while heartbeats have no inventory, the rejection of an attempt's own heartbeat is applied", async () => {
  const s = await outage(Infinity);
  await s.server.until('it is beaten for alone', () => s.alone().length > 0);
  s.server.supersede('own');
  await s.server.clock.advance(15_000);
  assert.ok(s.reasons.get('own') instanceof Superseded);
  const before = s.alone().length;
  await s.server.clock.advance(40_000);
  assert.equal(s.alone().length, before);
  await s.end();
});

test('a new registration does not hold ending attempts', async () => {
  const s = await outage(Infinity);
  await s.server.until('a beat goes without inventory', () => s.beats().some((b) => !b.tasks));
  const old = s.worker.workerId;
  s.server.forget(old);
  await s.server.until('it came back', () => s.worker.workerId !== old);
  const before = s.beats().length;
  await s.server.until('it beats', () => s.beats().length > before);
  assert.ok(s.beats()[before]!.tasks);
  await s.end();
});
