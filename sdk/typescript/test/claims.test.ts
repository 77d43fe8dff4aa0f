import assert from 'node:assert/strict';
import test from 'node:test';
import { Client, hasCode, Worker } from 'lubdub';
import { FakeServer } from 'lubdub/testing';
import { gate, site } from './site.js';

test('a claim requests at most the free places, and is repeated under its id until it is answered', async () => {
  const hold = gate();
  const s = await site(() => hold.opened, { concurrency: 3 });
  let lost = 0;
  s.server.loseAnswers((r) => r.path.endsWith('/claim') && r.status === 200 && ++lost <= 6);
  for (let i = 0; i < 5; i++) s.server.enqueue({ type: 'work', taskId: `t${i}` });
  await s.server.until('three are at work', () => s.worker.activeCount === 3);
  await s.server.clock.advance(60_000);
  assert.equal(s.worker.activeCount, 3);
  const claims = s.server.requests
    .filter((r) => r.path.endsWith('/claim'))
    .map((r) => JSON.parse(r.body) as { claimId: string; max: number });
  assert.ok(claims.every((c) => c.max <= 3));
  assert.ok(new Set(claims.map((c) => c.claimId)).size < claims.length);
  assert.equal(s.server.workers()[0]!.held.length, 3);
  hold.open();
  await s.server.until('all are done', () => ['t0', 't1', 't2', 't3', 't4'].every((id) => s.server.isOver(id)));
  await s.stop();
});

test('a queue that returns nothing at once is claimed from with pauses', async () => {
  const s = await site(() => 1);
  s.server.intercept((r) => (r.path.endsWith('/claim') ? { status: 200, body: { tasks: [] } } : undefined));
  await s.server.clock.advance(30_000);
  const before = s.server.count('/v1/queues/default/claim');
  await s.server.clock.advance(60_000);
  const claims = s.server.count('/v1/queues/default/claim') - before;
  assert.ok(claims >= 5 && claims <= 120, `${claims} claims in a minute`);
  s.server.intercept(undefined);
  await s.stop();
});

test('claims and registrations that are finally rejected end the worker cleanly', async () => {
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
