// A Redis, a server with its simulated fleet (lubdub dev) below a base path, and two tenants for the tests. Nothing outlives the process.
import { spawn, execFileSync } from 'node:child_process';
import { createConnection, createServer } from 'node:net';
import http from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
export const binary = join(root, 'bin/lubdub');
const keys = 'test=' + Buffer.from('0123456789abcdef0123456789abcdef').toString('base64');

// freePort returns a port below the range for outgoing connections, so that no other process takes it first.
export const freePort = () =>
  new Promise((done) => {
    const s = createServer(),
      port = 21_000 + Math.floor(Math.random() * 10_000);
    s.once('error', () => done(freePort()));
    s.listen(port, '127.0.0.1', () => s.close(() => done(port)));
  });

export async function until(what, check, tries = 2400) {
  for (let i = 0; i < tries; i++) {
    const got = await check();
    if (got) return got;
    await new Promise((r) => setTimeout(r, 50));
  }
  throw new Error(`timed out waiting until ${what}`);
}

export function mint(role, tenant, workspace, subject = `${role}-of-tests`) {
  return execFileSync(
    binary,
    ['token', '--role', role, '--tenant', tenant, '--workspace', workspace, '--ttl', '1h', '--subject', subject],
    { env: { LUBDUB_SIGNING_KEYS: keys } },
  )
    .toString()
    .trim();
}

// redisCommands sends commands to Redis, and waits for all replies.
export function redisCommands(port, commands) {
  const bulk = (words) => `*${words.length}\r\n` + words.map((w) => `$${Buffer.byteLength(String(w))}\r\n${w}\r\n`).join('');
  return new Promise((done, failed) => {
    let text = '';
    const at = createConnection(port, '127.0.0.1', () => at.write(commands.map(bulk).join('') + bulk(['ECHO', 'done'])));
    at.on('data', (d) => {
      text += d;
      if (/\r\n-|^-/.test(text)) failed(new Error(text));
      else if (text.endsWith('done\r\n')) {
        at.end();
        done();
      }
    });
    at.on('error', failed);
  });
}

// anHour returns the commands that store a replica's reports of the last hour: its heartbeats rose, and some were refused.
function anHour() {
  const now = Math.floor(Date.now() / 10_000);
  return Array.from({ length: 358 }, (_, i) => {
    const beats = Math.round(9000 + 2500 * Math.sin(i / 40) + 300 * Math.sin(i * 1.7));
    return [
      'HSET',
      `lubdub:{0}:step:${now - 360 + i}`,
      'r:earlier',
      1,
      'beats',
      beats,
      'took:0.001',
      Math.round(beats * 0.98),
      'took:0.005',
      Math.round(beats * 0.02),
      'lag',
      40 + (i % 7),
      'claimed',
      1200,
      'claims:tasks',
      300,
      'claims:nothing',
      40,
      ...(i > 240 && i < 262 ? ['refused:overloaded', 30 * (262 - i)] : []),
      'told',
      1,
      ...['QUEUED', 'DISPATCHED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED'].flatMap((s) => [`tasks:${s}`, 1000 + i]),
      ...['ONLINE', 'DRAINING', 'OFFLINE'].flatMap((s) => [`workers:${s}`, 100, `machines:${s}`, 10]),
      ...['FRESH', 'LATE', 'LOST'].flatMap((s) => [`liveness:${s}`, 30]),
    ];
  });
}

// with has more flags for the server, redisWith for Redis.
export async function open({
  fleet = true,
  interval = '5s',
  tenants = ['acme', 'globex'],
  shards = 2,
  with: more = [],
  redisWith = [],
} = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'lubdub-ui-'));
  const children = [];
  const start = (command, args, env = process.env) => {
    const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    children.push(child);
    child.text = '';
    for (const out of [child.stdout, child.stderr])
      out.on('data', (d) => {
        child.text = (child.text + d).slice(-200_000);
      });
    return child;
  };
  const redisPort = await freePort();
  const redis = start('redis-server', ['--port', redisPort, '--bind', '127.0.0.1', '--save', '', '--dir', folder, ...redisWith]);
  await until('Redis is ready', () => redis.text.includes('Ready to accept'));
  await redisCommands(redisPort, anHour());
  const server = start(
    binary,
    [
      'dev',
      ...(fleet ? [] : ['--no-fleet']),
      '--redis',
      `redis://127.0.0.1:${redisPort}/0`,
      '--shards',
      String(shards),
      '--rate',
      '3',
      '--listen',
      '127.0.0.1:0',
      '--admin-listen',
      '127.0.0.1:0',
      '--public-url',
      'http://localhost/lubdub',
      '--worker-heartbeat-interval',
      interval,
      '--webhook-allow-cidrs',
      '127.0.0.0/8',
      '--redis-timeout',
      '3s',
      '--tenant-workers',
      '20000',
      ...more,
    ],
    { PATH: process.env.PATH, LUBDUB_SIGNING_KEYS: keys },
  );
  const [, dashboard] = await until('the server prints the address of the dashboard', () => /dashboard (\S+)/.exec(server.text));
  const origin = new URL(dashboard).origin,
    base = origin + '/lubdub';
  const admin = mint('admin', '*', '*');
  const call = async (method, path, body, token = admin) => {
    const res = await fetch(`${base}/v1/${path}`, {
      method,
      headers: { Authorization: 'Bearer ' + token, ...(body ? { 'Content-Type': 'application/json' } : {}) },
      body: body && JSON.stringify(body),
    });
    const text = await res.text();
    if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${text}`);
    return text && JSON.parse(text);
  };
  let timer;
  const close = async () => {
    stage.open = false;
    clearInterval(timer);
    receiver.close();
    for (const child of children.reverse()) {
      child.kill('SIGCONT');
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await new Promise((r) => child.once('exit', r));
    }
    rmSync(folder, { recursive: true, force: true });
  };
  const receiver = http.createServer((req, res) => {
    req.resume();
    res.end();
  });
  await new Promise((r) => receiver.listen(0, '127.0.0.1', r));

  const stage = {
    origin,
    base,
    dashboard,
    admin,
    call,
    close,
    redis,
    redisPort,
    server,
    folder,
    start, // starts another process, which ends with the stage
    open: true,
    scopes: {},
    hook: `http://127.0.0.1:${receiver.address().port}/`,
  };
  try {
    await Promise.all(
      tenants.map(async (tenant) => {
        stage.scopes[tenant] = await populate(call, tenant, tenant === 'globex' ? 'stage' : 'prod', stage.hook);
      }),
    );
  } catch (e) {
    await close();
    throw e;
  }
  const beat = () =>
    Promise.all(
      Object.values(stage.scopes).flatMap((s) =>
        s.beating.map((w) => call('POST', `workers/${w.workerId}/heartbeat`, { activeCount: 0 }, w.workerToken).catch(() => undefined)),
      ),
    );
  timer = setInterval(beat, 1500);
  return stage;
}

// crowd registers many workers and returns them.
export async function crowd(stage, at, n, machines, more) {
  const all = [];
  const one = async () => {
    for (let i = all.push(null) - 1; i < n; i = all.push(null) - 1) {
      all[i] = await stage.call('POST', `workers?${at}`, {
        queue: 'render',
        types: ['frame'],
        name: `node-${i}`,
        machineId: `rack-${String(i % machines).padStart(3, '0')}`,
        ...more?.(i),
      });
    }
  };
  await Promise.all(Array.from({ length: 32 }, one));
  return all.slice(0, n);
}

// die sends a task's heartbeats for a while and then stops. On a busy host it may be declared dead sooner.
async function die(call, w, t) {
  try {
    await call('POST', `tasks/${t.taskId}/started`, { attempt: t.attempt, workerId: w.workerId }, t.taskToken);
    for (const progressPct of [12, 38, 61]) {
      await call(
        'POST',
        `tasks/${t.taskId}/heartbeat`,
        { attempt: t.attempt, progressPct, message: `frame ${progressPct * 120} of 12000` },
        t.taskToken,
      );
      await new Promise((r) => setTimeout(r, 500));
    }
  } catch (e) {
    if (!/: 4\d\d /.test(e.message)) throw e;
  }
}

// populate creates objects of every kind in a scope.
async function populate(call, tenantId, workspaceId, url) {
  const at = `tenantId=${tenantId}&workspaceId=${workspaceId}`;
  const s = { at, tenantId, workspaceId, workers: [], beating: [], tasks: [] };
  for (let i = 0; i < 6; i++) {
    const w = await call('POST', `workers?${at}`, {
      queue: i < 4 ? 'mail' : 'video',
      types: [i < 4 ? 'send_email' : 'encode'],
      name: `${tenantId}-${i}`,
      machineId: `host-${i % 3}`,
      hostname: `host-${i % 3}`,
      pid: 100 + i,
      version: i % 2 ? '1.2.3' : '1.3.0',
      maxConcurrent: 10,
      labels: { region: i % 2 ? 'us' : 'eu' },
    });
    s.workers.push(w);
  }
  s.beating = s.workers.slice(0, 5);
  s.zombie = (
    await call('POST', `tasks?${at}`, {
      queue: 'video',
      type: 'encode',
      runId: `run_nightly-${tenantId}`,
      heartbeatIntervalMs: 1000,
      heartbeatTimeoutMs: 2000,
      retry: { maxAttempts: 1, maxLosses: 0 },
      payload: { title: 'The Long Goodbye' },
    })
  ).taskId;
  const {
    tasks: [doomed],
  } = await call('POST', 'queues/video/claim', { max: 1 }, s.workers[4].workerToken);
  const dying = die(call, s.workers[4], doomed);
  for (let i = 0; i < 12; i++) {
    const t = await call('POST', `tasks?${at}`, {
      queue: i < 8 ? 'mail' : 'video',
      type: i < 8 ? 'send_email' : 'encode',
      runId: `run_nightly-${tenantId}`,
      payload: { to: `user-${i}` },
      heartbeatIntervalMs: 30_000,
      heartbeatTimeoutMs: 90_000,
      labels: { team: i % 2 ? 'growth' : 'core' },
    });
    s.tasks.push(t.taskId);
  }
  const got = await call('POST', 'queues/mail/claim', { max: 3 }, s.workers[0].workerToken);
  s.claimed = got.tasks.map((t) => t.taskId);
  const [first, second] = got.tasks;
  for (const t of [first, second])
    await call('POST', `tasks/${t.taskId}/started`, { attempt: t.attempt, workerId: s.workers[0].workerId }, t.taskToken);
  await call(
    'POST',
    `tasks/${first.taskId}/heartbeat`,
    { attempt: first.attempt, progressPct: 40, message: 'page 4 of 10' },
    first.taskToken,
  );
  await call(
    'POST',
    `tasks/${second.taskId}/completed`,
    { attempt: second.attempt, outcome: 'FAILED', error: { category: 'USER_CODE', message: 'no such user', retryable: false } },
    second.taskToken,
  );
  s.running = first.taskId;
  s.failed = second.taskId;
  await call('POST', `schedules?${at}`, { scheduleId: 'nightly', cron: '0 0 3 * * *', task: { queue: 'mail', type: 'send_email' } });
  await call('POST', `webhooks?${at}`, { webhookId: 'pager', url, events: ['task.*'] });
  await call('POST', `webhooks/pager/test?${at}`, {});
  await until('the test was delivered', async () =>
    (await call('GET', `webhooks/pager/deliveries?${at}`)).deliveries.some((d) => d.status === 'DELIVERED'),
  );
  await dying;
  await until('the zombie is declared dead', async () => (await call('GET', `tasks/${s.zombie}?${at}`)).state === 'FAILED');
  return s;
}
