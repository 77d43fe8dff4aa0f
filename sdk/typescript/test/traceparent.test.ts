import assert from 'node:assert/strict';
import test from 'node:test';
import { Client, type NewTask, Worker } from 'lubdub';
import { FakeServer } from 'lubdub/testing';
import { answer, carrier } from './helpers.js';

const ids = `${'a'.repeat(32)}-${'b'.repeat(16)}`;
const given = `00-${ids}-01`;

/** A client with the option, and the traceparents that it sends: of each request the header's, and those of the tasks. */
function begin(traceparent: () => string | undefined) {
  const sent: [string | undefined, unknown[]][] = [];
  const warnings: string[] = [];
  const logger = {
    debug() {},
    info() {},
    error() {},
    warn: (message: string, fields: object) => void warnings.push(message, fields as never),
  };
  const { clock } = new FakeServer();
  let n = 0;
  const { fetch } = carrier(({ body, headers }) => {
    const request = JSON.parse(body!) as { traceparent?: string; tasks?: { traceparent?: string }[] };
    sent.push([headers['Traceparent'], (request.tasks ?? [request]).map((task) => task.traceparent)]);
    const results = request.tasks?.map(() => (n++ === 0 ? { status: 503, error: 'overloaded' } : { status: 201, taskId: 't', queue: 'q' }));
    return answer(201, results ? { results } : { taskId: 't', queue: 'q' });
  });
  const client = new Client('http://127.0.0.1:1', { token: 'tok', fetch, clock, logger, traceparent });
  return { client, clock, sent, warnings };
}

test('tasks that are created without a trace context get that of the option, once for each request', async () => {
  let calls = 0;
  const traceparent = () => `00-${ids}-0${++calls}`;
  const s = begin(traceparent);
  const own = `00-${'c'.repeat(32)}-${'d'.repeat(16)}-00`;
  await s.client.enqueue('q', 'work');
  await s.client.enqueue('q', 'work', null, { traceparent: own });
  await s.client.createTask({ type: 'work' });
  await s.client.createTask({ type: 'work', traceparent: own });
  await s.client.createTask({ type: 'work' }, { traceparent: own });
  assert.deepEqual(s.sent.splice(0), [
    [`00-${ids}-01`, [undefined]],
    [own, [undefined]],
    [`00-${ids}-02`, [undefined]],
    [undefined, [own]],
    [own, [undefined]],
  ]);
  const batch = s.client.createTasks([
    { type: 'work', queue: 'q' },
    { type: 'work', queue: 'q', traceparent: own },
  ]);
  await s.clock.until('the first is created again', () => s.sent.length === 2);
  await batch;
  assert.deepEqual(s.sent.splice(0), [
    [`00-${ids}-03`, [undefined, own]],
    [`00-${ids}-03`, [undefined]],
  ]);
  const tasks: NewTask[] = [{ queue: 'q', type: 'work', traceparent: own }];
  for await (const { error } of s.client.enqueueMany(tasks)) assert.equal(error, undefined);
  assert.deepEqual(s.sent, [[undefined, [own]]]);
  assert.equal(calls, 3);
});

test('what is not a W3C traceparent is not sent', async () => {
  const zeros = (text: string, ...parts: number[]) =>
    text
      .split('-')
      .map((part, i) => (parts.includes(i) ? '0'.repeat(part.length) : part))
      .join('-');
  const valid = [given, `01-${ids}-03`, `01-${ids}-01-more`, zeros(given, 0, 3)];
  const invalid = [
    undefined,
    '',
    'x',
    given.toUpperCase(),
    `${given}-more`,
    `${given} `,
    `\n${given}`,
    `01-${ids}-01more`,
    `ff-${ids}-01`,
    zeros(given, 1),
    zeros(given, 2),
    given.slice(1),
    `01-${ids}-01-${'x'.repeat(500)}`,
    Promise.resolve(given),
  ];
  for (const value of [...valid, ...invalid]) {
    const s = begin(() => value as string);
    await s.client.enqueue('q', 'work');
    assert.deepEqual(s.sent, [[valid.includes(value as string) ? value : undefined, [undefined]]], String(value));
    assert.deepEqual(s.warnings, []);
  }
});

test('an error of the option is logged once, and the tasks are created', async () => {
  const s = begin(() => {
    throw new Error('no tracer');
  });
  for (let i = 0; i < 3; i++) await s.client.enqueue('q', 'work');
  assert.deepEqual(s.sent, Array(3).fill([undefined, [undefined]]));
  assert.deepEqual(s.warnings, ['The option traceparent has thrown an error; tasks are created without a trace', { error: 'no tracer' }]);
});

test('the handler of a task reads its traceparent', async () => {
  const server = new FakeServer();
  const client = new Client(server.url, { ...server.options(), traceparent: () => given });
  const worker = new Worker('default', { client }).handle('work', (task) => task.traceparent);
  const running = worker.run();
  const { taskId } = await client.enqueue('default', 'work');
  await server.until('it is done', () => server.isOver(taskId));
  assert.equal(server.task(taskId).output, given);
  worker.close();
  await server.finish(running);
  client.close();
});
