import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { Worker as Thread } from 'node:worker_threads';
import { Client } from 'lubdub';

interface Beat {
  taskId: string;
  progressPct?: number;
}

/** A server for real sockets that notes who beats when. */
async function listening(hears: () => boolean = () => true) {
  const calls: { path: string; body: string; at: number }[] = [];
  const server = createServer(async (req: IncomingMessage, res) => {
    let body = '';
    for await (const part of req) body += String(part);
    calls.push({ path: req.url!, body, at: Date.now() });
    if (req.url === '/v1/heartbeats' && !hears()) return void req.socket.destroy();
    const serverTime = new Date().toISOString();
    const { heartbeats = [] } = JSON.parse(body) as { heartbeats?: Beat[] };
    res.end(JSON.stringify({
      acknowledged: true, serverTime, finalState: 'SUCCEEDED',
      results: heartbeats.map(({ taskId }) => ({ taskId, status: 200, acknowledged: true, shouldCancel: false, nextHeartbeatMs: 100 })),
    }));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  const now = new Date();
  const envelope = {
    taskId: 'task_1', attempt: 1, taskToken: 'tok', callbackBaseUrl: url, heartbeatIntervalMs: 100, heartbeatTimeoutMs: 300,
    enqueuedAt: now.toISOString(), tokenExpiresAt: new Date(now.getTime() + 3_600_000).toISOString(),
  };
  return { calls, url, close, envelope };
}

async function run(url: string, script: string, ...args: string[]): Promise<{ code: number; out: string }> {
  const child = spawn(process.execPath, [fileURLToPath(new URL(script, import.meta.url)), ...args], {
    env: { ...process.env, LUBDUB_URL: url }, stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.on('data', (part: Buffer) => void (out += part.toString()));
  const code = await new Promise<number>((resolve) => child.once('close', resolve));
  return { code, out };
}

for (const [beats, alive] of [['thread', true], ['inline', false]] as const) {
  test(`a program that blocks its event loop for three timeouts ${alive ? 'beats on' : 'with beats: inline does not'}`, async () => {
    const { calls, url, close, envelope } = await listening();
    const { code, out } = await run(url, './children/spin.js', JSON.stringify(envelope), '900', beats, 'patient');
    close();
    assert.equal(code, 0);
    assert.equal((JSON.parse(out) as { finalState: string }).finalState, 'SUCCEEDED');
    const sent = calls.filter((c) => c.path === '/v1/heartbeats');
    assert.equal(sent.length >= 5, alive, `${sent.length} beats in nine intervals`);
    if (!alive) return;
    const told = sent.map((c) => (JSON.parse(c.body) as { heartbeats: Beat[] }).heartbeats[0]!.progressPct).filter((p) => p !== undefined);
    assert.ok(told.length >= 2, 'progress went with them');
    assert.equal(calls.at(-1)!.path, '/v1/tasks/task_1/completed');
  });
}

test('a strict lease that ended while the event loop was blocked has ended, though a server answers again', async () => {
  let since = 0;
  const { calls, url, close, envelope } = await listening(() => {
    since ||= Date.now();
    return Date.now() - since < 50 || Date.now() - since > 600;
  });
  const { out } = await run(url, './children/spin.js', JSON.stringify(envelope), '1200', 'thread', 'strict');
  close();
  assert.deepEqual(JSON.parse(out), { failed: 'LeaseEnded' });
  assert.ok(!calls.some((c) => c.path.endsWith('/completed')));
});

test('beats go on from the event loop should the thread die', async () => {
  const { calls, url, close, envelope } = await listening();
  const told: string[] = [];
  const logger = { debug() {}, info() {}, warn() {}, error: (m: string) => void told.push(m) };
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
  assert.equal(told.length, 1);
  await attempt.done();
  assert.equal(calls.at(-1)!.path, '/v1/tasks/task_1/completed');
  client.close();
  close();
});
