import assert from 'node:assert/strict';
import test from 'node:test';
import {
  type Attempt,
  Cancelled,
  categorize,
  Client,
  type ClientOptions,
  ClosedError,
  DeadlineExceeded,
  EndedError,
  Expired,
  Failure,
  LeaseEnded,
  Lost,
  OutputError,
  permanent,
  StoppedError,
  Superseded,
  UnansweredError,
  UsageError,
} from 'lubdub';
import { FakeServer } from 'lubdub/testing';

const beats = { heartbeatIntervalMs: 10_000, heartbeatTimeoutMs: 30_000 };

function begin(options: ClientOptions = {}) {
  const server = new FakeServer();
  const client = new Client(server.url, { ...server.options(), ...options });
  const bodies = (path: string) => server.requests.filter((r) => r.path.endsWith(path)).map((r) => r.body);
  const named = () =>
    server.requests
      .filter((r) => r.path === '/v1/heartbeats')
      .map((r) => (JSON.parse(r.body) as { heartbeats: { taskId: string; progressPct?: number; message?: string }[] }).heartbeats);
  const track = async (request = {}, more = {}): Promise<Attempt> => {
    const attempt = client.track(server.push({ ...beats, ...request }), more);
    await attempt.started;
    return attempt;
  };
  return { server, client, bodies, named, track };
}

test('an attempt is reported as started, sends heartbeats at once and then at the interval, and ends with its completion', async () => {
  const { server, client, named, track } = begin();
  const attempt = await track();
  await server.clock.advance(0);
  assert.equal(named().length, 1);
  await server.clock.advance(60_000);
  assert.ok(named().length >= 6 && named().length <= 9, String(named().length));
  const answer = await server.finish(attempt.done({ rows: 3 }));
  assert.equal(answer.finalState, 'SUCCEEDED');
  assert.deepEqual(server.task(attempt.taskId).output, { rows: 3 });
  const sent = named().length;
  await server.clock.advance(60_000);
  assert.equal(named().length, sent);
  assert.ok(attempt.signal.reason instanceof EndedError);
  await assert.rejects(attempt.done(), EndedError);
  await assert.rejects(attempt.fail(new Error('x')), EndedError);
  assert.throws(() => attempt.progress(1), EndedError);
  client.close();
});

test('the attempts of a process share one request per tick', async () => {
  const { server, client, named } = begin();
  const all: Attempt[] = [];
  for (let i = 0; i < 12; i++) {
    const some = Array.from({ length: 100 }, () => client.track(server.push(beats)));
    await Promise.all(some.map((a) => a.started));
    all.push(...some);
    await server.clock.advance(700);
  }
  await server.clock.advance(40_000);
  const before = named().length;
  await server.clock.advance(100_000);
  const since = named().slice(before);
  assert.ok(since.length <= 2 * 12, `${since.length} requests in ten ticks`);
  assert.ok(since.every((r) => r.length <= 1000));
  for (const attempt of all) assert.equal(server.task(attempt.taskId).state, 'RUNNING');
  client.close();
});

test('progress replaces unsent values, is sent with a heartbeat, and the last value before the completion', async () => {
  const { server, client, named, bodies, track } = begin();
  const attempt = await track();
  await server.clock.advance(0);
  for (let i = 0; i <= 50; i++) attempt.progress(i, `step ${i}`);
  await server.clock.advance(10_000);
  const logged = named()
    .flat()
    .filter((b) => b.progressPct !== undefined);
  assert.deepEqual(
    logged.map((b) => [b.progressPct, b.message]),
    [[50, 'step 50']],
  );
  await server.clock.advance(20_000);
  assert.equal(
    named()
      .flat()
      .filter((b) => b.progressPct !== undefined).length,
    1,
    'acknowledged progress is not sent again',
  );
  attempt.progress(99, 'nearly');
  await server.finish(attempt.done());
  assert.deepEqual(
    bodies('/heartbeat').map((b) => (JSON.parse(b) as { progressPct: number }).progressPct),
    [99],
  );
  assert.deepEqual([server.task(attempt.taskId).progressPct, server.task(attempt.taskId).message], [99, 'nearly']);
  const again = await track();
  assert.throws(() => again.progress(101), UsageError);
  assert.throws(() => again.progress(Number.NaN), UsageError);
  again.progress(1, 'ä"'.repeat(1000));
  await server.clock.advance(10_000);
  const message = server.task(again.taskId).message!;
  assert.ok(Buffer.byteLength(JSON.stringify(message)) - 2 <= 1024 && message.length > 500);
  client.close();
});

test('a cancel reaches the signal with its reason, and the completion reports it', async () => {
  const { server, client, track } = begin();
  const [one, two, three, four] = await Promise.all([track(), track(), track(), track()]);
  for (const attempt of [one, two, three, four]) server.cancel(attempt.taskId, 'enough');
  await server.until('it is cancelled', () => four.signal.aborted);
  assert.ok(one.signal.reason instanceof Cancelled && one.signal.reason.reason === 'enough');
  await server.clock.advance(5000);
  await server.finish(one.fail(one.signal.reason));
  await server.finish(two.fail(new StoppedError('loading', { row: 7 })));
  await server.finish(three.done('in spite of it'));
  await server.finish(four.fail(new DOMException('x', 'AbortError')));
  assert.equal(server.task(one.taskId).state, 'CANCELLED');
  const stopped = server.task(two.taskId);
  assert.deepEqual([stopped.state, stopped.phase, stopped.partial], ['CANCELLED', 'loading', { row: 7 }]);
  assert.equal(server.task(three.taskId).state, 'SUCCEEDED');
  assert.equal(server.task(four.taskId).state, 'CANCELLED');
  client.close();
});

test('each kind of end aborts the signal with its own reason, and nothing more is sent', async () => {
  const { server, client, track } = begin();
  const ended: [(id: string) => void, new (...all: never[]) => Error, object][] = [
    [(id) => void server.supersede(id), Superseded, { by: 2 }],
    [(id) => server.end(id, 'HEARTBEAT_TIMEOUT'), Expired, { reason: 'HEARTBEAT_TIMEOUT' }],
    [(id) => server.end(id, 'DEADLINE_EXCEEDED'), DeadlineExceeded, {}],
    [(id) => server.end(id, ''), Lost, { state: 'FAILED' }],
  ];
  for (const [act, kind, fields] of ended) {
    const attempt = await track();
    act(attempt.taskId);
    await server.until('it has ended', () => attempt.signal.aborted);
    const reason = attempt.signal.reason as Error & Record<string, unknown>;
    assert.ok(reason instanceof kind, String(reason));
    for (const [name, value] of Object.entries(fields)) assert.equal(reason[name], value);
    const sent = server.requests.length;
    await assert.rejects(attempt.done(), kind);
    await server.clock.advance(60_000);
    assert.equal(server.requests.length, sent);
  }
  client.close();
});

test('started rejects attempts that must not start, and cancelled ones are not started', async () => {
  const { server, client } = begin();
  const envelope = server.push(beats);
  server.supersede(envelope.taskId);
  const attempt = client.track(envelope);
  await assert.rejects(attempt.started, Superseded);
  assert.ok(attempt.signal.aborted);
  await assert.rejects(attempt.done(), Superseded);
  const cancelled = server.push(beats);
  server.cancel(cancelled.taskId, 'too late');
  const answer = await client.run(cancelled, () => assert.fail('it began'));
  assert.equal(answer.finalState, 'CANCELLED');
  client.close();
});

test('a completion is repeated byte for byte until it is answered, and no beat comes after it', async () => {
  const { server, client, bodies, named, track } = begin();
  const attempt = await track();
  await server.clock.advance(0);
  const before = named().length;
  let cut = 0;
  server.loseAnswers((r) => r.path.endsWith('/completed') && ++cut <= 3);
  const completion = attempt.done([1, 2]);
  await assert.rejects(attempt.done(), EndedError);
  await server.until('it was tried', () => cut === 1);
  server.unavailable(7000);
  await server.clock.advance(60_000);
  server.up();
  assert.equal((await server.finish(completion)).finalState, 'SUCCEEDED');
  assert.equal(new Set(bodies('/completed')).size, 1);
  assert.ok(bodies('/completed').length >= 4);
  assert.equal(named().length, before);
  client.close();
});

test('a completion waits for the heartbeat in flight', async () => {
  const { server, client, bodies, track } = begin();
  const attempt = await track();
  let answered = () => {};
  server.intercept((r) => (r.path === '/v1/heartbeats' ? new Promise((resolve) => (answered = () => resolve(undefined))) : undefined));
  await server.clock.advance(0);
  const completion = attempt.done();
  await server.clock.advance(1000);
  assert.equal(bodies('/completed').length, 0);
  server.intercept(undefined);
  answered();
  assert.equal((await server.finish(completion)).finalState, 'SUCCEEDED');
  client.close();
});

test("a completion is given up when the attempt's token has expired", async () => {
  const { server, client, track } = begin();
  const attempt = await track();
  server.down();
  const start = server.clock.now();
  await assert.rejects(server.finish(attempt.done()), (e) => e instanceof UnansweredError && /its token has expired/.test(e.message));
  assert.ok(server.clock.now() - start > 3_500_000 && server.clock.now() - start <= 3_600_000);
  client.close();
});

test('a patient attempt continues through an outage and is live afterwards', async () => {
  const { server, client, named, track } = begin();
  const attempt = await track();
  await server.clock.advance(0);
  server.down();
  await server.clock.advance(200_000);
  assert.ok(!attempt.signal.aborted);
  const tries = named().length;
  assert.ok(tries > 50, `${tries} tries in 20 intervals, each within a quarter of one`);
  server.unavailable(9000);
  await server.clock.advance(90_000);
  assert.ok(named().length - tries <= 11, 'Retry-After is a floor');
  server.up();
  await server.clock.advance(20_000);
  assert.equal(server.task(attempt.taskId).state, 'RUNNING');
  await server.finish(attempt.done());
  client.close();
});

test('a strict lease ends the work, counted from when the last accepted beat left', async () => {
  const { server, client, track } = begin({ lease: 'strict' });
  const attempt = await track();
  await server.clock.advance(25_000);
  const last = server.requests.filter((r) => r.path === '/v1/heartbeats').at(-1)!.atMs;
  server.down();
  await server.clock.advance(last + 29_990 - server.clock.now());
  assert.ok(!attempt.signal.aborted);
  await server.clock.advance(20);
  assert.ok(attempt.signal.reason instanceof LeaseEnded);
  const sent = server.requests.length;
  await assert.rejects(attempt.done(), LeaseEnded);
  await server.clock.advance(60_000);
  assert.equal(server.requests.length, sent);
  client.close();
});

test('a wait on the clock of tests advances it, however short the wait is', async () => {
  const { clock } = new FakeServer();
  await clock.advance(50_000.3);
  const start = clock.now();
  let over = -1;
  clock.setTimeout(() => (over = clock.now()), 1e-12);
  await clock.advance(1);
  assert.ok(over > start);
});

test('after the host has slept, a strict lease ends before anything else happens', async () => {
  const { server, client, track } = begin();
  const [strict, patient] = await Promise.all([track({}, { lease: 'strict' }), track()]);
  await server.clock.advance(0);
  server.clock.jump(31_000);
  assert.throws(() => strict.progress(50), LeaseEnded); // no timer has run yet
  assert.ok(strict.signal.aborted && !patient.signal.aborted);
  patient.progress(50);
  client.close();
});

test('a renewed token is used at once, for the completion too', async () => {
  const { server, client, named, track } = begin();
  const attempt = await track();
  const renewed = `task/${attempt.taskId}/1/new`;
  server.intercept((r) => {
    if (r.path !== '/v1/heartbeats') return undefined;
    const now = new Date(server.clock.wall());
    return {
      status: 200,
      body: {
        serverTime: now,
        results: [
          {
            taskId: attempt.taskId,
            status: 200,
            acknowledged: true,
            shouldCancel: false,
            nextHeartbeatMs: 4000,
            taskToken: renewed,
            serverTime: now.toISOString(),
            tokenExpiresAt: new Date(now.getTime() + 7_200_000).toISOString(),
          },
        ],
      },
    };
  });
  await server.clock.advance(0);
  server.intercept(undefined);
  const before = named().length;
  await server.clock.advance(4100);
  assert.equal(named().length, before + 1, 'the newest answer sets the interval');
  assert.equal((named().at(-1)![0] as { taskToken?: string }).taskToken, renewed);
  await server.finish(attempt.done());
  assert.equal(server.requests.at(-1)!.headers['Authorization'], 'Bearer ' + renewed);
  client.close();
});

test('a heartbeat that is rejected as malformed ends nothing and is logged once', async () => {
  const logged: string[] = [];
  const logger = { debug() {}, info() {}, warn() {}, error: (m: string) => void logged.push(m) };
  const { server, client, track } = begin({ logger });
  const attempt = await track();
  server.intercept((r) =>
    r.path === '/v1/heartbeats'
      ? { status: 200, body: { serverTime: '', results: [{ taskId: attempt.taskId, status: 403, error: 'forbidden', message: 'no' }] } }
      : undefined,
  );
  await server.clock.advance(50_000);
  assert.ok(!attempt.signal.aborted);
  assert.equal(logged.length, 1);
  client.close();
});

test('an error is reported as the contract requires', async () => {
  const { server, client } = begin();
  const envelope = () => server.push(beats);
  const failed = async (work: () => unknown) => {
    const one = envelope();
    await server.finish(client.run(one, work));
    return server.task(one.taskId);
  };
  const crash = await failed(() => Promise.reject(new TypeError('a bug')));
  assert.deepEqual(
    [crash.state, crash.error!.category, crash.error!.message, crash.error!.retryable],
    ['FAILED', 'USER_CODE', 'a bug', undefined],
  );
  assert.match(crash.error!.stackTrace!, /track\.test\.js/);
  const huge = await failed(() => {
    throw Object.assign(new Error('ä'.repeat(30_000)), { stack: 'ß'.repeat(30_000) });
  });
  assert.ok(Buffer.byteLength(huge.error!.stackTrace!) <= 16384 && Buffer.byteLength(huge.error!.message!) <= 16384);
  const completion = await failed(() => {
    throw permanent(categorize('DATA_QUALITY', new Error('bad row')));
  });
  assert.deepEqual(
    [completion.error!.category, completion.error!.message, completion.error!.retryable],
    ['DATA_QUALITY', 'bad row', false],
  );
  const plain = await failed(() => {
    throw new Failure('later', { category: 'INFRASTRUCTURE', retryable: true });
  });
  assert.deepEqual([plain.error!.category, plain.error!.retryable], ['INFRASTRUCTURE', true]);
  assert.equal((await failed(() => Promise.reject())).error!.category, 'USER_CODE');
  client.close();
});

test('an output that cannot be sent is detected first and fails the task without retry', async () => {
  const { server, client, bodies, track } = begin();
  const circle: Record<string, unknown> = {};
  circle['self'] = circle;
  for (const output of [circle, 1n, { n: Number.NaN }, () => 1, 'x'.repeat(300_000)]) {
    const attempt = await track();
    await assert.rejects(attempt.done(output), OutputError);
    assert.ok(!attempt.signal.aborted);
    attempt.abandon();
  }
  assert.equal(bodies('/completed').length, 0);
  const one = server.push(beats);
  await server.finish(client.run(one, () => circle));
  const { state, error } = server.task(one.taskId);
  assert.deepEqual([state, error!.category, error!.retryable], ['FAILED', 'USER_CODE', false]);
  assert.match(error!.message!, /not JSON/);
  client.close();
});

test('await using fails an uncompleted attempt at once', async () => {
  const { server, client } = begin();
  const left = server.push(beats);
  const done = server.push(beats);
  const cancelled = server.push(beats);
  {
    await using one = client.track(left);
    await using two = client.track(done);
    await two.done(1);
    one.progress(1);
    await using three = client.track(cancelled);
    await three.started;
    server.cancel(cancelled.taskId);
    await server.until('it is cancelled', () => three.signal.aborted);
  }
  assert.match(server.task(left.taskId).error!.message!, /without done\(\) or fail\(\)/);
  assert.equal(server.task(done.taskId).state, 'SUCCEEDED');
  assert.equal(server.task(cancelled.taskId).state, 'CANCELLED');
  client.close();
});

test("the previous attempt's progress, the trace context and the caller's signal are available", async () => {
  const { server, client, track } = begin();
  const first = await track({ traceparent: '00-1-2-01' });
  first.progress(40, 'half');
  await server.clock.advance(20_000);
  const mine = new AbortController();
  const second = client.track(server.supersede(first.taskId), { signal: mine.signal });
  await second.started;
  assert.deepEqual(second.lastProgress, { progressPct: 40, message: 'half' });
  assert.equal(second.traceparent, '00-1-2-01');
  assert.equal(first.lastProgress, undefined);
  mine.abort(new Error('mine'));
  assert.equal((second.signal.reason as Error).message, 'mine');
  await server.clock.advance(40_000);
  assert.equal(server.task(second.taskId).state, 'RUNNING');
  await server.finish(second.done());
  client.close();
});

test('closing the client ends its tracked attempts', async () => {
  const { client, track, server } = begin();
  const attempt = await track();
  client.close();
  assert.ok(attempt.signal.reason instanceof ClosedError);
  assert.throws(() => client.track(server.push(beats)), ClosedError);
  await assert.rejects(attempt.done(), ClosedError);
});

test('envelopes with impossible timeouts are rejected early', () => {
  const logged: string[] = [];
  const logger = { debug() {}, info() {}, error() {}, warn: (m: string) => void logged.push(m) };
  const { server, client } = begin({ logger });
  assert.throws(() => client.track({} as never), /not a task envelope/);
  const tight = server.push({ heartbeatIntervalMs: 10_000, heartbeatTimeoutMs: 15_000 });
  assert.throws(() => client.track(tight), /less than twice its interval/);
  const once = server.push(beats);
  client.track(once);
  assert.throws(() => client.track(once), /already tracked/);
  assert.throws(() => client.track({ ...server.push(beats), callbackBaseUrl: 'http://elsewhere.test' }), /callbackBaseUrl.*allowHttp/);
  client.track(server.push({ heartbeatIntervalMs: 1000, heartbeatTimeoutMs: 2000 }));
  assert.equal(logged.length, 1);
  client.close();
});

test('the endpoint of callbacks is determined once for all attempts', async () => {
  const server = new FakeServer();
  const { fetch, ...options } = server.options();
  let refused = 0;
  const client = new Client('http://127.0.0.1:2', {
    ...options,
    fetch: async (url, init) => {
      if (new URL(url).port !== '1') return fetch!(url, init);
      refused++;
      throw Object.assign(new Error('connection refused'), { code: 'ECONNREFUSED' });
    },
  });
  for (let i = 0; i < 20; i++) await server.finish(client.run(server.push(beats), () => i));
  assert.ok(refused <= 3, `${refused} calls went to a closed port`);
  client.close();
});

test('metrics of tracked attempts', async () => {
  const seen: Record<string, unknown[]> = {};
  const note =
    (name: string) =>
    (...all: unknown[]) =>
      void (seen[name] ??= []).push(all[0]);
  const { server, client, track } = begin({
    metrics: {
      beat: note('beat'),
      refused: note('refused'),
      leaseLeft: note('leaseLeft'),
      completed: note('completed'),
    },
  });
  const attempt = await track();
  await server.clock.advance(10_000);
  server.down();
  await server.clock.advance(10_000);
  server.up();
  await server.finish(attempt.done());
  const other = await track();
  server.end(other.taskId, 'RUN_TIMEOUT');
  await server.until('it has ended', () => other.signal.aborted);
  assert.deepEqual(seen['completed'], ['SUCCEEDED']);
  assert.deepEqual(seen['refused'], ['task_expired']);
  assert.ok(seen['beat']!.includes('ok') && seen['beat']!.includes('unanswered'));
  assert.ok((seen['leaseLeft'] as number[]).every((left) => left > 0.5 && left <= 1));
  client.close();
});
