import assert from 'node:assert/strict';
import test from 'node:test';
import { Client, EndedError, Snooze, UnfinishedError, UsageError, Worker } from 'lubdub';
import { FakeServer } from 'lubdub/testing';
import { gate, once, site, untilEnded } from './site.js';

const times = { heartbeatIntervalMs: 10_000, heartbeatTimeoutMs: 30_000 };
const unavailable = { status: 503, body: { error: 'store_unavailable', message: 'no' } };

interface Item {
  taskId: string;
  progressPct?: number;
  message?: string;
  details?: unknown;
}

/** The items of all heartbeats, by request. */
const sent = (server: FakeServer) =>
  server.requests
    .filter((r) => /heartbeats?$/.test(r.path))
    .map((r) => {
      const body = JSON.parse(r.body) as Item & { heartbeats?: Item[]; tasks?: Item[] };
      return body.heartbeats ?? body.tasks ?? [body];
    });
const details = (server: FakeServer) =>
  sent(server)
    .flat()
    .flatMap((item) => ('details' in item ? [item.details] : []));

async function begin() {
  const server = new FakeServer();
  const client = new Client(server.url, server.options());
  const track = async () => {
    const attempt = client.track(server.push(times));
    await attempt.started;
    return attempt;
  };
  const attempt = await track();
  await server.clock.advance(0);
  return { server, client, track, attempt };
}

/** A checkpoint of a length in bytes of JSON. */
const long = (bytes: number) => 'x'.repeat(bytes - 2);

test('a checkpoint goes with the next heartbeat, once, and the next attempt gets it', async () => {
  const { server, client, attempt } = await begin();
  assert.equal(attempt.lastCheckpoint, undefined);
  attempt.checkpoint({ frame: 1 });
  const value = { frame: 2, seen: ['é'] };
  attempt.checkpoint(value);
  value.frame = 3;
  value.seen.push('later');
  await server.clock.advance(40_000);
  assert.deepEqual(details(server), [{ frame: 2, seen: ['é'] }]);
  const next = client.track(server.supersede(attempt.taskId));
  assert.deepEqual(next.lastCheckpoint, { frame: 2, seen: ['é'] });
  assert.equal(next.lastProgress, undefined, 'no progress was reported');
  const last = client.track(server.supersede(attempt.taskId));
  assert.deepEqual(last.lastCheckpoint, next.lastCheckpoint, 'also if the attempt in between set none');
  assert.deepEqual((await client.getTask(attempt.taskId)).details, { frame: 2, seen: ['é'] });
  client.close();
});

test('progress and a checkpoint go together, and neither repeats or replaces the other', async () => {
  const { server, client, attempt } = await begin();
  attempt.progress(10, 'row 1');
  attempt.checkpoint(0);
  attempt.checkpoint(1);
  attempt.progress(20);
  await server.clock.advance(10_000);
  attempt.checkpoint(2);
  await server.clock.advance(10_000);
  attempt.progress(30);
  await server.clock.advance(10_000);
  const items = sent(server)
    .flat()
    .filter((item) => 'details' in item || 'progressPct' in item);
  assert.deepEqual(
    items.map(({ progressPct, message, details }) => [progressPct, message, details]),
    [
      [20, 'row 1', 1],
      [undefined, undefined, 2],
      [30, undefined, undefined],
    ],
  );
  const next = client.track(server.supersede(attempt.taskId));
  assert.deepEqual([next.lastProgress, next.lastCheckpoint], [{ progressPct: 30, message: 'row 1' }, 2]);
  client.close();
});

test('progress that waits when the client is closed is dropped', async () => {
  const { server, client, attempt } = await begin();
  attempt.progress(10);
  attempt.progress(20); // waits a moment
  client.close();
  await server.clock.advance(1000);
  assert.ok(
    !sent(server)
      .flat()
      .some((item) => 'progressPct' in item),
  );
});

test('a checkpoint is sent again until a heartbeat with it was accepted', async () => {
  const { server, client, attempt } = await begin();
  const results = [{ taskId: attempt.taskId, status: 503, error: 'store_unavailable', message: 'no', retryAfterMs: 1000 }];
  const answers = [unavailable, { status: 200, body: { results, serverTime: '' } }];
  server.intercept((r) => (r.path === '/v1/heartbeats' ? answers.shift() : undefined));
  attempt.checkpoint(7);
  await server.clock.advance(50_000);
  assert.deepEqual(details(server), [7, 7, 7]);
  const answer = gate();
  server.intercept((r) => (r.path === '/v1/heartbeats' ? answer.opened.then(() => undefined) : undefined));
  attempt.checkpoint(8);
  await server.until('it is sent', () => details(server).at(-1) === 8);
  attempt.checkpoint(9); // before the heartbeat with 8 is answered
  await server.clock.advance(1000);
  answer.open();
  await server.clock.advance(40_000);
  assert.deepEqual(details(server).slice(3), [8, 9]);
  client.close();
});

test('a value that cannot be a checkpoint is an error at the call, and the unsent checkpoint stays', async () => {
  const { server, client, attempt } = await begin();
  const circle: Record<string, unknown> = {};
  circle['self'] = circle;
  attempt.checkpoint('kept');
  const before = server.requests.length;
  const none = [undefined, null, () => 1, Symbol('x'), new Date(Number.NaN)];
  const deep = (levels: number): unknown => (levels === 0 ? '"[' : [deep(levels - 1)]);
  const tooLong = [long((16 << 10) + 1), 'é'.repeat(8192), long(20 << 20)];
  for (const value of [...none, deep(101), Number.NaN, { n: Infinity }, 1n, circle, ...tooLong]) {
    assert.throws(() => attempt.checkpoint(value), UsageError, String(typeof value));
  }
  await server.clock.advance(0);
  assert.equal(server.requests.length, before);
  await server.clock.advance(10_000);
  for (const value of [long(16 << 10), deep(100), 0, false, '', []]) {
    attempt.checkpoint(value);
    await server.clock.advance(10_000);
  }
  assert.deepEqual(details(server), ['kept', long(16 << 10), deep(100), 0, false, '', []]);
  await server.finish(attempt.done());
  assert.throws(() => attempt.checkpoint(1), EndedError);
  client.close();
});

test('what was not sent when a handler ends goes before the completion, however it ends', async () => {
  const s = await site((task) => {
    assert.equal(task.lastCheckpoint, task.attempt === 1 ? undefined : task.attempt - 1);
    task.progress(50);
    task.checkpoint(task.attempt);
    if (task.attempt === 1) throw new Snooze(1000);
    throw new Error('no');
  });
  const id = s.server.enqueue({ type: 'work', ...once });
  await s.server.until('it has failed', () => s.server.isOver(id));
  const { state, progressPct, details: last } = s.server.task(id);
  assert.deepEqual([state, progressPct, last], ['FAILED', 50, 2]);
  const calls = s.server.requests.filter((r) => r.path.startsWith(`/v1/tasks/${id}/`)).map((r) => r.path.split('/').at(-1));
  assert.deepEqual(calls, ['started', 'heartbeat', 'completed', 'started', 'heartbeat', 'completed']);
  assert.deepEqual(details(s.server), [1, 2]);
  await s.stop();
});

test('a checkpoint resets the watchdog, which reports a stuck task after its checkpoint', async () => {
  const s = await site(
    async (task) => {
      for (const frame of [1, 2]) {
        await new Promise<void>((resolve) => s.server.clock.setTimeout(resolve, 2500));
        task.checkpoint({ frame });
      }
      return new Promise(() => {});
    },
    { watchdogMs: 3000 },
  );
  const id = s.server.enqueue({ type: 'work', ...once });
  await s.server.until('it is reported', () => s.server.isOver(id));
  assert.ok(s.server.count(`/v1/tasks/${id}/heartbeat`) === 1, 'before a heartbeat of the worker was due');
  const { error, details: last } = s.server.task(id);
  assert.deepEqual([error!.message, last], ['no progress for 3000 ms', { frame: 2 }]);
  s.worker.kill();
  await s.server.finish(s.over);
  s.client.close();
});

/** Stops a worker whose three handlers have a checkpoint that no heartbeat has sent; one fails after the soft stop, two still run. */
async function stopped(before: (s: Awaited<ReturnType<typeof site>>, finish: () => void) => unknown = (_, finish) => finish()) {
  const done = gate();
  const s = await site(
    async (task, signal) => {
      if (task.id === 'done') return done.opened;
      await untilEnded(signal);
      for (const of of ['nothing yet', task.id]) task.checkpoint({ of });
      if (task.id === 'fails') throw new Error('not finished');
      return new Promise(() => {});
    },
    { softStopMs: 4000, hardStopMs: 5000 },
  );
  const ids = ['fails', 'runs', 'deaf'];
  for (const taskId of [...ids, 'done']) s.server.enqueue({ type: 'work', taskId });
  await s.server.until('they are at work', () => s.worker.activeCount === 4);
  await before(s, done.open);
  s.worker.close();
  const end = await s.server.finish(s.over);
  assert.ok(end instanceof UnfinishedError);
  assert.deepEqual(end.taskIds.filter((id) => id !== 'done').sort(), ids.toSorted());
  assert.ok(s.server.requests.at(-1)!.path.endsWith('/deregister'));
  const last = s.server.requests.filter((r) => /tasks\/.*heartbeat$/.test(r.path));
  for (const { headers } of last) assert.match(headers['Authorization']!, /^Bearer worker/, 'a token that is renewed');
  return { ...s, ids };
}

test('attempts that are given back at a stop send their checkpoints first, and the next attempts get them', async () => {
  const s = await stopped();
  const got: unknown[] = [];
  const other = new Worker('default', { client: s.client }).handle('work', (task) => void got.push([task.id, task.lastCheckpoint]));
  const running = other.run();
  await s.server.until('they are done', () => s.ids.every((id) => s.server.isOver(id)));
  assert.deepEqual(
    got.sort(),
    s.ids.toSorted().map((of) => [of, { of }]),
  );
  other.close();
  await s.server.finish(running);
  s.client.close();
});

test('they are sent without another inventory while a completion is not answered', async () => {
  const s = await stopped(async ({ server, beats }, finish) => {
    const count = beats().length;
    server.intercept((r) => (r.path.endsWith('/completed') ? unavailable : undefined));
    finish();
    await server.until('an inventory omits it', () => beats().length > count);
  });
  for (const of of s.ids) assert.deepEqual(s.server.task(of).details, { of });
  const omit = s.beats().filter(({ tasks }) => tasks?.length > 0 && !tasks.some(({ taskId }) => taskId === 'done'));
  assert.equal(omit.length, 1, 'after two it would be lost');
  s.client.close();
});

test('a server that does not accept the last checkpoints delays a stop for a limited time', async () => {
  let start = 0;
  const s = await stopped(({ server }, finish) => {
    finish();
    start = server.clock.now();
    server.intercept((r) => (/heartbeats?$/.test(r.path) ? { ...unavailable, headers: { 'retry-after': '1' } } : undefined));
  });
  const took = s.server.clock.now() - start;
  assert.ok(took >= 7000 && took < 7100, `${took} ms`);
  const tries = s.server.requests.filter((r) => /tasks.*heartbeat$/.test(r.path));
  assert.equal(tries.length, 6, 'each again when Retry-After has passed, within the limit');
  assert.equal(s.lines.filter((line) => line === 'warn The last progress of a task was not sent').length, 3);
  assert.deepEqual(s.server.workers()[0]!.status, 'OFFLINE');
  s.client.close();
});

for (const when of ['at the stop', 'from a heartbeat before it']) {
  test(`a server that does not answer ${when} delays deregistering by 2 s at most`, async () => {
    let start = 0;
    const s = await stopped(async ({ server, beats }, finish) => {
      finish();
      const count = beats().length;
      server.intercept((r) => (/heartbeats?$/.test(r.path) ? new Promise(() => {}) : undefined));
      if (when !== 'at the stop') await server.until('a heartbeat is in flight', () => beats().length > count);
      start = server.clock.now();
    });
    const deregister = s.server.requests.at(-1)!;
    assert.ok(deregister.path.endsWith('/deregister') && deregister.status === 200);
    assert.ok(deregister.atMs - start <= 7010, `${deregister.atMs - start} ms, of which 5 s are the hard stop`);
    assert.equal(s.lines.filter((line) => line === 'warn The last progress of a task was not sent').length, 3);
    for (const id of s.ids) assert.deepEqual([s.server.task(id).state, s.server.task(id).lost], ['QUEUED', 0], id);
    const sent = s.server.requests.length;
    await s.server.clock.advance(60_000);
    assert.equal(s.server.requests.length, sent, 'nothing comes after it');
    s.client.close();
  });
}

test('the last checkpoints of 100 attempts all arrive, with a limited number of requests at once', async () => {
  const s = await site(
    async (task, signal) => {
      await untilEnded(signal);
      task.checkpoint(task.id + long((15 << 10) - task.id.length));
      return new Promise(() => {});
    },
    { softStopMs: 4000, hardStopMs: 5000, concurrency: 100 },
  );
  const ids = Array.from({ length: 100 }, () => s.server.enqueue({ type: 'work' }));
  await s.server.until('they are at work', () => s.worker.activeCount === 100);
  let [open, most] = [0, 0];
  s.server.intercept(async (r) => {
    if (!/tasks.*heartbeat$/.test(r.path)) return undefined;
    most = Math.max(most, ++open);
    await new Promise<void>((resolve) => s.server.clock.setTimeout(resolve, 50));
    open--;
    return undefined;
  });
  s.worker.close();
  const end = await s.server.finish(s.over);
  assert.ok(end instanceof UnfinishedError);
  assert.equal(end.taskIds.length, 100);
  for (const id of ids) assert.ok((s.server.task(id).details as string).startsWith(id), id);
  assert.ok(most > 1 && most <= 8, `${most} at once`);
  s.client.close();
});

test('a heartbeat has at most 1 MiB of progress and checkpoints; the rest goes with the next', async () => {
  const { server, client, track, attempt: first } = await begin();
  const all = [first, ...(await Promise.all(Array.from({ length: 69 }, () => track())))];
  await server.clock.advance(20_000);
  for (const attempt of all) attempt.checkpoint(long(16 << 10));
  first.progress(1); // whose checkpoint and progress are longer than what is left
  const before = sent(server).length;
  await server.clock.advance(10_000);
  for (const attempt of all.slice(0, 64)) attempt.checkpoint(long(16 << 10).replace('x', 'y')); // these wait for the others
  await server.clock.advance(10_000);
  const requests = sent(server)
    .slice(before)
    .map((items) => items.filter((item) => 'details' in item).map((item) => item.taskId));
  const [one, two] = requests.filter((ids) => ids.length > 0);
  assert.deepEqual([one!.length, two!.length], [63, 64]);
  const rest = all.map((attempt) => attempt.taskId).filter((id) => !one!.includes(id));
  assert.ok(rest.length === 7 && rest.every((id) => two!.includes(id)), 'what did not fit is first');
  client.close();
});

test('so it is with the heartbeat of a worker', async () => {
  const hold = gate();
  const s = await site(async (task) => {
    task.progress(1);
    task.checkpoint(long(16 << 10));
    return hold.opened;
  });
  for (let i = 0; i < 70; i++) s.server.enqueue({ type: 'work' });
  await s.server.until('they are at work', () => s.worker.activeCount === 70);
  await s.server.clock.advance(20_000);
  const counts = sent(s.server).map((items) => [
    items.length,
    ...['details', 'progressPct'].map((f) => items.filter((i) => f in i).length),
  ]);
  assert.deepEqual(
    counts.filter(([, some]) => some! > 0),
    [
      [70, 63, 63],
      [70, 7, 7],
    ],
  );
  hold.open();
  await s.stop();
});

test('the fake server refuses checkpoints that are too long, and ignores those of attempts that are over', async () => {
  const { server, client, attempt } = await begin();
  const { taskId, taskToken } = attempt.envelope;
  const field = (error: unknown) => [(error as { status: number }).status, (error as { fields: { field?: string } }).fields.field];
  const tooLong = { taskId, attempt: 1, details: long((16 << 10) + 1) };
  await assert.rejects(client.heartbeat(taskId, taskToken, { attempt: 1, details: tooLong.details }), (e) => {
    assert.deepEqual(field(e), [400, 'details']);
    return true;
  });
  const { results } = await client.heartbeats({
    heartbeats: [tooLong, { taskId, attempt: 1, details: 1 }].map((b) => ({ ...b, taskToken })),
  });
  assert.deepEqual(
    results.map((r) => [r.status, r.field]),
    [
      [400, 'details'],
      [200, undefined],
    ],
  );
  const { workerId, workerToken } = await client.registerWorker({ queue: 'default', types: ['work'] });
  const tasks = [{ taskId, attempt: 1 }, tooLong];
  await assert.rejects(client.workerHeartbeat(workerId, workerToken, { tasks }), (e) => {
    assert.deepEqual(field(e), [400, 'tasks[1].details']);
    return true;
  });
  server.supersede(taskId);
  await assert.rejects(client.heartbeat(taskId, taskToken, { attempt: 1, details: 2 }));
  assert.equal(server.task(taskId).details, 1);
  client.close();
});
