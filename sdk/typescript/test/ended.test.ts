import assert from 'node:assert/strict';
import test from 'node:test';
import { Cancelled, type EndedAttempt, type Handler, permanent, Snooze, type WorkerOptions } from 'lubdub';
import { FakeServer } from 'lubdub/testing';
import { once, site, untilEnded } from './site.js';

/** A worker whose ended attempts are kept. */
async function begin(handler: (server: FakeServer) => Handler, options: WorkerOptions = {}) {
  const ends: EndedAttempt[] = [];
  const handle: Handler = (task, signal) => handler(s.server)(task, signal);
  const s = await site(handle, options, { metrics: { ended: (end) => void ends.push(end) } });
  const outcomes = () => ends.map((end) => end.outcome);
  const sees = (n: number) => s.server.until(`${n} attempts have ended`, () => ends.length === n);
  return { ...s, ends, outcomes, sees };
}

function after(server: FakeServer, ms: number): Promise<void> {
  return new Promise((resolve) => void server.clock.setTimeout(resolve, ms));
}

const answered = (finalState: string, willRetry = false) => ({ status: 200, body: { acknowledged: true, finalState, willRetry } });

test('an attempt that is completed has the outcome of its completion, and its handler the duration', async () => {
  const s = await begin((server) => async (task) => {
    await after(server, 1500);
    if (task.id === 'fine') return 1;
    if (task.id === 'bigint') return 1n;
    if (task.id === 'snoozed' && task.attempt === 1) throw new Snooze(60_000);
    if (task.id === 'givesUp') throw new Cancelled('unsubscribed');
    throw task.id === 'again' ? new Error('no') : permanent(new Error('no'));
  });
  s.server.intercept(async (r) => {
    if (!r.path.endsWith('/completed')) return undefined;
    await after(s.server, 300); // which is not the handler's
    return r.path.includes('/again/') ? answered('FAILED', true) : undefined;
  });
  const expected: [string, EndedAttempt['outcome'], boolean][] = [
    ['fine', 'SUCCEEDED', false],
    ['bigint', 'FAILED', false],
    ['again', 'FAILED', true],
    ['forGood', 'FAILED', false],
    ['givesUp', 'CANCELLED', false],
    ['snoozed', 'SNOOZED', true],
  ];
  for (const [taskId, outcome, willRetry] of expected) {
    s.ends.length = 0;
    s.server.enqueue({ type: 'work', taskId });
    await s.sees(1);
    const { firstHeartbeatMs: _, ...end } = s.ends[0]!;
    assert.deepEqual(end, { type: 'work', queue: 'default', attempt: 1, outcome, willRetry, durationMs: 1500, queueWaitMs: 0 }, taskId);
  }
  await s.sees(2);
  assert.deepEqual([s.ends[1]!.attempt, s.ends[1]!.outcome, s.ends[1]!.queueWaitMs], [2, 'FAILED', 0]);
  await s.stop();
  assert.equal(s.ends.length, 2);
});

test('an attempt that is cancelled before its handler begins, and one after that, are CANCELLED', async () => {
  const s = await begin(() => async (_, signal) => {
    await untilEnded(signal);
    throw signal.reason as Error;
  });
  s.server.intercept(async (r) => {
    if (r.path === '/v1/tasks/early/started') s.server.cancel('early');
    if (r.path === '/v1/tasks/early/completed') await after(s.server, 300);
    return undefined;
  });
  s.server.enqueue({ type: 'work', taskId: 'early' });
  await s.sees(1);
  s.server.enqueue({ type: 'work', taskId: 'late' });
  await s.server.until('it is at work', () => s.server.task('late').state === 'RUNNING');
  const start = s.server.clock.now();
  s.server.cancel('late');
  await s.sees(2);
  assert.deepEqual(
    s.ends.map(({ outcome, durationMs }) => [outcome, durationMs]),
    [
      ['CANCELLED', 0],
      ['CANCELLED', s.server.clock.now() - start],
    ],
  );
  await s.stop();
});

test('the queue wait is the time that the task could be claimed, unless the claim was repeated, and not below 0', async () => {
  const s = await begin((server) => (task) => task.payload === 'quick' || after(server, 5000), { concurrency: 1 });
  for (const taskId of ['first', 'second']) s.server.enqueue({ type: 'work', taskId });
  await s.sees(2);
  s.server.enqueue({ type: 'work', delayMs: 60_000 });
  await s.sees(3);
  let lost = 0;
  s.server.loseAnswers((r) => r.path.endsWith('/claim') && ++lost === 1);
  s.server.enqueue({ type: 'work' });
  await s.sees(4);
  s.server.loseAnswers(undefined);
  const readyAt = new Date(s.server.clock.wall() + 3_600_000).toISOString();
  for (const type of ['work', 'unknown']) {
    const tasks = [{ ...s.server.push({ type, payload: 'quick' }), queue: 'default', readyAt }];
    s.server.intercept((r) => {
      if (!r.path.endsWith('/claim')) return undefined;
      s.server.intercept(undefined);
      return { status: 200, body: { tasks } };
    });
    await s.sees(type === 'work' ? 5 : 6);
  }
  assert.deepEqual(
    s.ends.map((end) => end.queueWaitMs),
    [0, 5000, 0, undefined, 0, 0],
  );
  assert.deepEqual(
    s.ends.slice(4).map(({ type, outcome }) => [type, outcome]),
    [
      ['work', 'SUCCEEDED'],
      ['', 'FAILED'], // the types are those that the worker has handlers for
    ],
  );
  await s.stop();
});

test("the first heartbeat is the first that a server accepted, the worker's too", async () => {
  const cases: [object, WorkerOptions][] = [
    [{}, {}],
    [{ heartbeatIntervalMs: 5000, heartbeatTimeoutMs: 20_000 }, {}],
    [{}, { lease: 'strict' }],
  ];
  for (const [own, options] of cases) {
    const s = await begin((server) => (task) => task.payload === 'quick' || after(server, 60_000), options);
    s.server.enqueue({ type: 'work', payload: 'quick' });
    await s.sees(1);
    assert.equal(s.ends.pop()!.firstHeartbeatMs, undefined);
    s.server.enqueue({ type: 'work', ...own });
    await s.server.until('it is at work', () => s.worker.activeCount === 1);
    const start = s.server.clock.now();
    const sent = s.beats().length;
    let n = 0;
    s.server.intercept(async (r) => {
      if (!r.path.endsWith('/heartbeat')) return undefined;
      if (++n === 1) return { status: 503, body: { error: 'store_unavailable', message: 'no' } };
      await after(s.server, 700);
      return undefined;
    });
    await s.sees(1);
    const second = s.server.requests.filter((r) => /workers\/.*\/heartbeat$/.test(r.path))[sent + 1]!;
    assert.equal(s.ends[0]!.firstHeartbeatMs, second.atMs + 700 - start);
    assert.equal(s.ends[0]!.durationMs, 60_000);
    await s.stop();
  }
});

const losses: Record<string, (server: FakeServer) => void> = {
  'is superseded': (server) => void server.supersede('t'),
  'has expired': (server) => server.end('t', 'HEARTBEAT_TIMEOUT'),
  'has reached its deadline': (server) => server.end('t', 'DEADLINE_EXCEEDED'),
  'has a completion that is refused': (server) =>
    server.intercept((r) =>
      r.path.endsWith('/completed') ? { status: 400, body: { error: 'invalid_request', message: 'no' } } : undefined,
    ),
  'has lost its lease': (server) => server.down(),
};

for (const [name, lose] of Object.entries(losses)) {
  test(`an attempt that ${name} is LOST, and logged with the cause once`, async () => {
    const s = await begin((server) => () => after(server, 45_000), { lease: 'strict' });
    s.server.enqueue({ type: 'work', taskId: 't' });
    await s.server.until('it is at work', () => s.server.task('t').state === 'RUNNING');
    lose(s.server);
    await s.sees(1);
    s.server.up();
    const [{ outcome, willRetry, durationMs } = {} as EndedAttempt] = s.ends;
    assert.deepEqual({ outcome, willRetry, durationMs }, { outcome: 'LOST', willRetry: false, durationMs: 45_000 });
    s.server.intercept(undefined);
    await s.stop();
    assert.equal(s.ends.filter(({ outcome }) => outcome === 'LOST').length, 1);
    const warnings = s.logged.filter(({ level, taskId, attempt }) => level === 'warn' && taskId === 't' && attempt === 1);
    const running = 'A handler is still running though its signal has ended';
    const [warning, ...others] = warnings.filter(({ message }) => message !== running);
    assert.deepEqual(others, []);
    const { message, type, error } = warning!;
    assert.ok(message === 'Task t is lost' || name.includes('refused'), String(message));
    assert.ok(type === 'work' && /attempt|deadline|lease|400/.test(String(error)) && !/: $/.test(String(error)), String(error));
  });
}

test('an attempt that is lost, and whose handler does not return before the worker stops, is LOST once', async () => {
  const s = await begin(() => () => new Promise(() => {}));
  s.server.enqueue({ type: 'work', taskId: 't' });
  await s.server.until('it is at work', () => s.worker.activeCount === 1);
  s.server.supersede('t');
  await s.server.clock.advance(20_000);
  assert.deepEqual(s.outcomes(), []);
  await s.stop();
  assert.deepEqual(s.outcomes(), ['LOST']);
});

test('a handler that does not return in time fails while it runs, once', async () => {
  const s = await begin((server) => () => after(server, 100_000), { taskTimeoutMs: 10_000 });
  s.server.enqueue({ type: 'work', cancelGracePeriodMs: 2000, ...once });
  await s.sees(1);
  assert.equal(s.worker.activeCount, 1);
  await s.server.clock.advance(100_000);
  assert.deepEqual(s.outcomes(), ['FAILED']);
  assert.equal(s.ends[0]!.durationMs, 12_000);
  await s.stop();
  assert.equal(s.ends.length, 1);
});

test('attempts that go back to the queue because the worker stops are RETURNED, each once', async () => {
  const s = await begin((server) => async (task, signal) => {
    if (task.id === 'deaf') return new Promise(() => {});
    await untilEnded(signal);
    if (task.id === 'polite') await after(server, 1000);
    if (task.id === 'polite') throw new Error('not finished');
    return 1;
  });
  s.server.intercept((r) =>
    r.path.endsWith('cut/completed') ? { status: 503, body: { error: 'store_unavailable', message: 'no' } } : undefined,
  );
  for (const taskId of ['polite', 'deaf', 'cut']) s.server.enqueue({ type: 'work', taskId });
  await s.server.until('they are at work', () => s.worker.activeCount === 3);
  await s.stop();
  assert.deepEqual(s.outcomes(), ['RETURNED', 'RETURNED', 'RETURNED']);
  const durations = s.ends.map((end) => end.durationMs).sort((a, b) => a - b);
  assert.deepEqual(durations.slice(0, 2), [20_000, 21_000]);
  assert.ok(durations[2]! >= 25_000 && durations[2]! < 32_000, String(durations[2]));
  await s.server.clock.advance(60_000);
  assert.equal(s.ends.length, 3);
});

test('an attempt that does not begin is not measured', async () => {
  const s = await begin(() => () => assert.fail('it began'));
  s.server.intercept((r) => {
    if (r.path.endsWith('superseded/started')) s.server.supersede('superseded');
    return r.path.endsWith('waits/started') ? new Promise(() => {}) : undefined;
  });
  for (const taskId of ['superseded', 'waits']) s.server.enqueue({ type: 'work', taskId });
  await s.server.until('only one is left', () => s.worker.activeCount === 1 && s.server.count('/v1/tasks/superseded/started') === 1);
  await s.stop();
  assert.deepEqual(s.ends, []);
  assert.ok(!s.lines.includes('warn Task superseded is lost'), 'its refused start is logged');
});

test('each failure and the begin of each further attempt is one line of the log, with the id, the type and the attempt', async () => {
  const s = await begin(() => (task) => {
    if (task.id === 'bigint') return 1n;
    if (task.attempt === 1) throw new Snooze(1000);
    throw new Error('no');
  });
  for (const taskId of ['bigint', 'snoozed']) s.server.enqueue({ type: 'work', taskId, ...once });
  await s.sees(3);
  const notJson = 'lubdub: the output is not JSON: Do not know how to serialize a BigInt';
  assert.deepEqual(
    s.logged.filter(({ level, taskId }) => level !== 'debug' && taskId),
    [
      { level: 'error', message: 'A task failed and will not be retried', taskId: 'bigint', type: 'work', attempt: 1, error: notJson },
      { level: 'info', message: 'Attempt 2 of task snoozed begins', taskId: 'snoozed', type: 'work', attempt: 2 },
      { level: 'error', message: 'A task failed and will not be retried', taskId: 'snoozed', type: 'work', attempt: 2, error: 'no' },
    ],
  );
  await s.stop();
});
