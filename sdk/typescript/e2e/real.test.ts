import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Client, type EnqueuedTask, hasCode, TaskFailed } from 'lubdub';
import { deploy, life, wait } from './deployment.js';

describe('the real server', { concurrency: true }, () => {
  let client: Client;
  let work: Awaited<ReturnType<typeof deploy>>['work'];
  let close = () => {};
  before(async () => ({ client, work, close } = await deploy()));
  after(() => close());

  async function ended(taskId: string) {
    for (;;) {
      const task = await client.getTask(taskId);
      if (['SUCCEEDED', 'FAILED', 'CANCELLED'].includes(task.state)) return task;
      await wait(100);
    }
  }

  async function untilLine(lines: string[], line: string): Promise<void> {
    while (!lines.some((l) => l.startsWith(line))) await wait(20);
  }

  test('200 tasks are claimed and completed, each once, and appear as events', async () => {
    const { child, ended: over } = work('many', '');
    const events = client.events({ type: 'task.succeeded', queue: 'many', after: '2020-01-01T00:00:00.000Z' });
    const seen = new Set<string>();
    const listening = (async () => {
      for await (const event of events) if (seen.add(event.subject ?? '').size === 200) return;
    })();
    const tasks = Array.from({ length: 200 }, (_, n) => ({ queue: 'many', type: 'quick', payload: { n } }));
    const made: EnqueuedTask[] = [];
    for await (const one of client.enqueueMany(tasks)) made.push(one);
    for (const [n, one] of made.entries()) {
      assert.ok(one.task, String(one.error));
      const task = await ended(one.task.taskId);
      assert.deepEqual([task.state, task.attempt, task.output], ['SUCCEEDED', 1, { twice: 2 * n }]);
    }
    await listening;
    assert.equal(seen.size, 200);
    let listed = 0;
    for await (const task of client.tasks({ queue: 'many', state: 'SUCCEEDED', pageSize: 60 })) listed += task.attempt;
    assert.equal(listed, 200);
    while ((await client.listWorkers({ queue: 'many' })).workers[0]!.totalCompleted < 200) await wait(100);
    child.kill('SIGTERM');
    assert.equal(await over, 0);
    assert.equal((await client.listWorkers({ queue: 'many' })).workers[0]!.status, 'OFFLINE');
  });

  test('the results of 50 tasks are awaited, and those of a task that fails, is cancelled or does not exist', async () => {
    const queue = 'awaited';
    const made = await Promise.all(Array.from({ length: 50 }, (_, n) => client.enqueue(queue, 'quick', { n })));
    const results = Promise.all(made.map(({ taskId }) => client.result<{ twice: number }>(taskId, { timeoutMs: 60_000 })));
    const failing = await client.enqueue(queue, 'fail', undefined, { retry: { maxAttempts: 1 } });
    const { taskId } = await client.enqueue(queue, 'unknown');
    const others = [failing.taskId, taskId, 'none'].map((id) => client.result(id).catch((error: unknown) => error));
    await client.cancelTask(taskId, { reason: 'user_requested' });
    const { child, ended: over } = work(queue, '');
    assert.deepEqual(
      (await results).map(({ twice }) => twice),
      made.map((_, n) => 2 * n),
    );
    const [failed, cancelled, unknown] = await Promise.all(others);
    assert.ok(failed instanceof TaskFailed && cancelled instanceof TaskFailed);
    assert.equal(failed.message, `lubdub: task ${failing.taskId} FAILED (WORKER_REPORTED): no such file`);
    assert.equal(cancelled.message, `lubdub: task ${taskId} CANCELLED: user_requested`);
    assert.equal(cancelled.task.cancelReason, 'user_requested');
    assert.ok(hasCode(unknown, 'task_not_found'));
    child.kill('SIGTERM');
    assert.equal(await over, 0);
  });

  for (const signal of ['SIGKILL', 'SIGSTOP'] as const) {
    test(`what a worker held that was sent ${signal} is done by another`, async () => {
      const first = work(signal, '');
      const { taskId } = await client.enqueue(signal, 'hold');
      await untilLine(first.lines, `begun ${taskId} 1`);
      while ((await client.getTask(taskId)).progressPct !== 30) await wait(50);
      const second = work(signal, '');
      await untilLine(second.lines, 'Worker registered');
      first.child.kill(signal);
      const task = await ended(taskId);
      assert.deepEqual([task.state, task.attempt], ['SUCCEEDED', 2]);
      assert.deepEqual(task.output, { progressPct: 30, message: 'a third' });
      const [lost] = task.history;
      assert.equal(lost!.reason, 'WORKER_LOST');
      assert.ok(lost!.evidence!.silentMs >= life);
      if (signal === 'SIGSTOP') {
        first.child.kill('SIGCONT');
        await untilLine(first.lines, `ended ${taskId}`); // it is notified, and sends nothing
        first.child.kill('SIGTERM');
        assert.equal(await first.ended, 0);
      }
      second.child.kill('SIGTERM');
      assert.equal(await second.ended, 0);
      assert.equal((await client.getTask(taskId)).attempt, 2);
    });
  }

  test('a handler that blocks its event loop for two timeouts is not lost', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'lubdub-')), 'go');
    const { child, lines, ended: over } = work('blocking', file);
    const { taskId } = await client.createTask({ queue: 'blocking', type: 'block' });
    await untilLine(lines, `blocked ${taskId}`);
    await wait(2.2 * life);
    const [worker] = (await client.listWorkers({ queue: 'blocking' })).workers;
    assert.deepEqual([worker!.status, worker!.activeCount], ['ONLINE', 1]);
    writeFileSync(file, '');
    const task = await ended(taskId);
    assert.deepEqual([task.state, task.attempt, task.output, task.history.length], ['SUCCEEDED', 1, 1, 1]);
    child.kill('SIGINT');
    assert.equal(await over, 0);
  });
});
