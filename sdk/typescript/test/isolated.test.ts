import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import {
  Cancelled,
  Client,
  Failure,
  Snooze,
  StoppedError,
  type Task,
  UnfinishedError,
  UsageError,
  Worker,
  type WorkerOptions,
} from 'lubdub';
import { FakeServer } from 'lubdub/testing';
import { once, site } from './site.js';
import { sockets, until } from './sockets.js';

const module = new URL('./children/isolated.js', import.meta.url);

/** A worker with an isolated handler, whose clock moves only with the tests', and the errors that its middleware sees. */
async function isolated(options: WorkerOptions = {}) {
  const errors: unknown[] = [];
  const see = (error: unknown) => {
    errors.push(error);
    throw error;
  };
  const s = await site(module, options, {}, [(next) => async (task, signal) => Promise.resolve(next(task, signal)).catch(see)]);
  const dir = mkdtempSync(join(tmpdir(), 'lubdub-'));
  let n = 0;

  /** Creates a task, and returns its id, and the file that its handler writes. */
  const add = (does: string, more: object = {}) => {
    const file = join(dir, String(++n));
    return { file, id: s.server.enqueue({ type: 'work', payload: { does, file }, ...more }) };
  };
  const begun = async ({ file }: { file: string }) => {
    await until(() => existsSync(file) && readFileSync(file, 'utf8') !== '');
    return Number(readFileSync(file, 'utf8'));
  };
  /** Runs a task until it is over, without a move of the clock. */
  const ended = async (does: string, more: object = once) => {
    const { id } = add(does, more);
    await until(() => s.server.isOver(id));
    return s.server.task(id);
  };
  return { ...s, errors, add, begun, ended };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test('an isolated handler runs in a process that is used again, with the whole task', async () => {
  const s = await isolated({ concurrency: 2 });
  const traceparent = '00-' + 'a'.repeat(32) + '-' + 'b'.repeat(16) + '-01';
  const { taskId, output } = await s.ended('show', { traceparent });
  const { pid, ...found } = output as { pid: number };
  assert.notEqual(pid, process.pid);
  assert.deepEqual(found, { id: taskId, type: 'work', attempt: 1, traceparent, isCurrent: true });
  const [waits, snoozes] = [s.add('wait'), s.add('snooze')];
  const pids = [await s.begun(waits), await s.begun(snoozes)];
  assert.equal(new Set([pid, ...pids]).size, 2, 'one of them was used again, and there is one for each task');
  await until(() => s.server.task(snoozes.id).reason === 'SNOOZED');
  await s.server.clock.advance(1000);
  await until(() => s.server.isOver(snoozes.id));
  const { lastCheckpoint, lastProgress } = s.server.task(snoozes.id).output as Task;
  assert.deepEqual(lastCheckpoint, { attempt: 1, pid: pids[1] });
  assert.deepEqual(lastProgress, { progressPct: 5, message: 'snooze' });
  s.server.cancel(waits.id, 'enough');
  await s.server.clock.advance(10_000);
  await until(() => s.server.isOver(waits.id));
  assert.deepEqual(s.server.task(waits.id).output, ['Cancelled', 'lubdub: the task is cancelled: enough']);
  await s.stop();
  await until(() => ![pid, ...pids].some(isAlive));
});

test('errors of isolated handlers keep their class, name, message, stack and cause, and end attempts as others do', async () => {
  const s = await isolated({ taskTimeoutMs: 10_000 });
  const ended = async (does: string) => {
    const { state, error, partial } = await s.ended(does);
    const { stackTrace = '', ...rest } = error ?? {};
    return { state, partial, stack: stackTrace, error: rest };
  };
  const user = (message: string, more: object = {}) => ({ category: 'USER_CODE', message, ...more });
  const own = await ended('own');
  assert.deepEqual(own.error, user('gone'));
  assert.match(own.stack!, /Error: gone\n.*children.isolated/);
  const seen = s.errors[0] as Error & { code: string };
  assert.deepEqual([seen.name, seen.message, seen.code, seen.stack], ['NoSuchFile', 'gone', 'ENOENT', own.stack]);
  assert.deepEqual([(seen.cause as Error).name, (seen.cause as Error).message], ['RangeError', 'why']);
  assert.deepEqual((await ended('failure')).error, { category: 'DATA_QUALITY', message: 'bad row' });
  assert.deepEqual((await ended('permanent')).error, user('no', { retryable: false }));
  assert.deepEqual((await ended('retryAfter')).error, user('busy', { retryable: true, retryAfterMs: 5000 }));
  assert.deepEqual((await ended('text')).error, user('text'));
  assert.deepEqual((await ended('usage')).error, user('lubdub: progress 101 is not between 0 and 100'));
  const notJson = user('lubdub: the output is not JSON: Do not know how to serialize a BigInt', { retryable: false });
  assert.deepEqual((await ended('notJson')).error, notJson);
  const cancelled = await ended('cancelled');
  assert.deepEqual([cancelled.state, cancelled.error], ['CANCELLED', { category: 'CANCELLED', message: 'unsubscribed' }]);
  const stopped = await ended('stopped');
  assert.deepEqual([stopped.state, stopped.partial], ['CANCELLED', { rows: 1 }]);
  const classes = [Error, Failure, Failure, Failure, Error, UsageError, Failure, Cancelled, StoppedError];
  assert.deepEqual(
    s.errors.map((error, i) => error instanceof classes[i]!),
    classes.map(() => true),
  );
  const snoozes = s.add('snooze');
  await until(() => s.server.task(snoozes.id).reason === 'SNOOZED');
  assert.ok(s.errors.at(-1) instanceof Snooze);
  const rethrows = s.add('rethrow', once);
  await s.begun(rethrows);
  await s.server.clock.advance(10_000);
  await until(() => s.server.isOver(rethrows.id));
  assert.equal(s.server.task(rethrows.id).error!.message, 'lubdub: the task reached its time limit of 10000 ms');
  await s.stop();
});

const ends: Record<string, { end?: (server: FakeServer, id: string) => void; state: string; category?: string; limit?: number }> = {
  cancelled: { end: (server, id) => server.cancel(id), state: 'CANCELLED' },
  'at its time limit': { state: 'FAILED', category: 'TIMEOUT', limit: 10_000 },
  lost: { end: (server, id) => server.end(id, 'TERMINATED'), state: 'FAILED' },
};

for (const [name, { end, state, category, limit }] of Object.entries(ends)) {
  test(`an isolated handler that never yields and is ${name} delays nothing, and is killed after its grace period`, async () => {
    const s = await isolated({ concurrency: 2, taskTimeoutMs: limit ?? 0 });
    const blocks = s.add('block', once);
    const pid = await s.begun(blocks);
    end?.(s.server, blocks.id);
    await s.server.clock.advance(10_000); // a heartbeat learns it, or the time is over
    assert.equal((await s.ended('show')).state, 'SUCCEEDED');
    await s.server.clock.advance(23_999);
    assert.ok(s.beats().length >= 3 && s.worker.activeCount === 1 && !s.lines.some((line) => line.includes('killed')));
    await s.server.clock.advance(1001); // the heartbeat was sent up to a second before it was due
    await until(() => s.worker.activeCount === 0);
    const { state: found, error } = s.server.task(blocks.id);
    assert.deepEqual([found, error?.category], [state, category]);
    assert.ok(!isAlive(pid) && s.lines.includes('warn An isolated handler has not ended, and its process is killed'));
    assert.notEqual(((await s.ended('show')).output as { pid: number }).pid, pid);
    await s.stop();
  });
}

test('at a stop isolated handlers get their signal, and at the hard stop those that run are killed and their tasks returned', async () => {
  const s = await isolated();
  const [waits, blocks] = [s.add('wait'), s.add('block')];
  const pids = [await s.begun(waits), await s.begun(blocks)];
  s.worker.close();
  await s.server.clock.advance(20_000);
  await until(() => s.server.isOver(waits.id));
  assert.deepEqual(s.server.task(waits.id).output, ['Stopping', 'lubdub: the worker stops']);
  await s.server.clock.advance(5000);
  const end = await s.server.finish(s.over);
  assert.ok(end instanceof UnfinishedError && end.taskIds.join() === blocks.id);
  assert.deepEqual([s.server.task(blocks.id).state, s.server.task(blocks.id).lost], ['QUEUED', 0]);
  await until(() => !pids.some(isAlive));
  s.client.close();
});

test('a child that dies fails its attempt with the cause, another may help, and the worker continues', async () => {
  const s = await isolated();
  for (const [does, why] of [
    ['exit', 'exited with 3'],
    ['kill', 'was ended by SIGKILL, as when its memory ran out'],
    ['uncaught', 'exited with 1: not awaited'],
  ]) {
    const { stackTrace: _, ...error } = (await s.ended(does!)).error!;
    assert.deepEqual(error, { category: 'INFRASTRUCTURE', message: `the process of the isolated handler ${why}`, retryable: true });
  }
  assert.equal((await s.ended('show')).state, 'SUCCEEDED');
  await s.stop();
});

test('a module that does not exist is an error at once, and one that cannot be loaded fails its attempts', async () => {
  const missing = new URL('./missing.js', import.meta.url);
  const client = new Client('http://127.0.0.1:1');
  const handle = () => new Worker('default', { client }).handle('work', missing);
  assert.throws(
    handle,
    (e) => e instanceof UsageError && /the handler of "work" is a module that does not exist: .*missing.js$/.test(e.message),
  );
  for (const [text, words] of [
    ['throw new Error("broken")', /^the module of the isolated handler cannot be loaded: data:.*: broken$/],
    ['export const work = 1', /^the module of the isolated handler has no function as its default export: data:/],
  ] as const) {
    const s = await site(new URL('data:text/javascript,' + text));
    for (const id of [s.server.enqueue({ type: 'work' }), s.server.enqueue({ type: 'work' })]) {
      await until(() => s.server.isOver(id));
      const { category, message } = s.server.task(id).error!;
      assert.equal(category, 'CONFIGURATION');
      assert.match(message!, words);
    }
    await s.stop();
  }
});

test('a child writes to the output of its worker, ignores signals that stop the worker, and ends with it', async (t) => {
  const { server, work, close } = await sockets();
  t.after(close);
  const file = join(mkdtempSync(join(tmpdir(), 'lubdub-')), 'begun');
  const worker = work({}, true);
  server.enqueue({ type: 'isolated', taskId: 'prints', payload: { does: 'print' } });
  await until(() => server.isOver('prints'));
  const printed = /^printed by (\d+)$/;
  await until(() => worker.lines.some((line) => printed.test(line)));
  const pid = Number(worker.lines.map((line) => printed.exec(line)?.[1]).find(Boolean));
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.kill(pid, signal);
  server.enqueue({ type: 'isolated', taskId: 'blocks', payload: { does: 'block', file } });
  await until(() => existsSync(file) && readFileSync(file, 'utf8') !== '');
  assert.equal(Number(readFileSync(file, 'utf8')), pid);
  worker.child.kill('SIGKILL');
  assert.equal(await worker.ended, 'SIGKILL'); // once all processes that write to its output have ended
});
