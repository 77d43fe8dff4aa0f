import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, hasCode, type NewTask, UsageError } from 'lubdub';
import { FakeServer } from 'lubdub/testing';
import { answer, carrier } from './helpers.js';

const here = 'http://127.0.0.1:1';

interface Sent {
  queue: string;
  type: string;
  payload: unknown;
  idempotencyKey: string;
}

test('enqueue sends any payload, native times and an idempotency key', async () => {
  const { fetch, seen } = carrier(() => answer(201, { taskId: 't1', queue: 'mail', state: 'QUEUED' }));
  const { clock } = new FakeServer();
  const client = new Client(here, { token: 'tok', fetch, clock });
  const deadline = new Date(clock.wall() + 3_600_000);
  const task = await client.enqueue(
    'mail',
    'send_email',
    { to: 'a@example.com' },
    { delayMs: 60_000, deadline, traceparent: 'tp', labels: { team: 'billing' } },
  );
  assert.equal(task.taskId, 't1');
  assert.deepEqual(JSON.parse(seen[0]!.body!), {
    queue: 'mail',
    type: 'send_email',
    payload: { to: 'a@example.com' },
    labels: { team: 'billing' },
    delayMs: 60_000,
    deadline: deadline.toISOString(),
  });
  await client.enqueue('mail', 'send_email', undefined, { idempotencyKey: 'k' });
  assert.equal(seen[0]!.headers['Traceparent'], 'tp');
  const keys = seen.map((one) => one.headers['Idempotency-Key']);
  assert.ok(keys[0] && keys[1] === 'k', keys.join(' '));
  await assert.rejects(client.enqueue('', 'send_email'), UsageError);
  await assert.rejects(client.enqueue('mail', 'send_email', 1n), TypeError);
  assert.equal(seen.length, 2);
});

test('a start time is sent as it was given, so that a repeat is the same request', async () => {
  const { fetch, seen } = carrier(() => answer(201, { taskId: 't1', queue: 'mail', state: 'SCHEDULED' }));
  const { clock } = new FakeServer();
  const client = new Client(here, { token: 'tok', fetch, clock });
  const at = new Date(clock.wall() + 60_000);
  const times = [{ delayMs: 60_000 }, { delayMs: 0 }, { runAt: at }, { runAt: '2026-01-01T00:00:00+02:00' }, { notBefore: at }];
  for (const time of times) {
    await client.enqueue('mail', 'send_email', undefined, { idempotencyKey: 'k', ...time });
    await clock.advance(1000);
    await client.enqueue('mail', 'send_email', undefined, { idempotencyKey: 'k', ...time });
    const [first, second] = seen.splice(0).map((one) => one.body!);
    assert.equal(second, first);
    assert.deepEqual(JSON.parse(first!), { queue: 'mail', type: 'send_email', ...JSON.parse(JSON.stringify(time)) });
  }
  await client.enqueue('mail', 'send_email', undefined, { delayMs: -5.5 }); // until a time that has passed
  assert.equal(JSON.parse(seen.pop()!.body!).delayMs, 0);
});

test('enqueueMany yields one result for each task, in order', async () => {
  const batches: Sent[][] = [];
  const keys = new Set<string>();
  let refusing = true;
  const times = new Map<string, number>();
  const { fetch } = carrier((one) => {
    const { tasks } = JSON.parse(one.body!) as { tasks: Sent[] };
    batches.push(tasks);
    assert.ok(tasks.length <= 1000 && one.body!.length < 4 << 20);
    return answer(200, {
      results: tasks.map(({ type, idempotencyKey }) => {
        times.set(type, (times.get(type) ?? 0) + 1);
        if (type === '1500') keys.add(idempotencyKey);
        if (refusing && type === '3') return { status: 409, error: 'task_exists', message: 'it exists' };
        if (type === '1500' && times.get(type) === 1) return { status: 503, error: 'store_unavailable', message: 'again' };
        return { status: 201, taskId: type, queue: 'q', state: 'QUEUED' };
      }),
    });
  });
  const client = new Client(here, { token: 'tok', fetch });
  function* numbered(n: number, payload?: unknown): Generator<NewTask> {
    for (let i = 0; i < n; i++) yield { queue: 'q', type: String(i), payload: i === 7 && payload === undefined ? 1n : payload };
  }
  let n = 0;
  for await (const { task, error } of client.enqueueMany(numbered(2500))) {
    if (n === 3) assert.ok(hasCode(error, 'task_exists'));
    else if (n === 7) assert.ok(error instanceof TypeError);
    else assert.equal(task?.taskId, String(n), String(error));
    n++;
  }
  assert.equal(n, 2500);
  assert.deepEqual(
    batches.map((tasks) => tasks.length),
    [999, 1000, 1, 500],
  );
  assert.equal(keys.size, 1, 'a task that is sent again keeps its key');
  batches.length = 0;
  refusing = false;
  for await (const { error } of client.enqueueMany(numbered(50, 'x'.repeat(200 << 10)))) assert.equal(error, undefined);
  assert.deepEqual(
    batches.map((tasks) => tasks.length),
    [10, 10, 10, 10, 10],
  );
  batches.length = 0;
  for await (const { error } of client.enqueueMany(numbered(5000, null))) {
    assert.equal(error, undefined);
    break;
  }
  assert.equal(batches.length, 1, 'the loop ended at its first result');
});

test('what was created stays known if the rest is refused, and the loop ends with its signal', async () => {
  let batches = 0;
  const enough = new AbortController();
  const { fetch } = carrier((one) => {
    const { tasks } = JSON.parse(one.body!) as { tasks: Sent[] };
    for (const { type, payload } of tasks) assert.deepEqual(payload, { n: Number(type) }, 'as it was when the task was given');
    if (++batches === 2) return answer(403, { error: 'forbidden', message: 'no' });
    const results = tasks.map(({ type }) =>
      type === '1' && batches === 1
        ? { status: 503, error: 'store_unavailable', message: 'again' }
        : { status: 201, taskId: type, queue: 'q', state: 'QUEUED' },
    );
    return answer(200, { results });
  });
  const client = new Client(here, { token: 'tok', fetch });
  const payload = { n: 0 };
  function* changing(n: number): Generator<NewTask> {
    for (let i = 0; i < n; i++) yield { queue: 'q', type: String(i), payload: Object.assign(payload, { n: i }) };
  }
  const found: unknown[] = [];
  for await (const { task, error } of client.enqueueMany(changing(3)))
    found.push(task?.taskId ?? (hasCode(error, 'store_unavailable') && 503));
  assert.deepEqual(found, ['0', 503, '2']);
  let n = 0;
  const created = async () => {
    for await (const _ of client.enqueueMany(changing(5000), { signal: enough.signal })) {
      enough.abort(new Error('enough'));
      n++;
    }
  };
  await assert.rejects(created, /enough/);
  assert.equal(n, 1000);
});

test('a batch that fails gives its error to each of its tasks', async () => {
  const { fetch } = carrier(() => answer(403, { error: 'forbidden', message: 'no' }));
  const refused: unknown[] = [];
  const tasks = [
    { queue: 'q', type: 'a' },
    { queue: '', type: 'b' },
    { queue: 'q', type: 'c' },
  ];
  for await (const { error } of new Client(here, { token: 'tok', fetch }).enqueueMany(tasks)) refused.push(error);
  assert.ok(hasCode(refused[0], 'forbidden') && refused[1] instanceof UsageError && hasCode(refused[2], 'forbidden'));
});
