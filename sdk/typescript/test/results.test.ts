import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { AnswerError, Client, type ClientOptions, ClosedError, hasCode, type RequestInit, TaskFailed, UsageError } from 'lubdub';
import { FakeServer } from 'lubdub/testing';

const path = '/v1/tasks:wait';
const nothing = { status: 200, body: { tasks: [], notFound: [] } };

/** A server, and a client whose requests in flight, timers and listeners are counted. */
function site(options: ClientOptions = {}) {
  const server = new FakeServer();
  const flight = { now: 0, most: 0 };
  const timers = new Set<object>();
  const { fetch, ...set } = server.options();
  const counted = async (url: string, init: RequestInit) => {
    if (!url.endsWith(path)) return fetch!(url, init);
    flight.most = Math.max(flight.most, ++flight.now);
    return fetch!(url, init).finally(() => flight.now--);
  };
  const clock = {
    now: () => server.clock.now(),
    wall: () => server.clock.wall(),
    setTimeout(f: () => void, ms: number) {
      const timer = server.clock.setTimeout(() => (timers.delete(timer), f()), ms);
      timers.add(timer);
      return { cancel: () => (timers.delete(timer), timer.cancel()) };
    },
  };
  const client = new Client(server.url, { ...set, fetch: counted, clock, ...options });
  const requests = () => server.requests.filter((one) => one.path === path);
  const bodies = () => requests().map((one) => JSON.parse(one.body) as { taskIds: string[]; waitMs: number });
  const end = (taskId: string, body: object) =>
    client.completed(taskId, `task/${taskId}/1`, { attempt: 1, outcome: 'SUCCEEDED', ...body } as never);
  const push = (n: number) => Array.from({ length: n }, () => server.push().taskId);

  /** Checks that the client does nothing any more. */
  const quiet = async () => {
    await server.clock.advance(0);
    assert.deepEqual([flight.now, timers.size, getEventListeners(client.caller.closing, 'abort').length], [0, 0, 0]);
    const before = requests().length;
    await server.clock.advance(100_000);
    assert.equal(requests().length, before);
    assert.ok(flight.most <= 1, 'one request at a time');
  };
  return { server, client, requests, bodies, end, push, quiet, flight };
}

test('result returns the output of a task once it has succeeded, to each of its waiters', async () => {
  const { server, client, end, bodies, quiet } = site();
  const { taskId } = server.push();
  const first = client.result<{ pages: number }>(taskId);
  const second = client.result(taskId);
  await server.clock.advance(5000);
  await end(taskId, { output: { pages: 3 } });
  assert.equal((await first).pages, 3);
  assert.deepEqual(await second, { pages: 3 });
  assert.ok(bodies().every(({ taskIds }) => taskIds.length === 1));
  await end(server.push({ taskId: 'none' }).taskId, {});
  assert.equal(await client.result('none'), null);
  await quiet();
});

test('a task that failed, was cancelled or does not exist rejects with what happened', async () => {
  const { server, client, end, quiet } = site();
  await end(server.push({ taskId: 't1' }).taskId, {
    outcome: 'FAILED',
    error: { category: 'USER_CODE', message: 'no such file\n  at line 7' },
  });
  server.cancel(server.enqueue({ taskId: 't2' }), 'user_requested');
  server.end(server.push({ taskId: 't3' }).taskId, 'HEARTBEAT_TIMEOUT');
  const results = ['t1', 't2', 't3', 't4'].map((id) => client.result(id).catch((error: unknown) => error));
  const [failed, cancelled, ended, unknown] = await Promise.all(results);
  assert.ok(failed instanceof TaskFailed && cancelled instanceof TaskFailed && ended instanceof TaskFailed);
  assert.equal(failed.message, 'lubdub: task t1 FAILED (WORKER_REPORTED): no such file');
  assert.deepEqual([failed.task.taskId, failed.task.error!['message']], ['t1', 'no such file\n  at line 7']);
  assert.equal(cancelled.message, 'lubdub: task t2 CANCELLED: user_requested');
  assert.equal(ended.message, 'lubdub: task t3 FAILED (HEARTBEAT_TIMEOUT)');
  assert.ok(hasCode(unknown, 'task_not_found') && unknown.status === 404);
  assert.match(unknown.message, /no task t4; finished tasks are removed at the end of their retention/);
  await quiet();
});

test('1,000 results that are added one by one share one request at a time, and few requests', async () => {
  const { server, client, push, requests, bodies, quiet } = site();
  const results: Promise<unknown>[] = [];
  const ids = push(1000);
  for (const id of ids) {
    results.push(client.result(id));
    await server.clock.advance(1);
  }
  const { length } = requests();
  assert.ok(length < 40, `${length} requests`);
  assert.ok(
    requests().every((one, i) => one.status === 200 || i === length - 1),
    'none was cancelled',
  );
  await server.clock.advance(1000);
  assert.equal(bodies().at(-1)!.taskIds.length, 1000);
  for (const id of ids) server.end(id, 'TERMINATED'); // an answer has at most 100 of them
  const before = requests().length;
  const failed = await Promise.allSettled(results);
  assert.ok(failed.every((one) => one.status === 'rejected' && one.reason instanceof TaskFailed));
  assert.ok(requests().length - before <= 11, `${requests().length - before} requests`);
  await quiet();
});

test('many ends share an answer', async () => {
  const { server, client, push, requests, quiet } = site();
  const ids = push(300);
  const results = ids.map((id) => client.result(id).catch((error: unknown) => error));
  await server.clock.advance(10_000);
  const before = requests().length;
  for (const id of ids) {
    server.end(id, 'TERMINATED');
    await server.clock.advance(1);
  }
  await server.clock.advance(100);
  assert.ok((await Promise.all(results)).every((one) => one instanceof TaskFailed));
  assert.ok(requests().length - before < 60, `${requests().length - before} requests`);
  await quiet();
});

test('requests wait longer and longer, and added tasks are requested soon', async () => {
  const { server, client, push, end, requests, bodies, quiet } = site();
  const [a, b, c, d] = push(4) as [string, string, string, string];
  const all = [client.result(a), client.result(b)];
  await server.clock.advance(0);
  assert.deepEqual(bodies(), [{ taskIds: [a, b], waitMs: 10 }]);
  all.push(client.result(c));
  await server.clock.advance(9);
  assert.equal(bodies().length, 1, 'a short request is not cancelled');
  await server.clock.advance(100_000);
  assert.deepEqual(
    bodies().map(({ waitMs }) => waitMs),
    [10, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10240, 20480, 30000, 30000],
  );
  assert.ok(bodies().every(({ taskIds }, i) => taskIds.join() === [a, b, ...(i > 0 ? [c] : [])].join()));
  await end(d, { output: 4 });
  const [at, n] = [server.clock.now(), bodies().length];
  assert.equal(await client.result(d), 4);
  assert.equal(server.clock.now(), at, 'at once');
  assert.deepEqual([requests()[n - 1]!.status, bodies()[n]], [0, { taskIds: [a, b, c, d], waitMs: 10 }]);
  for (const id of [a, b, c]) server.end(id, 'TERMINATED');
  await Promise.allSettled(all);
  await quiet();
});

test('more than 1,000 tasks take turns', async () => {
  const { server, client, push, bodies, end, quiet } = site();
  const ids = push(2500);
  const results = ids.map((id) => client.result(id));
  await server.clock.advance(1499);
  const sent = bodies();
  assert.deepEqual(
    sent.map(({ waitMs }) => waitMs),
    [100, 200, 400, 400, 400],
  );
  assert.ok(sent.every(({ taskIds }) => taskIds.length === 1000));
  assert.deepEqual(
    sent.flatMap(({ taskIds }) => taskIds),
    [...ids, ...ids],
    'each in its turn',
  );
  await end(ids[1700]!, { output: 'long awaited' });
  assert.equal(await server.finish(results[1700]!), 'long awaited');
  for (const id of ids) if (id !== ids[1700]) server.end(id, 'TERMINATED');
  await server.finish(Promise.allSettled(results));
  await quiet();
});

test('refused, failed and unanswered requests are repeated as long as a result is awaited', async () => {
  const { server, client, push, end, requests, quiet } = site();
  const [id, other] = push(2) as [string, string];
  server.unavailable(7000);
  const result = client.result(id);
  await server.clock.advance(60_000);
  const added = client.result(other, { timeoutMs: 30_000 }).catch((error: Error) => error.name);
  await server.clock.advance(60_000);
  assert.equal(await added, 'TimeoutError');
  const times = requests().map((one) => one.atMs);
  assert.ok(times.length >= 10, 'more often than the tries of a call');
  assert.ok(
    times.every((at, i) => i === 0 || at - times[i - 1]! >= 7000),
    `after Retry-After: ${times.join(' ')}`,
  );
  server.down();
  await server.clock.advance(120_000);
  assert.ok(requests().length >= times.length + 20);
  server.up();
  server.intercept(({ path: at }) => (at === path ? { ...nothing, status: 429, headers: { 'retry-after': '1' } } : undefined));
  await server.clock.advance(10_000);
  server.intercept(undefined);
  await end(id, { output: 1 });
  assert.equal(await server.finish(result), 1);
  await quiet();
});

test('a request has the time limit of a call in addition to its wait', async () => {
  const starts: number[] = [];
  const ends: number[] = [];
  const { server, client } = site({
    timeoutMs: 2000,
    fetch: (_, init) => {
      starts.push(server.clock.now());
      return new Promise((_, reject) => {
        init.signal.addEventListener('abort', () => {
          ends.push(server.clock.now());
          reject(init.signal.reason as Error);
        });
      });
    },
  });
  const result = client.result('t');
  await server.clock.advance(30_000);
  assert.deepEqual(
    ends.slice(0, 3).map((at, i) => at - starts[i]!),
    [2010, 2020, 2040],
  );
  client.close();
  await assert.rejects(result, ClosedError);
});

test('any other refusal fails all results of its request', async () => {
  const { server, client, bodies, quiet } = site();
  server.intercept(() => ({ status: 403, body: { error: 'forbidden', message: 'no' } }));
  const results = Array.from({ length: 25_000 }, (_, n) => client.result(`t${n}`).catch((error: unknown) => error));
  assert.ok((await Promise.all(results)).every((error) => hasCode(error, 'forbidden')));
  assert.deepEqual([bodies().length, bodies()[0]!.waitMs], [25, 50]);
  server.intercept(() => ({ status: 200, body: {} }));
  await assert.rejects(client.result('t'), AnswerError);
  await quiet();
});

test('empty answers that come at once are not requested in a tight loop', async () => {
  const { server, client, requests, quiet } = site();
  server.intercept(() => (requests().length < 500 ? nothing : { status: 403, body: {} }));
  const enough = new AbortController();
  const result = client.result('t', { signal: enough.signal });
  await server.clock.advance(10_000);
  assert.ok(requests().length < 100, `${requests().length} requests in 10 s`);
  enough.abort(new Error('enough'));
  await assert.rejects(result, /enough/);
  await quiet();
});

test('a wait that ends leaves the others', async () => {
  const { server, client, push, end, requests, bodies, quiet } = site();
  const [a, b] = push(2) as [string, string];
  const enough = new AbortController();
  const all = [client.result(a, { signal: enough.signal }), client.result(a), client.result(b, { signal: enough.signal })];
  const late = client.result(b, { timeoutMs: 5000 });
  const [aborted, stays, other] = all as [Promise<unknown>, Promise<unknown>, Promise<unknown>];
  await server.clock.advance(1000);
  enough.abort(new Error('enough'));
  await assert.rejects(aborted, /enough/);
  await assert.rejects(other, /enough/);
  await assert.rejects(client.result(a, { signal: enough.signal }), /enough/);
  const at = server.clock.now();
  await assert.rejects(
    server.finish(late),
    (error: Error) => error.name === 'TimeoutError' && /has not ended within 5000 ms/.test(error.message),
  );
  assert.equal(server.clock.now() - at, 4000);
  assert.ok(
    requests()
      .slice(0, -1)
      .every((one) => one.status === 200),
    'no request was cancelled',
  );
  await server.clock.advance(60_000);
  assert.deepEqual(bodies().at(-1)!.taskIds, [a]);
  const kept = new AbortController();
  const third = client.result(a, { signal: kept.signal, timeoutMs: 60_000 });
  await end(a, { output: 1 });
  assert.deepEqual(await Promise.all([stays, third]), [1, 1]);
  assert.deepEqual(
    [enough, kept].map(({ signal }) => getEventListeners(signal, 'abort').length),
    [0, 0],
  );
  await quiet();
});

test('when no result is awaited, the request or the pause ends', async () => {
  const { server, client, push, end, requests, flight, quiet } = site();
  const [id] = push(1) as [string];
  for (const broken of [false, true]) {
    if (broken) server.unavailable(3600_000);
    const enough = [new AbortController(), new AbortController()];
    const results = enough.map(({ signal }) => client.result(id, { signal }));
    await server.clock.advance(5000);
    assert.equal(flight.now, broken ? 0 : 1);
    enough[0]!.abort();
    await assert.rejects(results[0]!, { name: 'AbortError' });
    await server.clock.advance(0);
    assert.equal(flight.now, broken ? 0 : 1);
    enough[1]!.abort();
    await assert.rejects(results[1]!, { name: 'AbortError' });
    await quiet();
    assert.equal(requests().at(-1)!.status, 0);
  }
  server.up();
  const gone = new AbortController();
  const last = new AbortController();
  server.intercept(() => (last.abort(), { status: 503, body: {}, headers: { 'retry-after': '3600' } }));
  await assert.rejects(client.result(id, { signal: last.signal }), { name: 'AbortError' });
  await quiet();
  server.intercept(undefined);
  const left = Promise.allSettled(['other', id].map((one) => client.result(one, { signal: gone.signal })));
  gone.abort();
  const again = client.result(id); // before the loop has noticed
  await end(id, { output: 1 });
  assert.equal(await server.finish(again), 1);
  assert.ok((await left).every((one) => one.status === 'rejected'));
  await quiet();
});

test('closing the client fails all results, in a request and in a pause', async () => {
  for (const broken of [false, true]) {
    const { server, client, push, quiet } = site();
    if (broken) server.unavailable(60_000);
    const results = push(2500).map((id) => client.result(id).catch((error: unknown) => error));
    await server.clock.advance(1000);
    client.close();
    assert.ok((await Promise.all(results)).every((error) => error instanceof ClosedError));
    await assert.rejects(client.result('t'), ClosedError);
    await quiet();
  }
});

test('what is not a task id is not sent', async () => {
  const { client, requests } = site();
  for (const id of ['', 'a/b', '-a', 'a\n', 'a'.repeat(129), undefined]) await assert.rejects(client.result(id as string), UsageError);
  assert.equal(requests().length, 0);
});
