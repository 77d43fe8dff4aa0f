import assert from 'node:assert/strict';
import test from 'node:test';
import {
  Cancelled,
  Client,
  currentTask,
  Failure,
  type Handler,
  Lost,
  retryAfter,
  Snooze,
  StoppedError,
  type Task,
  TaskTimeout,
  UsageError,
  Worker,
} from 'lubdub';
import { FakeServer, runHandler } from 'lubdub/testing';
import { site, untilEnded } from './site.js';

interface Film {
  frames: number;
  from: Date | string;
}

test('runHandler runs a handler without a server, and has what it reports', async () => {
  const handler = (task: Task<Film>) => {
    assert.equal(currentTask(), task);
    task.progress(50, 'half');
    task.progress(100);
    task.checkpoint({ frame: task.payload.frames, at: new Date(0) });
    const { type, attempt, lastCheckpoint, payload, traceparent } = task;
    return { type, attempt, lastCheckpoint, payload, traceparent, labels: task.envelope.labels, none: undefined };
  };
  const film: Film = { frames: 3, from: new Date(0) };
  const envelope = { labels: { team: 'a' }, traceparent: '00-1-2-01' };
  const run = runHandler(handler, film, { type: 'render', attempt: 2, lastCheckpoint: 0, envelope });
  const from = '1970-01-01T00:00:00.000Z';
  assert.deepEqual(await run, { type: 'render', attempt: 2, lastCheckpoint: 0, payload: { frames: 3, from }, ...envelope });
  assert.deepEqual(run.progress, [
    { pct: 50, message: 'half' },
    { pct: 100, message: '' },
  ]);
  assert.deepEqual(run.checkpoints, [{ frame: 3, at: from }]);
  const first = (task: Task) => [task.type, task.attempt, task.payload, task.lastCheckpoint === undefined];
  assert.deepEqual(await runHandler(first), ['', 1, null, true]);
  assert.equal(await runHandler(() => undefined), undefined);
});

test('runHandler rejects with what ends the attempt, and keeps what was reported', async () => {
  const ends = (error: unknown, signal?: AbortSignal) => {
    const handler: Handler = (task) => {
      task.progress(1);
      throw error;
    };
    return runHandler(handler, null, { signal });
  };
  for (const error of [new TypeError('no'), new Snooze(1000), new Cancelled('why'), retryAfter('busy', 1)]) {
    const run = ends(error);
    await assert.rejects(run, error);
    assert.deepEqual(run.progress, [{ pct: 1, message: '' }]);
  }
  await assert.rejects(
    runHandler((task) => task.progress(101)),
    UsageError,
  );
  await assert.rejects(
    runHandler((task) => task.checkpoint(null)),
    UsageError,
  );
  await assert.rejects(
    runHandler(() => 1n),
    (error) => error instanceof Failure && error.retryable === false,
  );
  const aborted = (reason: Error) => AbortSignal.abort(reason);
  const cancel = new Cancelled();
  await assert.rejects(ends(new DOMException('', 'AbortError'), aborted(cancel)), cancel);
  await assert.rejects(ends(new StoppedError('late'), aborted(cancel)), StoppedError);
  await assert.rejects(ends(new Error('mine'), aborted(cancel)), /mine/);
  const late = ends(new Error('mine'), aborted(new TaskTimeout(5)));
  await assert.rejects(late, (e) => e instanceof Failure && e.category === 'TIMEOUT' && /limit of 5 ms: mine/.test(e.message));
  await assert.rejects(ends(new Error('mine'), aborted(new Lost())), Lost, 'reports throw as on a lost attempt');
});

test("runHandler runs a worker's handler in its middleware, also an isolated one", async () => {
  const client = new Client('http://127.0.0.1:1');
  const worker = new Worker('default', { client });
  worker.use((next) => async (task, signal) => [await next(task, signal), task.type]);
  worker.handle('work', (task) => task.payload).handle('isolated', new URL('./children/isolated.js', import.meta.url));
  assert.deepEqual(await runHandler(worker, 1, { type: 'work' }), [1, 'work']);
  const run = runHandler(worker, { does: 'show' }, { type: 'isolated', attempt: 3, lastCheckpoint: { frame: 7 } });
  const [{ pid, attempt, lastCheckpoint }] = (await run) as [{ pid: number; attempt: number; lastCheckpoint: unknown }];
  assert.notEqual(pid, process.pid);
  assert.deepEqual([attempt, lastCheckpoint, run.checkpoints], [3, { frame: 7 }, [{ attempt: 3, pid }]]);
  const ending = new AbortController();
  const waits = runHandler(worker, { does: 'wait' }, { type: 'isolated', signal: ending.signal });
  ending.abort(new Cancelled('enough'));
  assert.deepEqual(await waits, [['Cancelled', 'lubdub: the task is cancelled: enough'], 'isolated']);
  await assert.rejects(runHandler(worker, { does: 'own' }, { type: 'isolated' }), { name: 'NoSuchFile', message: 'gone' });
  await assert.rejects(runHandler(worker, 1, { type: 'other' }), /no handler for tasks of type "other"/);
  await assert.rejects(runHandler(worker, 1), /no default handler/);
  client.close();
});

test('a payload that is not JSON makes runHandler reject', async () => {
  const run = runHandler(() => 1, 1n);
  await assert.rejects(run, TypeError);
});

test('the test server notices a silent attempt when its time has come, though another timeout comes later', async () => {
  const server = new FakeServer();
  const client = new Client(server.url, server.options());
  await client.registerWorker({ queue: 'default', machineId: 'm', pid: 1, types: ['work'] } as never);
  server.workers(); // its timeout is awaited
  const attempt = client.track(server.push({ heartbeatIntervalMs: 1000, heartbeatTimeoutMs: 5000 }));
  await attempt.started;
  client.close();
  const before = server.clock.now();
  await server.until('it has timed out', () => server.isOver(attempt.taskId));
  assert.equal(server.clock.now() - before, 5001);
});

test('the test server retries failures after the delays of their policy, as often as it allows', async () => {
  const begun: number[] = [];
  const s = await site((task) => {
    begun.push(s.server.clock.now());
    if (task.payload === 'busy' && task.attempt === 1) throw retryAfter('busy', 90_000);
    if (task.payload === 'invalid') throw new Failure('no', { category: 'DATA_QUALITY' });
    if (task.payload === 'busy') return task.attempt;
    throw new Error('no');
  });
  const waits = async (payload: string, more: object = {}) => {
    begun.length = 0;
    const id = s.server.enqueue({ type: 'work', payload, ...more });
    await s.server.until('it is over', () => s.server.isOver(id));
    const { state, attempt, failures } = s.server.task(id);
    return [state, attempt, failures, ...begun.slice(1).map((at, i) => Math.floor((at - begun[i]!) / 1000))];
  };
  assert.deepEqual(await waits('fails'), ['FAILED', 3, 3, 1, 2], 'the default policy');
  const retry = { maxAttempts: 5, initialBackoffMs: 2000, multiplier: 3, maxBackoffMs: 10_000 };
  assert.deepEqual(await waits('fails', { retry }), ['FAILED', 5, 5, 2, 6, 10, 10]);
  assert.deepEqual(await waits('busy'), ['SUCCEEDED', 2, 1, 90]);
  assert.deepEqual(await waits('invalid'), ['FAILED', 1, 1]);
  assert.ok(s.lines.includes('warn A task failed and will be retried'));
  const [worker] = s.server.workers();
  await s.server.until('all are counted', () => s.server.workers()[0]!.failed === 10);
  assert.equal(worker!.status, 'ONLINE');
  await s.stop();
});

test('the test server declares a worker lost that is silent, and gives its tasks to another one', async () => {
  const server = new FakeServer();
  const begin = (name: string) => {
    const client = new Client(server.url, server.options());
    const worker = new Worker('default', { client, name, logger: { debug() {}, info() {}, warn() {}, error() {} } });
    worker.handle('work', async (task, signal) => {
      if (task.attempt === 1) await untilEnded(signal);
      return name;
    });
    return { client, worker, running: worker.run() };
  };
  const first = begin('first');
  const id = server.enqueue({ type: 'work' });
  await server.until('it is at work', () => server.task(id).state === 'RUNNING');
  first.client.close(); // as if its process had died
  first.worker.close();
  await first.running.catch(() => {});
  await server.until('its task is queued again', () => server.task(id).state === 'QUEUED');
  const [lost] = server.workers();
  assert.deepEqual([lost!.status, lost!.reason, server.task(id).lost], ['OFFLINE', 'HEARTBEAT_TIMEOUT', 1]);
  const second = begin('second');
  await server.until('it is over', () => server.isOver(id));
  assert.deepEqual([server.task(id).output, server.task(id).attempt], ['second', 2]);
  second.worker.close();
  await server.finish(second.running);
  second.client.close();
});
