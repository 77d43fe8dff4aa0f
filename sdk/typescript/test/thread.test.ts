import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { Worker as Thread } from 'node:worker_threads';
import { Client } from 'lubdub';

interface Beat {
  taskId: string;
  progressPct?: number;
}

/** A server on real sockets that records heartbeats. */
async function listening(answers: () => boolean = () => true) {
  const calls: { path: string; body: string; at: number }[] = [];
  const server = createServer(async (req: IncomingMessage, res) => {
    let body = '';
    for await (const part of req) body += String(part);
    calls.push({ path: req.url!, body, at: Date.now() });
    if (req.url === '/v1/heartbeats' && !answers()) return void req.socket.destroy();
    const serverTime = new Date().toISOString();
    const { heartbeats = [] } = JSON.parse(body) as { heartbeats?: Beat[] };
    res.end(
      JSON.stringify({
        acknowledged: true,
        serverTime,
        finalState: 'SUCCEEDED',
        results: heartbeats.map(({ taskId }) => ({ taskId, status: 200, acknowledged: true, shouldCancel: false, nextHeartbeatMs: 100 })),
      }),
    );
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  const now = new Date();
  const envelope = {
    taskId: 'task_1',
    attempt: 1,
    taskToken: 'tok',
    callbackBaseUrl: url,
    heartbeatIntervalMs: 100,
    heartbeatTimeoutMs: 300,
    enqueuedAt: now.toISOString(),
    tokenExpiresAt: new Date(now.getTime() + 3_600_000).toISOString(),
  };
  return { calls, url, close, envelope };
}

/** Runs a program that blocks; `blocked` resolves when it does, and `release` unblocks it. Returns its last output. */
function block(url: string, ...args: string[]) {
  const file = join(mkdtempSync(join(tmpdir(), 'lubdub-')), 'go');
  const [envelope, ...rest] = args;
  const script = fileURLToPath(new URL('./children/spin.js', import.meta.url));
  const child = spawn(process.execPath, [script, envelope!, file, ...rest], {
    env: { ...process.env, LUBDUB_URL: url },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  const blocked = new Promise<void>((resolve) =>
    child.stdout.on('data', (part: Buffer) => {
      out += part.toString();
      if (out.startsWith('blocked')) resolve();
    }),
  );
  const over = new Promise<object>((resolve) => child.once('close', () => resolve(JSON.parse(out.split('\n')[1]!) as object)));
  return { blocked, release: () => writeFileSync(file, ''), over };
}

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const beatsOf = (calls: { path: string }[]) => calls.filter((c) => c.path === '/v1/heartbeats').length;

test('a program that blocks its event loop for three timeouts keeps sending heartbeats with progress', async () => {
  const { calls, url, close, envelope } = await listening();
  const child = block(url, JSON.stringify(envelope), 'thread', 'patient');
  await child.blocked;
  const before = beatsOf(calls);
  for (const start = Date.now(); Date.now() - start < 900 || beatsOf(calls) < before + 9;) await wait(10);
  child.release();
  assert.deepEqual(((await child.over) as { finalState: string }).finalState, 'SUCCEEDED');
  close();
  const beats = calls.filter((c) => c.path === '/v1/heartbeats').map((c) => JSON.parse(c.body) as { heartbeats: Beat[] });
  assert.ok(beats.filter((b) => b.heartbeats[0]!.progressPct !== undefined).length >= 2, 'progress went with them');
  assert.equal(calls.at(-1)!.path, '/v1/tasks/task_1/completed');
});

test('with beats: inline it sends none', async () => {
  const { calls, url, close, envelope } = await listening();
  const child = block(url, JSON.stringify(envelope), 'inline', 'patient');
  await child.blocked;
  const before = beatsOf(calls);
  await wait(900);
  assert.ok(beatsOf(calls) <= before + 1, `${beatsOf(calls) - before} beats while it is blocked`); // one may have been in flight
  child.release();
  await child.over;
  close();
});

test('a strict lease that ended while the event loop was blocked has ended, though a server answers again', async () => {
  let deaf = false;
  const { calls, url, close, envelope } = await listening(() => !deaf);
  const heartbeatTimeoutMs = 2000; // long enough that a busy machine does not exceed it before the program is blocked
  const child = block(url, JSON.stringify({ ...envelope, heartbeatTimeoutMs }), 'thread', 'strict');
  await child.blocked;
  deaf = true;
  await wait(1.5 * heartbeatTimeoutMs);
  deaf = false;
  await wait(400);
  child.release();
  assert.deepEqual(await child.over, { failed: 'LeaseEnded' });
  close();
  assert.ok(!calls.some((c) => c.path.endsWith('/completed')));
});

test('heartbeats continue from the event loop if the thread dies', async () => {
  const { calls, url, close, envelope } = await listening();
  const errors: string[] = [];
  const logger = { debug() {}, info() {}, warn() {}, error: (m: string) => void errors.push(m) };
  const client = new Client(url, { logger });
  const threads: Thread[] = [];
  const postMessage = Thread.prototype.unref;
  Thread.prototype.unref = function (this: Thread) {
    threads.push(this);
    return postMessage.call(this);
  };
  const attempt = client.track(envelope as never);
  await attempt.started;
  Thread.prototype.unref = postMessage;
  while (calls.length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
  await threads[0]!.terminate();
  const before = calls.length;
  while (calls.length < before + 3) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(errors.length, 1);
  await attempt.done();
  assert.equal(calls.at(-1)!.path, '/v1/tasks/task_1/completed');
  client.close();
  close();
});
