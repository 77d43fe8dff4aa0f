import assert from 'node:assert/strict';
import test from 'node:test';
import {
  Cancelled,
  categorize,
  Client,
  type CompletedRequest,
  Failure,
  type Handler,
  hasCode,
  permanent,
  retryAfter,
  Snooze,
  type types,
  TaskTimeout,
  UsageError,
} from 'lubdub';
import { FakeServer } from 'lubdub/testing';
import { once, site, untilEnded } from './site.js';

function completions(server: FakeServer): CompletedRequest[] {
  return server.requests.filter((r) => r.path.endsWith('/completed')).map((r) => JSON.parse(r.body) as CompletedRequest);
}

/** Lets a worker run a task once, and returns the task, its completion without the usual fields, and the lines of the log. */
async function runOnce(handler: Handler, before: (s: Awaited<ReturnType<typeof site>>, id: string) => unknown = () => {}) {
  const s = await site(handler, { taskTimeoutMs: 40_000 });
  const id = s.server.enqueue({ type: 'work', ...once });
  await before(s, id);
  await s.server.until('it is completed', () => completions(s.server).length === 1 && s.worker.activeCount === 0);
  const { attempt: _, workerId: _w, completedAt: _c, ...sent } = completions(s.server)[0]!;
  if (sent.error) delete sent.error.stackTrace;
  await s.server.clock.advance(20_000);
  const [worker] = s.server.workers();
  const logged = s.lines.filter((line) => /^(warn|error) |A task has ended/.test(line));
  const task = s.server.task(id);
  await s.stop();
  return { task, sent, logged, counted: [worker!.completed, worker!.failed] };
}

test('a task with a start time is SCHEDULED until then, and is claimed afterwards', async () => {
  for (const time of [(at: Date) => ({ runAt: at }), (at: Date) => ({ notBefore: at }), () => ({ delayMs: 60_000 })]) {
    const ran: string[] = [];
    const s = await site((task) => void ran.push(task.id));
    const { clock } = s.server;
    const create = () => s.client.enqueue('default', 'work', null, time(new Date(clock.wall() + 60_000)));
    const [kept, cancelled] = [await create(), await create()] as [types.Task, types.Task];
    assert.equal(kept.state, 'SCHEDULED');
    await clock.advance(59_999);
    assert.equal(s.server.task(kept.taskId).state, 'SCHEDULED');
    s.server.cancel(cancelled.taskId);
    assert.equal(s.server.task(cancelled.taskId).state, 'CANCELLED');
    await s.server.until('it has run', () => s.server.isOver(kept.taskId));
    await clock.advance(1000);
    assert.deepEqual(ran, [kept.taskId]);
    const { state, attempt } = s.server.task(cancelled.taskId);
    assert.deepEqual([state, attempt], ['CANCELLED', 0]);
    await s.stop();
  }
  const server = new FakeServer();
  const id = server.enqueue({ delayMs: 1000 });
  await server.clock.advance(1000);
  assert.equal(server.task(id).state, 'QUEUED');
});

test('a snoozed task runs again after its delay, and the snooze is counted and logged as no failure', async () => {
  const begun: number[] = [];
  const s = await site((task) => {
    begun.push(s.server.clock.now());
    if (task.attempt === 1) throw new Snooze(60_000.4);
    return 'sent';
  });
  let lost = 0;
  s.server.loseAnswers((r) => r.path.endsWith('/completed') && lost++ === 0);
  const id = s.server.enqueue({ type: 'work' });
  await s.server.until('it is snoozed', () => s.lines.includes('debug A task has ended'));
  assert.equal(s.server.task(id).state, 'QUEUED');
  await s.server.clock.advance(30_000);
  assert.deepEqual([s.server.workers()[0]!.completed, s.server.workers()[0]!.failed], [0, 0]);
  await s.server.until('it is over', () => s.server.isOver(id));
  const { state, attempt, lost: losses, output } = s.server.task(id);
  assert.deepEqual([state, attempt, losses, output], ['SUCCEEDED', 2, 0, 'sent']);
  assert.ok(begun[1]! - begun[0]! >= 60_000 && begun[1]! - begun[0]! < 61_000, String(begun));
  const sent = completions(s.server);
  assert.deepEqual([sent[0]!.outcome, sent[0]!.delayMs, sent[0]!.error], ['SNOOZED', 60_000, undefined]);
  assert.deepEqual([sent.length, sent[1]], [3, sent[0]], 'the repeat is the same');
  assert.ok(!s.lines.some((line) => line.includes('A task failed')), s.lines.join('\n'));
  await s.stop();
});

test('a task that is snoozed after a cancel ends CANCELLED, and a late heartbeat of a snoozed attempt is refused', async () => {
  const cancelled = await runOnce(
    async (_, signal) => {
      await untilEnded(signal);
      throw new Snooze(1000);
    },
    async (s, id) => {
      await s.server.until('it is at work', () => s.server.task(id).state === 'RUNNING');
      s.server.cancel(id);
    },
  );
  assert.deepEqual([cancelled.task.state, cancelled.task.attempt], ['CANCELLED', 1]);
  assert.deepEqual(cancelled.sent, { outcome: 'SNOOZED', delayMs: 1000 });
  assert.deepEqual(cancelled.logged, ['debug A task has ended']);
  const server = new FakeServer();
  const client = new Client(server.url, server.options());
  const id = server.enqueue({});
  const attempt = client.track(server.supersede(id));
  await attempt.started;
  const { finalState, willRetry, nextAttempt } = await server.finish(attempt.fail(new Snooze(0)));
  assert.deepEqual([finalState, willRetry, nextAttempt], ['SNOOZED', true, 2]);
  const late = client.heartbeat(id, `task/${id}/1`, { attempt: 1 });
  await assert.rejects(server.finish(late), (error) => hasCode(error, 'task_already_terminal'));
  client.close();
});

test('a task without a queue cannot be snoozed', async () => {
  const server = new FakeServer();
  const client = new Client(server.url, server.options());
  const run = client.run(server.push(), () => Promise.reject(new Snooze(1000)));
  await assert.rejects(server.finish(run), (error) => hasCode(error, 'task_without_queue'));
  client.close();
});

test('a handler cancels its task with a reason, which a requested cancel does not need', async () => {
  const own = await runOnce(() => {
    throw new Cancelled('unsubscribed');
  });
  assert.equal(own.task.state, 'CANCELLED');
  assert.deepEqual(own.sent, { outcome: 'CANCELLED', error: { category: 'CANCELLED', message: 'unsubscribed' } });
  assert.deepEqual([own.logged, own.counted], [['debug A task has ended'], [0, 0]]);
  const bare = await runOnce(() => Promise.reject(new Cancelled()));
  assert.deepEqual(bare.sent, { outcome: 'CANCELLED' });
  for (const error of [(signal: AbortSignal) => signal.reason as Error, () => new Cancelled('mine')]) {
    const requested = await runOnce(
      async (_, signal) => {
        await untilEnded(signal);
        throw error(signal);
      },
      async (s, id) => {
        await s.server.until('it is at work', () => s.server.task(id).state === 'RUNNING');
        s.server.cancel(id, 'theirs');
      },
    );
    assert.deepEqual(requested.sent, { outcome: 'CANCELLED' });
  }
});

test('a failure says when the next attempt starts', async () => {
  const sent = async (error: unknown) => (await runOnce(() => Promise.reject(error as Error))).sent;
  const message = 'too many';
  const plain = { category: 'USER_CODE', message };
  const error = { ...plain, retryable: true, retryAfterMs: 700 };
  assert.deepEqual(await sent(retryAfter(new Error(message), 700.2)), { outcome: 'FAILED', error });
  assert.deepEqual((await sent(new Failure(message, { retryAfterMs: 0 }))).error, { ...plain, retryAfterMs: 0 });
  const data = await sent(categorize('DATA_QUALITY', retryAfter(message, 700)));
  assert.deepEqual(data.error, { ...error, category: 'DATA_QUALITY' });
  assert.equal((await sent(permanent(retryAfter(message, 700)))).error!.retryable, false);
  assert.ok(!('retryAfterMs' in (await sent(new Failure(message))).error!));
});

test('how a handler ends its task counts after its time limit too', async () => {
  for (const [error, outcome] of [
    [new Snooze(1000), 'SNOOZED'],
    [new Cancelled('too late'), 'CANCELLED'],
  ] as const) {
    const { sent } = await runOnce(async (_, signal) => {
      await untilEnded(signal);
      assert.ok(signal.reason instanceof TaskTimeout);
      throw error;
    });
    assert.equal(sent.outcome, outcome);
  }
});

test('a delay that no server accepts is an error at once', () => {
  const most = 366 * 24 * 3_600_000;
  for (const ms of [NaN, Infinity, most + 1, '5' as never, null as never]) {
    for (const use of [() => new Snooze(ms), () => retryAfter('x', ms), () => new Failure('x', { retryAfterMs: ms })]) {
      assert.throws(use, (error) => error instanceof UsageError && /at most 31622400000, which is 366 days/.test(error.message));
    }
  }
  assert.deepEqual([new Snooze(most).delayMs, new Snooze(0.4).delayMs, new Snooze(-5).delayMs], [most, 0, 0]);
});
