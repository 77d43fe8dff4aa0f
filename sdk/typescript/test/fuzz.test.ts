import assert from 'node:assert/strict';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import test from 'node:test';
import { AnswerError, ApiError, Client, UnansweredError, UsageError, Worker } from 'lubdub';
import { FakeServer } from 'lubdub/testing';
import { answer } from './helpers.js';

/** Pseudorandom numbers, the same each time. */
function chance(seed: number) {
  let state = seed;
  const next = () => {
    state = (Math.imul(state ^ (state >>> 15), 1 | state) + 0x6d2b79f5) | 0;
    const mixed = Math.imul(state ^ (state >>> 7), 61 | state) ^ state;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n: number) => Math.floor(next() * n);
  const one = <T>(of: readonly T[]): T => of[below(of.length)]!;
  return { next, below, one };
}

type Chance = ReturnType<typeof chance>;

const fields = [
  'tasks',
  'taskId',
  'attempt',
  'taskToken',
  'results',
  'status',
  'nextHeartbeatMs',
  'retryAfterMs',
  'shouldCancel',
  'cancelReason',
  'error',
  'message',
  'workerId',
  'workerToken',
  'heartbeatIntervalMs',
  'heartbeatTimeoutMs',
  'cancelTasks',
  'lostTasks',
  'drainDeadline',
  'serverTime',
  'tokenExpiresAt',
  'finalState',
  'reason',
  'state',
];

/** Any JSON value. */
function value(by: Chance, depth = 0): unknown {
  switch (by.below(depth > 3 ? 8 : 11)) {
    case 0:
      return null;
    case 1:
      return by.next() < 0.5;
    case 2:
      return by.one([0, -1, 1, 1e300, -1e300, 2 ** 53, 0.5, 1e-300, 503, 200, 410]);
    case 3:
      return by.below(100_000);
    case 4:
      return by.one(['', '\u0000', '\ud800', 'a\r\nb: c', 'NaN', 'task_1', 'worker_offline', 'x'.repeat(5000)]);
    case 5:
      return '2026-01-01T00:00:00.000Z';
    case 6:
      return [];
    case 7:
      return {};
    case 8:
      return Array.from({ length: by.below(4) }, () => value(by, depth + 1));
    default:
      return Object.fromEntries(Array.from({ length: by.below(6) }, () => [by.one(fields), value(by, depth + 1)]));
  }
}

/** A body that does not follow the API. */
function body(by: Chance): string {
  switch (by.below(8)) {
    case 0:
      return Array.from({ length: by.below(50) }, () => String.fromCharCode(by.below(0x300))).join('');
    case 1:
      return '['.repeat(200_000);
    case 2:
      return '{"tasks":'.repeat(5000) + '1' + '}'.repeat(5000);
    case 3:
      return '{"tasks":' + '9'.repeat(10_000) + '}';
    case 4:
      return JSON.stringify(value(by)).slice(0, -1);
    case 5:
      return '<html>502</html>';
    default:
      return JSON.stringify(Object.fromEntries(Array.from({ length: by.below(8) }, () => [by.one(fields), value(by)])));
  }
}

/** Answers every request with the same bytes. */
async function raw(reply: (socket: Socket) => void): Promise<{ url: string; server: Server }> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => reply(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

const noCalls = ['constructor', 'close', 'track', 'trackFor', 'run', 'endpointsFor', 'events', 'result'];

/** The calls of a client, with their required arguments. */
function calls(client: Client): Promise<unknown>[] {
  const made: Promise<unknown>[] = [];
  const of = client as unknown as Record<string, (...all: unknown[]) => unknown>;
  const names = new Set<string>();
  for (let at: object = client; at !== Object.prototype; at = Object.getPrototypeOf(at) as object) {
    for (const name of Object.getOwnPropertyNames(at)) {
      const found = Object.getOwnPropertyDescriptor(at, name)!.value as unknown;
      if (typeof found === 'function' && !noCalls.includes(name)) names.add(name);
    }
  }
  for (const name of names) {
    try {
      const found = of[name]!(...(name === 'createTasks' ? [[{}]] : ['x', 'y', {}, {}]));
      if (found instanceof Promise) made.push(found);
    } catch (error) {
      made.push(Promise.reject(error as Error));
    }
  }
  assert.ok(made.length > 30, `${made.length} calls`);
  return made;
}

test('every call ends with a typed error or an object, whatever bytes the server sends', async (t) => {
  const by = chance(1);
  const shapes: ((socket: Socket) => void)[] = [
    (s) => s.end(Buffer.from(Array.from({ length: by.below(300) }, () => by.below(256)))),
    (s) => s.end('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"cut":'),
    (s) => s.end(`HTTP/1.1 ${by.one(['200', '503', '99', '999', '-1', '2e2'])} \r\n\r\n${body(by)}`),
    (s) => s.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}'),
    (s) => s.end('HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}'),
    (s) => s.end(`HTTP/1.1 200 OK\r\nX: ${'y'.repeat(100_000)}\r\n\r\n{}`),
    (s) => s.end('HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n'),
    (s) => s.end('HTTP/1.1 503 No\r\nRetry-After: 99999999999999999999\r\nContent-Length: 0\r\n\r\n'),
    (s) => s.end('HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd'),
    (s) => s.destroy(),
  ];
  for (let round = 0; round < shapes.length * 2; round++) {
    const { url, server } = await raw(shapes[round % shapes.length]!);
    t.after(() => void server.close());
    const client = new Client(url, { token: 'x', proxy: '', tries: 1, timeoutMs: 5000 });
    t.after(() => client.close());
    for (const end of await Promise.allSettled(calls(client))) {
      if (end.status === 'fulfilled') continue;
      const error: unknown = end.reason;
      const typed =
        error instanceof ApiError || error instanceof AnswerError || error instanceof UnansweredError || error instanceof UsageError;
      assert.ok(typed, `round ${round}: ${error instanceof Error ? error.stack : String(error)}`);
    }
  }
});

test('an endless response is aborted: a large one by its size, a slow one by its time', async () => {
  const part = Buffer.alloc(1 << 20, 0x20);
  const endless = await raw((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n');
    const more = () => {
      while (!socket.destroyed && socket.write(part));
      if (!socket.destroyed) socket.once('drain', more);
    };
    more();
  });
  const slow = await raw((socket) => {
    socket.write('HTTP/1.1 200 OK\r\n');
    const drip = setInterval(() => void socket.write('X-A: b\r\n'), 20);
    socket.on('close', () => clearInterval(drip));
  });
  const one = new Client(endless.url, { token: 'x', proxy: '', tries: 1, timeoutMs: 60_000 });
  await assert.rejects(one.getTask('x'), AnswerError);
  const other = new Client(slow.url, { token: 'x', proxy: '', tries: 1, timeoutMs: 300 });
  await assert.rejects(other.getTask('x'), UnansweredError);
  for (const each of [one, other]) each.close();
  for (const { server } of [endless, slow]) server.close();
});

/** A server, and a client that gets some random answers from it while `bad` is set. */
function strange(seed: number, path: RegExp) {
  const by = chance(seed);
  const server = new FakeServer();
  const { fetch, ...rest } = server.options();
  const state = { bad: false, requests: 0 };
  const client = new Client(server.url, {
    ...rest,
    fetch: async (url, init) => {
      state.requests++;
      if (state.bad && path.test(url) && by.next() < 0.8) return answer(by.one([200, 200, 200, 400, 404, 409, 500, 503]), body(by));
      return fetch!(url, init);
    },
  });
  return { server, client, state };
}

test('a worker continues heartbeats at a limited rate and recovers, whatever the server sends', async () => {
  for (let seed = 1; seed <= 30; seed++) {
    const { server, client, state } = strange(seed, /heartbeats?$|\/v1\/workers$/);
    const worker = new Worker('default', { client, taskTimeoutMs: 0 });
    worker.handle('work', (_, signal) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve())));
    const end = worker.run().then(
      () => undefined,
      (error: unknown) => error,
    );
    for (const fields of [{}, { heartbeatIntervalMs: 5000, heartbeatTimeoutMs: 20_000 }]) server.enqueue({ type: 'work', ...fields });
    await server.until('they run', () => worker.activeCount === 2);
    Object.assign(state, { bad: true, requests: 0 });
    await server.clock.advance(20_000);
    assert.ok(state.requests < 3000, `seed ${seed}: ${state.requests} requests in 20 s`);
    state.bad = false;
    const before = server.requests.length;
    await server.clock.advance(40_000);
    const beats = server.requests.slice(before).filter((r) => /workers\/.*\/heartbeat$|\/v1\/workers$/.test(r.path));
    assert.ok(beats.length > 0, `seed ${seed}: it beats no more`);
    worker.kill();
    await server.finish(end, `seed ${seed}: its end`);
    client.close();
  }
});

test('tracked attempts get heartbeats, whatever the server sends', async () => {
  for (let seed = 1; seed <= 30; seed++) {
    const { server, client, state } = strange(seed, /\/v1\/heartbeats$/);
    const attempts = [1, 2, 3].map(() => client.track(server.push({ heartbeatIntervalMs: 2000, heartbeatTimeoutMs: 60_000 })));
    for (const attempt of attempts) await server.finish(attempt.started);
    Object.assign(state, { bad: true, requests: 0 });
    await server.clock.advance(20_000);
    assert.ok(state.requests < 3000, `seed ${seed}: ${state.requests} requests in 20 s`);
    state.bad = false;
    const before = server.requests.length;
    await server.clock.advance(10_000);
    assert.ok(server.requests.length > before, `seed ${seed}: it beats no more`);
    for (const attempt of attempts) attempt.abandon();
    client.close();
  }
});

test('claims and registrations end in a typed error or continue, whatever the server sends', async () => {
  for (let seed = 1; seed <= 60; seed++) {
    const { server, client, state } = strange(seed, seed % 2 ? /claim$/ : /\/v1\/workers$/);
    state.bad = true;
    const worker = new Worker('default', { client }).handle('work', () => 1);
    let over = false;
    const end = worker
      .run()
      .then(
        () => undefined,
        (error: unknown) => error,
      )
      .finally(() => (over = true));
    server.enqueue({ type: 'work' });
    await server.clock.advance(30_000);
    worker.close();
    await server.until(`seed ${seed}: its end`, () => over);
    const why = await end;
    const cause = why instanceof Error && why.cause !== undefined ? why.cause : why;
    const typed = [undefined, 'ApiError', 'AnswerError', 'UnansweredError', 'UnfinishedError'].includes((cause as Error | undefined)?.name);
    assert.ok(typed, `seed ${seed}: ${String(why)}`);
    client.close();
  }
});

test('results end in a typed error or continue, whatever the server sends', async () => {
  for (let seed = 1; seed <= 60; seed++) {
    const { server, client, state } = strange(seed, /:wait$/);
    state.bad = true;
    const id = server.enqueue({ type: 'work' });
    const end = client.result(id).catch((error: Error) => error.name);
    await server.clock.advance(20_000);
    assert.ok(state.requests < 3000, `seed ${seed}: ${state.requests} requests in 20 s`);
    state.bad = false;
    server.cancel(id);
    const name = await server.finish(end, `seed ${seed}: its end`);
    assert.ok(['ApiError', 'AnswerError', 'TaskFailed'].includes(name as string), `seed ${seed}: ${String(name)}`);
    client.close();
  }
});
