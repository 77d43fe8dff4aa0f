import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import test from 'node:test';
import { Client, type ClientOptions } from 'lubdub';
import { FakeServer } from 'lubdub/testing';
import { eachUntilAborted, untilAborted } from '../dist/abort.js';
import { answer, carrier } from './helpers.js';

const never = new Promise<never>(() => {});
const enough = new Error('enough');
const busy = answer.bind(undefined, 503, { error: 'store_unavailable', message: 'no' });
const newTask = { queue: 'q', type: 'x' };

/** Waits until a call can go no further, ends its signal, and checks that it ends at once and leaves nothing. */
async function abort(call: (client: Client, signal: AbortSignal) => Promise<unknown>, client: Client, isReady: () => boolean) {
  const ending = new AbortController();
  const { signal } = ending;
  const outcome = call(client, signal).catch((error: unknown) => error);
  while (!isReady()) await new Promise((resolve) => setImmediate(resolve));
  ending.abort(enough);
  assert.equal(await outcome, enough);
  assert.equal(getEventListeners(signal, 'abort').length, 0);
  assert.equal(getEventListeners(client.caller.closing, 'abort').length, 0);
}

/** A client whose clock does not move, and a counter of its pauses before retries. */
function still(options: ClientOptions) {
  const { clock } = new FakeServer();
  const setTimeout = clock.setTimeout.bind(clock);
  const pauses = { count: 0 };
  clock.setTimeout = (f, ms) => {
    if (ms < 10_000) pauses.count++; // not the timeout of an answer
    return setTimeout(f, ms);
  };
  return { client: new Client('http://127.0.0.1:1', { token: 'tok', clock, ...options }), pauses };
}

async function drain(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items);
}

const calls: Record<string, (client: Client, signal: AbortSignal) => Promise<unknown>> = {
  getTask: (client, signal) => client.getTask('t', { signal }),
  enqueue: (client, signal) => client.enqueue('q', 'x', 1, { signal }),
  createTasks: (client, signal) => client.createTasks([newTask], { signal }),
  enqueueMany: (client, signal) => drain(client.enqueueMany([newTask], { signal })),
  tasks: (client, signal) => drain(client.tasks({}, { signal })),
  events: (client, signal) => drain(client.events({}, { signal })),
  result: (client, signal) => client.result('t', { signal }),
};

for (const [name, call] of Object.entries(calls)) {
  test(`${name} ends with its signal before it is sent, in flight, in the pause before a retry, and while it gets a token`, async () => {
    const { fetch: ignores, seen } = carrier(() => never); // a transport that ignores signals
    const { client } = still({ fetch: ignores });
    await assert.rejects(call(client, AbortSignal.abort(enough)), enough);
    assert.equal(seen.length, 0);
    await abort(call, client, () => seen.length === 1);

    const unavailable = carrier(() => busy());
    const { client: retrying, pauses } = still({ fetch: unavailable.fetch });
    await abort(call, retrying, () => pauses.count === 1);
    assert.equal(unavailable.seen.length, 1);

    let asked = 0;
    const tokenFunc = () => (asked++, never);
    await abort(call, still({ token: undefined, tokenFunc, fetch: ignores }).client, () => asked === 1);
    assert.equal(seen.length, 1);
  });
}

test('enqueueMany ends while it waits for the next task, and createTasks while some are created again', async () => {
  const { fetch, seen } = carrier((one) => {
    const { tasks } = JSON.parse(one.body!) as { tasks: object[] };
    return answer(200, { results: tasks.map((_, i) => ({ status: i ? 503 : 201 })) });
  });
  const { client, pauses } = still({ fetch });
  let asked = 0;
  const source = { [Symbol.asyncIterator]: () => ({ next: () => (asked++, never) }) };
  await abort(
    (_, signal) => drain(client.enqueueMany(source, { signal })),
    client,
    () => asked === 1,
  );
  assert.equal(seen.length, 0);
  await abort(
    (_, signal) => client.createTasks([newTask, newTask], { signal }),
    client,
    () => pauses.count === 1,
  );
  assert.equal(seen.length, 1);
});

async function listening(server: Server) {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket)).on('error', () => {});
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const gone = async () => {
    while (sockets.size > 0) await new Promise((resolve) => setImmediate(resolve));
  };
  return { url, gone };
}

test('a call that ends with its signal closes its socket: of a server, of a stream, and of a proxy that does not answer', async (t) => {
  let requests = 0;
  const server = createServer((req, res) => {
    requests++;
    if (req.url!.startsWith('/v1/events')) res.writeHead(200).write(': alive\n\n');
  });
  server.on('connect', (_, socket) => {
    requests++;
    socket.resume().once('end', () => socket.end());
  });
  const { url, gone } = await listening(server);
  t.after(() => server.close());
  const direct = new Client(url, { token: 'tok' });
  const proxied = new Client('https://lubdub.test', { token: 'tok', proxy: url });
  for (const [client, name] of [
    [direct, 'getTask'],
    [direct, 'events'],
    [proxied, 'getTask'],
  ] as const) {
    requests = 0;
    await abort(calls[name]!, client, () => requests === 1);
    await gone();
  }
  direct.close();
  proxied.close();
});

test('a call through a proxy that ends with its signal closes its socket during the TLS handshake', async (t) => {
  let isHello = false;
  const server = createServer().on('connect', (_, socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    socket.once('data', () => (isHello = true)).once('end', () => socket.end());
  });
  const { url, gone } = await listening(server);
  t.after(() => server.close());
  const client = new Client('https://lubdub.test', { token: 'tok', proxy: url });
  await abort(calls['getTask']!, client, () => isHello);
  await gone();
  client.close();
});

test('a completion ends with its signal while it waits for the start, and for a heartbeat in flight', async () => {
  for (const waitsFor of ['/started', '/v1/heartbeats']) {
    const server = new FakeServer();
    const client = new Client(server.url, server.options());
    let waits = false;
    server.intercept((request) => (request.path.endsWith(waitsFor) ? ((waits = true), never) : undefined));
    const attempt = client.track(server.push());
    await server.until('it waits', () => waits);
    const ending = new AbortController();
    const outcome = attempt.complete({ outcome: 'SUCCEEDED' }, { signal: ending.signal }).catch((error: unknown) => error);
    for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
    ending.abort(enough);
    assert.equal(await outcome, enough);
    assert.equal(getEventListeners(ending.signal, 'abort').length, 0);
    client.close();
  }
});

test('what is iterated until a signal ends leaves no listeners on it', async () => {
  const { signal } = new AbortController();
  for await (const n of eachUntilAborted([1, 2, 3], signal)) assert.equal(getEventListeners(signal, 'abort').length, 0, String(n));
  assert.equal(await untilAborted(signal, () => 1), 1);
  await assert.rejects(
    untilAborted(signal, () => Promise.reject(enough)),
    enough,
  );
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});
