import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { ApiError, Client, type ClientOptions, ClosedError, hasCode, UnansweredError, UsageError } from 'lubdub';
import { answer, carrier, tokenOf } from './helpers.js';

const here = 'http://127.0.0.1:1';
const busy = (retryAfter?: string) =>
  answer(503, { error: 'store_unavailable', message: 'come again' }, retryAfter ? { 'Retry-After': retryAfter } : {});

/** A clock on which every wait ends at once; it records their lengths. */
function impatient() {
  const waits: number[] = [];
  let now = 0;
  const clock = {
    now: () => now,
    wall: () => now,
    setTimeout(f: () => void, ms: number) {
      if (ms >= 10_000) return { cancel() {} }; // the timeout of an answer
      waits.push(ms);
      now += ms;
      const timer = setImmediate(f);
      return { cancel: () => clearImmediate(timer) };
    },
  };
  return { clock, waits };
}

test('an error has code, fields, request id and operation', async () => {
  const { fetch } = carrier(() =>
    answer(409, { error: 'attempt_mismatch', message: 'a newer one', expectedAttempt: 3 }, { 'X-Request-Id': 'req_7' }),
  );
  const error = await new Client(here, { token: 'tok', fetch }).getTask('t').catch((e: unknown) => e);
  assert.ok(error instanceof ApiError && hasCode(error, 'attempt_mismatch') && !hasCode(error, 'task_expired'));
  assert.equal(error.status, 409);
  assert.equal(error.fields.expectedAttempt, 3);
  assert.equal(error.requestId, 'req_7');
  assert.equal(error.message, 'lubdub: GET /v1/tasks/t: 409 attempt_mismatch: a newer one (request req_7)');
  assert.ok(!JSON.stringify(error).includes('tok'));
});

test("a proxy's response is an error without a code, and redirects are not followed", async () => {
  const { fetch, seen } = carrier((_, n) =>
    n === 0 ? answer(404, '<html>') : new Response(null, { status: 302, headers: { Location: 'https://elsewhere.test/' } }),
  );
  const client = new Client(here, { token: 'tok', fetch });
  await assert.rejects(client.getTask('t'), (e) => e instanceof ApiError && e.code === '' && e.status === 404);
  await assert.rejects(client.getTask('t'), /redirects are not followed/);
  assert.equal(seen.length, 2);
});

test('retryable calls are repeated, and Retry-After is the minimum pause', async () => {
  const { clock, waits } = impatient();
  const { fetch, seen } = carrier((_, n) => (n < 2 ? busy('2') : answer(200, { taskId: 't' })));
  const task = await new Client(here, { token: 'tok', fetch, clock }).getTask('t');
  assert.equal(task.taskId, 't');
  assert.equal(seen.length, 3);
  assert.ok(
    waits.every((ms) => ms >= 2000 && ms < 2300),
    String(waits),
  );
});

test('a creation is repeated under one idempotency key', async () => {
  const { clock } = impatient();
  const { fetch, seen } = carrier((_, n) => (n === 0 ? busy() : answer(201, { taskId: 't', state: 'QUEUED' })));
  await new Client(here, { token: 'tok', fetch, clock }).createTask({ queue: 'q', type: 'x' });
  const keys = new Set(seen.map((s) => s.headers['Idempotency-Key']));
  assert.equal(seen.length, 2);
  assert.equal(keys.size, 1);
  assert.ok(!keys.has(undefined));
});

test('a call that a repeat would apply twice is retried only if the server cannot have received it', async () => {
  const { clock } = impatient();
  const cut = carrier((_, n) => {
    if (n === 0) throw Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
    if (n === 1) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
    return answer(201, {});
  });
  const client = new Client(here, { token: 'tok', fetch: cut.fetch, clock });
  await assert.rejects(client.rotateSecret('w'), (e) => e instanceof UnansweredError);
  assert.equal(cut.seen.length, 2);
});

test('a rejected token is requested again once, for all waiting calls together', async () => {
  let requests = 0;
  const { fetch, seen } = carrier((one) =>
    one.headers['Authorization'] === 'Bearer tok2' ? answer(200, {}) : answer(401, { error: 'unauthorized', message: '' }),
  );
  const client = new Client(here, { tokenFunc: () => `tok${++requests}`, fetch });
  await Promise.all([client.getStats(), client.getStats(), client.getStats()]);
  assert.equal(requests, 2);
  const refused = carrier(() => answer(401, { error: 'unauthorized', message: '' }));
  await assert.rejects(new Client(here, { tokenFunc: () => `t${++requests}`, fetch: refused.fetch }).getStats(), (e) =>
    hasCode(e, 'unauthorized'),
  );
  assert.equal(refused.seen.length, 2);
  assert.ok(seen.length >= 4);
});

test('a token file is read again after its token was rejected', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'lubdub-')), 'token');
  writeFileSync(file, 'old\n');
  const { fetch } = carrier((one) => {
    if (one.headers['Authorization'] === 'Bearer new') return answer(200, {});
    writeFileSync(file, ' new \n');
    return answer(401, { error: 'unauthorized', message: '' });
  });
  await new Client(here, { tokenFile: file, fetch }).getStats();
  writeFileSync(file, '');
  await assert.rejects(new Client(here, { tokenFile: file, fetch }).getStats(), /is empty; put there what/);
});

test('several addresses are tried in turn, and the one that answered last first', async () => {
  const { clock } = impatient();
  const { fetch, seen } = carrier((one) => {
    if (one.url.port === '1') throw new Error('away');
    return answer(200, {});
  });
  const client = new Client('http://127.0.0.1:1,http://127.0.0.1:2', { token: 'tok', fetch, clock });
  await client.getStats();
  await client.getStats();
  assert.deepEqual(
    seen.map((s) => s.url.port),
    ['1', '2', '2'],
  );
});

test('lists are read page by page, and queries match the contract', async () => {
  const { fetch, seen } = carrier((_, n) =>
    answer(200, n === 0 ? { tasks: [{ taskId: 'a' }, { taskId: 'b' }], nextPageToken: 'p2' } : { tasks: [{ taskId: 'c' }] }),
  );
  const client = new Client(here, { token: 'tok', fetch });
  const ids: string[] = [];
  for await (const task of client.tasks({ state: ['RUNNING', 'FAILED'], labels: { team: 'a b', zone: 'z=1' } })) ids.push(task.taskId);
  assert.deepEqual(ids, ['a', 'b', 'c']);
  assert.equal(seen[0]!.url.search, '?state=RUNNING%2CFAILED&label=team%3Da%2520b&label=zone%3Dz%253D1');
  assert.equal(seen[1]!.url.searchParams.get('pageToken'), 'p2');
});

test('the series of the stats are requested with the given number of steps', async () => {
  const { fetch, seen } = carrier(() => answer(200, { series: { steps: [] } }));
  const client = new Client(here, { token: 'tok', fetch });
  await client.getStats();
  await client.getStats({ steps: 12 });
  assert.deepEqual(
    seen.map((s) => s.url.pathname + s.url.search),
    ['/v1/stats', '/v1/stats?steps=12'],
  );
});

test('each of many creations has its own outcome', async () => {
  const { fetch, seen } = carrier(() =>
    answer(200, {
      results: [
        { status: 201, taskId: 'a', taskToken: 'x' },
        { status: 201, taskId: 'b', state: 'QUEUED', error: null },
        { status: 409, error: 'task_exists', message: 'there is one' },
      ],
    }),
  );
  const made = await new Client(here, { token: 'tok', fetch }).createTasks([{}, { queue: 'q' }, { taskId: 'c' }]);
  assert.equal(made[0]!.envelope?.taskId, 'a');
  assert.equal(made[1]!.task?.taskId, 'b');
  assert.ok(hasCode(made[2]!.error, 'task_exists'));
  const sent = JSON.parse(seen[0]!.body!) as { tasks: { idempotencyKey: string }[] };
  assert.equal(new Set(sent.tasks.map((t) => t.idempotencyKey)).size, 3);
});

test('creations in a batch that get 503 or 429 are repeated, and results keep their order', async () => {
  const batches: { taskId: string; idempotencyKey: string }[][] = [];
  const { fetch } = carrier((one) => {
    const { tasks } = JSON.parse(one.body!) as { tasks: { taskId: string; idempotencyKey: string }[] };
    batches.push(tasks);
    const busy = { status: 503, error: 'store_unavailable', message: 'come again' };
    const refused = { status: 409, error: 'task_exists', message: 'there is one' };
    return answer(200, {
      results: tasks.map(({ taskId }) => {
        if (taskId === 'd') return refused;
        if (taskId === 'e' || (taskId === 'b' && batches.length < 3)) return { ...busy, status: taskId === 'e' ? 429 : 503 };
        return { status: 201, taskId, taskToken: 'x' };
      }),
    });
  });
  const given = ['a', 'b', 'c', 'd', 'e'].map((taskId) => (taskId === 'c' ? { taskId, idempotencyKey: 'mine' } : { taskId }));
  const before = JSON.stringify(given);
  const made = await new Client(here, { token: 'tok', fetch }).createTasks(given);
  assert.deepEqual(
    made.map((one) => one.envelope?.taskId ?? one.error!.status),
    ['a', 'b', 'c', 409, 429],
  );
  assert.deepEqual(
    batches.map((tasks) => tasks.map((task) => task.taskId).join('')),
    ['abcde', 'be', 'be', 'e'],
  );
  assert.equal(
    new Set(
      batches
        .flat()
        .filter((task) => task.taskId === 'b')
        .map((task) => task.idempotencyKey),
    ).size,
    1,
  );
  assert.equal(batches[0]![2]!.idempotencyKey, 'mine');
  assert.equal(JSON.stringify(given), before, "the caller's objects stay as they are");
});

test('calls end with their signal and with the client', async () => {
  const never = carrier(
    (one) =>
      new Promise((_, reject) => {
        one.signal.addEventListener('abort', () => reject(one.signal.reason as Error));
      }),
  );
  const client = new Client(here, { token: 'tok', fetch: never.fetch });
  const enough = new AbortController();
  const first = client.getStats({}, { signal: enough.signal });
  enough.abort(new Error('enough'));
  await assert.rejects(first, /enough/);
  const second = client.getStats();
  await new Promise((resolve) => setImmediate(resolve));
  client.close();
  await assert.rejects(second, ClosedError);
  await assert.rejects(client.getStats(), ClosedError);
});

test('the default transport keeps connections, ends calls at the timeout, and reports a refused connection', async () => {
  const ports = new Set<number>();
  const server = createServer((req, res) => {
    ports.add(req.socket.remotePort!);
    if (req.url === '/livez') res.end('{"status":"ok"}');
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = new Client(url, { tries: 1 });
  await client.livez();
  await client.livez();
  assert.equal(ports.size, 1);
  const hasty = new Client(url, { timeoutMs: 200, tries: 1 });
  await assert.rejects(hasty.readyz(), /no answer within 200 ms/);
  hasty.close();
  client.close();
  server.closeAllConnections();
  server.close();
  const late = new Client(url, { tries: 1 });
  await assert.rejects(late.livez(), (e) => e instanceof UnansweredError && e.notSent);
  late.close();
});

test('a proxy is used for requests to other hosts', async () => {
  const requests: string[] = [];
  const proxy = createServer((req, res) => {
    requests.push(`${req.method} ${req.url} ${req.headers['proxy-authorization']}`);
    res.end('{}');
  });
  proxy.on('connect', (req, socket) => {
    requests.push(`CONNECT ${req.url}`);
    socket.end('HTTP/1.1 403 no\r\n\r\n');
  });
  proxy.listen(0, '127.0.0.1');
  await new Promise((resolve) => proxy.once('listening', resolve));
  const at = `http://u:p@127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const plain = new Client('http://lubdub.test:8080', { token: 'tok', allowHttp: true, proxy: at });
  await plain.livez();
  const before = { ...process.env };
  Object.assign(process.env, { https_proxy: at, no_proxy: 'near.test' }); // as a user would set it
  const secure = new Client('https://lubdub.test', { token: 'tok', tries: 1 });
  process.env = before;
  await assert.rejects(secure.livez(), (e) => e instanceof UnansweredError && e.notSent && /the proxy answered 403/.test(e.message));
  assert.deepEqual(requests, ['GET http://lubdub.test:8080/livez Basic dTpw', 'CONNECT lubdub.test:443']);
  plain.close();
  secure.close();
  proxy.close();
});

test('wrong use fails early with an error that names the remedy', async () => {
  const bad: [string | undefined, ClientOptions, RegExp][] = [
    [undefined, {}, /set LUBDUB_URL/],
    ['ftp://x', {}, /not like https/],
    ['https://u:secret@x', {}, /contains credentials; give a token/],
    ['https://x?tenantId=a', {}, /more than a path/],
    ['http://elsewhere.test', { token: 'tok' }, /use https, or the option allowHttp/],
    [here, { token: 'a b' }, /without quotes or spaces/],
    [here, { token: tokenOf('task') }, /token of a task.*lubdub token --role/],
    [here, { token: tokenOf('worker') }, /token of a worker/],
    [here, { token: 'a', tokenFile: 'b' }, /give only one of/],
    [here, { timeoutMs: 0 }, /give a positive one/],
    [here, { tries: 0 }, /1 is the least/],
    [here, { lease: 'none' as 'strict' }, /patient or strict/],
    [here, { proxy: 'socks://x' }, /http:\/\/host:port/],
  ];
  for (const [url, options, words] of bad) {
    assert.throws(
      () => new Client(url, options),
      (e) => e instanceof UsageError && words.test(e.message) && !e.message.includes('secret'),
    );
  }
  new Client('http://elsewhere.test', { token: 'tok', allowHttp: true });
  new Client('http://elsewhere.test');
  const { fetch, seen } = carrier(() => answer(200, {}));
  const late = new Client(here, { tokenFunc: () => tokenOf('task'), fetch });
  await assert.rejects(late.getStats(), UsageError);
  await assert.rejects(new Client('http://elsewhere.test', { fetch }).getStats({}, { token: 'tok' }), /allowHttp/);
  assert.equal(seen.length, 0);
});

test('an empty id does not call another path', async () => {
  const { fetch, seen } = carrier(() => answer(200, {}));
  const client = new Client(here, { token: 'tok', fetch });
  for (const id of ['', '.', '..', 'a/b']) await client.getTask(id);
  assert.deepEqual(
    seen.map((s) => s.url.pathname),
    ['/v1/tasks/-', '/v1/tasks/-', '/v1/tasks/-', '/v1/tasks/a%2Fb'],
  );
});

interface Mail {
  to: string;
}

test('payloads may be typed by interfaces', async () => {
  const { fetch, seen } = carrier((one) => answer(200, one.url.pathname.endsWith(':batch') ? { results: [{ status: 201 }] } : {}));
  const client = new Client(here, { token: 'tok', fetch });
  const payload: Mail = { to: 'a@example.com' };
  await client.createTask({ queue: 'mail', type: 'send', payload });
  await client.createTasks([{ queue: 'mail', type: 'send', payload }]);
  assert.deepEqual((JSON.parse(seen[0]!.body!) as { payload: Mail }).payload, payload);
});
