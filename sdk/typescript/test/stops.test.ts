import assert from 'node:assert/strict';
import test from 'node:test';
import { Client, ForcedOfflineError, Lost, Stopping, UnfinishedError, Worker } from 'lubdub';
import { FakeServer } from 'lubdub/testing';
import { gate, site, untilEnded } from './site.js';

test('the server drains a worker: it claims nothing more, finishes, and deregisters', async () => {
  const hold = gate();
  const s = await site(() => hold.opened, { concurrency: 1 }); // no claim is in flight, and the heartbeat is answered with the drain
  const first = s.server.enqueue({ type: 'work' });
  await s.server.until('it is at work', () => s.worker.activeCount === 1);
  s.server.drain(s.worker.workerId);
  await s.server.clock.advance(11_000);
  const second = s.server.enqueue({ type: 'work' });
  const before = s.beats().length;
  await s.server.clock.advance(60_000);
  assert.ok(s.beats().length >= before + 5, 'it beats on');
  assert.equal(s.server.task(second).state, 'QUEUED');
  assert.ok(s.lines.includes('info Draining: requested by the server'));
  hold.open();
  assert.equal(await s.server.finish(s.over), undefined);
  assert.equal(s.server.task(first).state, 'SUCCEEDED');
  s.client.close();
});

test('stopping announces the drain, sends heartbeats, stops handlers at the soft stop, and returns stopped and running tasks', async () => {
  const hold = gate();
  const reasonsSeen: unknown[] = [];
  const s = await site(async (task, signal) => {
    if (task.id === 'quick') return hold.opened;
    await untilEnded(signal);
    reasonsSeen.push(signal.reason);
    if (task.id === 'calm') return 1;
    if (task.id === 'polite') task.progress(70);
    if (task.id === 'polite') throw new Error('not finished');
    return new Promise(() => {});
  });
  for (const taskId of ['quick', 'polite', 'deaf', 'calm']) s.server.enqueue({ type: 'work', taskId });
  await s.server.until('they are at work', () => s.worker.activeCount === 4);
  const start = s.server.clock.now();
  s.worker.close();
  await s.server.clock.advance(1000);
  assert.equal(s.server.workers()[0]!.status, 'DRAINING');
  const late = s.server.enqueue({ type: 'work' });
  hold.open();
  const before = s.beats().length;
  await s.server.clock.advance(18_500);
  assert.ok(s.beats().length > before, 'heartbeats continue');
  assert.equal(reasonsSeen.length, 0, 'it is not yet time');
  await s.server.clock.advance(1000);
  const reasons = reasonsSeen.slice();
  assert.equal(reasons.length, 3);
  assert.ok(reasons.every((r) => r instanceof Stopping));
  const end = await s.server.finish(s.over);
  assert.ok(end instanceof UnfinishedError);
  assert.deepEqual([...end.taskIds].sort(), ['deaf', 'polite']);
  assert.ok(s.server.clock.now() - start >= 25_000 && s.server.clock.now() - start < 27_000);
  assert.equal(s.server.task('quick').state, 'SUCCEEDED');
  assert.equal(s.server.task('calm').state, 'SUCCEEDED');
  for (const id of ['polite', 'deaf']) {
    const { state, lost, progressPct } = s.server.task(id);
    assert.deepEqual([state, lost, progressPct], ['QUEUED', 0, id === 'polite' ? 70 : undefined], id);
  }
  assert.ok(!s.server.requests.some((r) => /(polite|deaf)\/completed$/.test(r.path)));
  const last = s
    .beats()
    .at(-1)!
    .tasks.map((task) => task.taskId);
  assert.ok(last.includes('deaf') && last.includes('polite'), 'they stay in the inventory');
  assert.equal(s.server.task(late).state, 'QUEUED');
  assert.ok(s.server.requests.at(-1)!.path.endsWith('/deregister'));
  s.client.close();
});

test('a second signal shortens the stop', async () => {
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

test('a worker that is stopped during an outage ends', async () => {
  const s = await site(() => 1);
  s.server.down();
  const start = s.server.clock.now();
  assert.equal(await s.stop(), undefined);
  assert.ok(s.server.clock.now() - start < 20_000);
});

/** How long a stop may take: 25 s until the hard stop, plus calls that are not answered. */
const most = 180_000;

const deeds: Record<string, (s: { server: FakeServer; worker: Worker; client: Client }) => void> = {
  close: ({ worker }) => worker.close(),
  kill: ({ worker }) => worker.kill(),
  'drain, then close': ({ server, worker }) => {
    if (worker.workerId) server.drain(worker.workerId);
    worker.close();
  },
  'forget, then close': ({ server, worker }) => {
    if (worker.workerId) server.forget(worker.workerId);
    worker.close();
  },
  'offline, and close when it comes back': ({ server, worker }) => {
    if (worker.workerId) server.expire(worker.workerId);
    let n = server.requests.length;
    server.intercept((r) => {
      if (r.path === '/v1/workers' && server.requests.length > n) worker.close();
      n++;
      return undefined;
    });
  },
  'down, then kill': ({ server, worker }) => {
    server.down();
    worker.kill();
  },
  'the client is closed': ({ worker, client }) => {
    client.close();
    worker.close();
  },
};

for (const [deed, act] of Object.entries(deeds)) {
  test(`at whatever step a worker is stopped, it ends and leaves nothing running: ${deed}`, async () => {
    for (let moment = 1; moment <= 40; moment++) {
      const server = new FakeServer();
      const client = new Client(server.url, server.options());
      const worker = new Worker('default', { client, concurrency: 2, softStopMs: 10_000, hardStopMs: 15_000 });
      let over = false;
      const late: string[] = [];
      worker.handle('work', async (task, signal) => {
        if (over) late.push('begun ' + task.id);
        if (task.payload === 'fails') throw new Error('no');
        await new Promise<void>((resolve) => {
          server.clock.setTimeout(resolve, task.payload === 'deaf' ? 40_000 : 5000);
          if (task.payload !== 'deaf') signal.addEventListener('abort', () => resolve(), { once: true });
        });
        return 1;
      });
      for (const payload of ['fails', 'waits', 'deaf', 'waits']) server.enqueue({ type: 'work', payload });
      let passed = 0;
      const pass = () => {
        if (++passed === moment) act({ server, worker, client });
        return undefined;
      };
      server.intercept(pass);
      server.loseAnswers(() => pass() ?? false);
      const end = worker
        .run()
        .then(
          () => undefined,
          (error: unknown) => error,
        )
        .finally(() => (over = true));
      await server.clock.advance(20_000);
      worker.close();
      await server.clock.advance(most);
      assert.ok(over, `moment ${moment}: it has not ended`);
      const sent = server.requests.length;
      const why = await end;
      assert.ok(why === undefined || why instanceof UnfinishedError || deed === 'the client is closed', `moment ${moment}: ${String(why)}`);
      await server.clock.advance(most);
      late.push(...server.requests.slice(sent).map((r) => r.path));
      assert.deepEqual(late, [], `moment ${moment}: after its end`);
      assert.equal(worker.activeCount, 0, `moment ${moment}: a task is running`);
      client.close();
    }
  });
}

test('a pending completion delays the hard stop for a limited time, and is not sent after the end', async () => {
  const s = await site(() => 1);
  s.server.intercept((r) =>
    r.path.endsWith('/completed') ? { status: 503, body: { error: 'store_unavailable', message: 'no' } } : undefined,
  );
  const id = s.server.enqueue({ type: 'work' });
  await s.server.until('its completion is away', () => s.server.requests.some((r) => r.path.endsWith('/completed')));
  const start = s.server.clock.now();
  s.worker.kill();
  const end = await s.server.finish(s.over);
  assert.ok(end instanceof UnfinishedError && end.taskIds.includes(id));
  assert.ok(s.server.clock.now() - start < 15_000, `after ${s.server.clock.now() - start} ms`);
  const sent = s.server.requests.length;
  await s.server.clock.advance(most);
  assert.deepEqual(
    s.server.requests.slice(sent).map((r) => r.path),
    [],
  );
  s.client.close();
});

test('an operator takes a worker offline: it ends with the remedy, its handlers as Lost, and nothing more is sent', async () => {
  const reasons: unknown[] = [];
  const s = await site(async (_, signal) => {
    await untilEnded(signal);
    reasons.push(signal.reason);
    return 1;
  });
  s.server.enqueue({ type: 'work' });
  await s.server.until('it is at work', () => s.worker.activeCount === 1);
  const id = s.worker.workerId;
  s.server.offline(id);
  const end = await s.server.finish(s.over);
  assert.ok(end instanceof ForcedOfflineError && end.remedy === `lubdub worker resume ${id}` && end.message.includes(end.remedy));
  assert.ok(reasons.length === 1 && reasons[0] instanceof Lost);
  const reasonsSeen = s.server.requests.findIndex((r) => r.status === 410);
  assert.deepEqual(
    s.server.requests
      .slice(reasonsSeen + 1)
      .filter((r) => r.status !== 410)
      .map((r) => r.path),
    [],
  );
  const again = new Worker('default', { client: s.client }).handle('work', () => 1);
  await assert.rejects(s.server.finish(again.run()), (e) => e instanceof ForcedOfflineError && e.remedy.endsWith(id));
  s.server.resume(id);
  const resumed = new Worker('default', { client: s.client }).handle('work', () => 1);
  const running = resumed.run();
  await s.server.until('it is registered', () => resumed.isRegistered);
  resumed.close();
  await s.server.finish(running);
  s.client.close();
});

test('a worker that is held offline does not register again for a heartbeat that was refused meanwhile', async () => {
  const s = await site(async (_, signal) => void (await untilEnded(signal)));
  s.server.enqueue({ type: 'work' });
  await s.server.until('it is at work', () => s.worker.activeCount === 1);
  const refused = (status: number, error: string) => ({ status, body: { error, message: '', reason: 'FORCED_OFFLINE' } });
  const beat = gate();
  s.server.intercept((r) => {
    if (r.path === '/v1/workers') return refused(409, 'worker_held_offline');
    const gone = refused(404, 'worker_not_found');
    return r.path.endsWith('/heartbeat') ? beat.opened.then(() => gone) : gone;
  });
  const calls = (path: string) => s.server.requests.filter((r) => r.path === path).length;
  const sent = s.beats().length;
  await s.server.until('a heartbeat is under way', () => s.beats().length > sent);
  await s.server.until('it is held offline', () => calls('/v1/workers') === 2);
  beat.open();
  assert.ok((await s.server.finish(s.over)) instanceof ForcedOfflineError);
  await s.server.clock.advance(3_600_000);
  assert.equal(calls('/v1/workers'), 2);
  s.client.close();
});

test('a worker on a drained machine waits until that is resumed', async () => {
  const server = new FakeServer();
  server.drainMachine();
  const lines: string[] = [];
  const logger = { debug() {}, info: (m: string) => void lines.push(m), warn() {}, error() {} };
  const client = new Client(server.url, { ...server.options(), logger });
  const worker = new Worker('default', { client, machineId: 'm1' }).handle('work', () => 1);
  const running = worker.run();
  const id = server.enqueue({ type: 'work' });
  await server.clock.advance(60_000);
  assert.ok(worker.isRegistered && server.task(id).state === 'QUEUED' && server.count('/v1/queues/default/claim') === 0);
  assert.equal(lines.filter((line) => line === 'Machine m1 is drained; waiting until it is resumed').length, 1);
  server.resumeMachine();
  await server.until('it is done', () => server.isOver(id));
  server.drainMachine();
  await server.finish(running);
  assert.ok(server.requests.at(-1)!.path.endsWith('/deregister'), 'one that was at work leaves');
  client.close();
});
