import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
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
import { FakeServer, runHandler } from 'lubdub/testing';
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
  return { ...s, dir, errors, add, begun, ended };
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

for (const isStuck of [false, true]) {
  test(`an isolated handler whose attempt ${isStuck ? 'is stuck' : 'is lost'} is killed at once, since another one may run`, async () => {
    const s = await isolated({ taskTimeoutMs: 0, watchdogMs: isStuck ? 10_000 : 0 });
    const blocks = s.add('block', once);
    const pid = await s.begun(blocks);
    if (!isStuck) s.server.end(blocks.id, 'TERMINATED');
    await s.server.clock.advance(10_100); // a heartbeat learns it, or the watchdog ends it
    await until(() => s.worker.activeCount === 0);
    assert.equal(s.server.task(blocks.id).state, 'FAILED');
    assert.ok(!isAlive(pid) && !s.lines.some((line) => /killed|has died/.test(line)));
    await s.stop();
  });
}

test('the death of a child whose signal has ended is logged', async () => {
  const s = await isolated();
  const exits = s.add('exitWhenStopped');
  const pid = await s.begun(exits);
  s.server.cancel(exits.id);
  await s.server.clock.advance(10_000);
  await until(() => s.server.isOver(exits.id));
  assert.equal(s.server.task(exits.id).state, 'CANCELLED');
  const { taskId, attempt, error, ...rest } = s.logged.find((line) => line['message'] === 'The process of an isolated handler has died')!;
  assert.deepEqual([taskId, attempt, error], [exits.id, 1, 'the process of the isolated handler exited with 4']);
  assert.equal(rest['pid'], pid);
  await s.stop();
});

test('a child that cannot be started fails its attempt, and no other attempt waits for it', async () => {
  const s = await isolated();
  assert.equal((await s.ended('exit')).state, 'FAILED'); // the only child
  const { execPath } = process;
  process.execPath = join(s.dir, 'missing');
  const { error } = await s.ended('show').finally(() => (process.execPath = execPath));
  assert.deepEqual([error!.category, error!.retryable], ['INFRASTRUCTURE', true]);
  assert.match(error!.message!, /^the process of the isolated handler cannot be started: spawn .*missing ENOENT$/);
  assert.equal((await s.ended('show')).state, 'SUCCEEDED');
  await s.stop();
});

test('what an attempt sends after its end is not taken for that of the next one', async () => {
  const s = await isolated();
  const sends = s.add('sendLater');
  const pid = await s.begun(sends);
  await until(() => existsSync(sends.file + '.sent') && s.server.isOver(sends.id));
  for (let i = 0; i < 3; i++) await setImmediate(); // the event loop reads it
  assert.equal(((await s.ended('show')).output as { pid: number }).pid, pid);
  await s.stop();
});

test('a child that is idle for a minute ends', async () => {
  const s = await isolated();
  const { pid } = (await s.ended('show')).output as { pid: number };
  await s.server.clock.advance(59_999);
  assert.equal(((await s.ended('show')).output as { pid: number }).pid, pid);
  await s.server.clock.advance(60_000);
  await until(() => !isAlive(pid));
  assert.notEqual(((await s.ended('show')).output as { pid: number }).pid, pid);
  await s.stop();
});

test('children inherit the options of Node, but not those of the debugger', async () => {
  const before = [...process.execArgv];
  process.execArgv.push('--inspect=127.0.0.1:0', '--no-deprecation');
  const s = await isolated().finally(() => process.execArgv.splice(0, Infinity, ...before));
  const { output } = await s.ended('execArgv');
  assert.ok((output as string[]).includes('--no-deprecation') && !(output as string[]).some((arg) => arg.includes('inspect')));
  await s.stop();
});

/** A module of an isolated handler in a file, and a worker of it. */
function written(text: string) {
  const dir = mkdtempSync(join(tmpdir(), 'lubdub-'));
  const file = join(dir, 'handler.mjs');
  const write = (content: string) => writeFileSync(file, content);
  write(text);
  return { dir, write, start: () => site(pathToFileURL(file)) };
}

test('a worker whose module cannot be loaded, or with a strict lease, does not register', async () => {
  const missing = new URL('./missing.js', import.meta.url);
  const data = (text: string) => new URL('data:text/javascript,' + text);
  for (const [handler, options, words] of [
    [missing, {}, /^the module of the isolated handler cannot be loaded: file:.*missing.js: Cannot find module/],
    [data('throw new Error("broken")'), {}, /^the module of the isolated handler cannot be loaded: data:.*: broken$/],
    [data('export const work = 1'), {}, /^the module of the isolated handler has no function as its default export: data:/],
    [data('process.exit(3)'), {}, /^the process of the isolated handler exited with 3$/],
    [module, { lease: 'strict' }, /isolated handlers cannot keep a strict lease/],
  ] as const) {
    const server = new FakeServer();
    const client = new Client(server.url, server.options());
    const worker = new Worker('default', { client, ...options }).handle('work', handler);
    await assert.rejects(worker.run(), (error: Error) => words.test(error.message));
    assert.equal(server.requests.length, 0);
    client.close();
  }
});

test('a worker that is stopped while a module is loaded ends', async () => {
  const server = new FakeServer();
  const client = new Client(server.url, server.options());
  const begun = join(mkdtempSync(join(tmpdir(), 'lubdub-')), 'begun');
  const text = `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(begun)}, "");` + 'for (;;);';
  const worker = new Worker('default', { client }).handle('work', new URL('data:text/javascript,' + encodeURIComponent(text)));
  const running = worker.run();
  await until(() => existsSync(begun));
  worker.close();
  await running;
  assert.equal(server.requests.length, 0);
  client.close();
});

test('a module that cannot be loaded later fails its attempts, and another attempt may help', async () => {
  const fine = 'export default ({ payload }) => (payload === "exit" ? process.exit(3) : "fine");';
  const { write, start } = written(fine);
  const s = await start();
  const exits = s.server.enqueue({ type: 'work', payload: 'exit', ...once });
  await until(() => s.server.isOver(exits));
  write('throw new Error("broken")');
  const id = s.server.enqueue({ type: 'work' });
  await until(() => s.server.task(id).failures === 1);
  write(fine);
  await s.server.clock.advance(1000);
  await until(() => s.server.isOver(id));
  assert.deepEqual([s.server.task(id).output, s.server.task(id).attempt], ['fine', 2]);
  assert.match(String(s.logged.find((line) => line['taskId'] === id)!['error']), /cannot be loaded: .*: broken$/);
  await s.stop();
});

test('a child that dies before its handler was called is no failure: up to two others take its place', async () => {
  const { dir, write, start } = written('');
  const deaths = join(dir, 'deaths'); // how many children are to die
  write(`import { readFileSync, writeFileSync } from 'node:fs';
    const left = Number(readFileSync(${JSON.stringify(deaths)}));
    writeFileSync(${JSON.stringify(deaths)}, String(Math.max(0, left - 1)));
    if (left > 0) process.exit(3);
    export default ({ payload }) => (payload === 'exit' ? process.exit(4) : process.pid);`);
  writeFileSync(deaths, '0');
  const s = await start();
  const died = () => s.lines.filter((line) => line === 'warn The process of an isolated handler has died').length;
  const ended = async (payload: string | undefined, count: number) => {
    writeFileSync(deaths, String(count));
    const id = s.server.enqueue({ type: 'work', payload, ...once });
    await until(() => s.server.isOver(id));
    const { state, error } = s.server.task(id);
    return [state, error?.message, died(), readFileSync(deaths, 'utf8')];
  };
  assert.deepEqual(await ended('exit', 0), ['FAILED', 'the process of the isolated handler exited with 4', 0, '0']);
  assert.deepEqual(await ended(undefined, 2), ['SUCCEEDED', undefined, 2, '0']);
  await ended('exit', 0);
  assert.deepEqual(await ended(undefined, 3), ['FAILED', 'the process of the isolated handler exited with 3', 4, '0']);
  await s.stop();
});

test('no child is started for a signal that has ended, or after the end of the worker', async () => {
  const s = await isolated();
  const file = join(s.dir, 'begun');
  const run = (signal?: AbortSignal) => runHandler(s.worker, { does: 'show', file }, { type: 'work', signal });
  const enough = new Cancelled('enough');
  await assert.rejects(run(AbortSignal.abort(enough)), enough);
  await s.stop();
  await assert.rejects(run(), (error) => error instanceof UsageError && /the worker has ended/.test(error.message));
  assert.ok(!existsSync(file));
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
