import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const sdk = fileURLToPath(new URL('../', import.meta.url));

const uses = `
  const server = new FakeServer();
  const client = new Client(server.url, server.options());
  const worker = new Worker('default', { client, logger: { debug() {}, info() {}, warn() {}, error() {} } });
  worker.handle('greet', (task) => 'hello ' + task.payload);
  const running = worker.run();
  const id = server.enqueue({ type: 'greet', payload: 'world' });
  await server.until('it is done', () => server.isOver(id));
  worker.close();
  await server.finish(running);
  console.log(server.task(id).output);
`;

const programs: Record<string, string> = {
  'use.mjs': `import { Client, Worker } from 'lubdub';\nimport { FakeServer } from 'lubdub/testing';\n${uses}`,
  'use.cjs': `(async () => {
  const { Client, Worker } = await import('lubdub');
  const { FakeServer } = await import('lubdub/testing');
  ${uses}
})();`,
};

// Real sockets, so that the heartbeat thread is used.
const tracks = `import { Client } from 'lubdub';
import { createServer } from 'node:http';
const paths = [];
const server = createServer(async (req, res) => {
  let body = '';
  for await (const part of req) body += part;
  paths.push(req.url);
  const results = JSON.parse(body).heartbeats?.map(({ taskId }) => ({ taskId, status: 200, nextHeartbeatMs: 1000 }));
  res.end(JSON.stringify({ acknowledged: true, finalState: 'SUCCEEDED', serverTime: new Date().toISOString(), results }));
}).listen(0, '127.0.0.1', async () => {
  const url = 'http://127.0.0.1:' + server.address().port;
  const client = new Client(url, { logger: console });
  const envelope = { taskId: 't', attempt: 1, taskToken: 'x', callbackBaseUrl: url, heartbeatIntervalMs: 1000, heartbeatTimeoutMs: 3000 };
  await client.run(envelope, async () => {
    while (!paths.includes('/v1/heartbeats')) await new Promise((resolve) => setTimeout(resolve, 10));
  });
  server.close();
  server.closeAllConnections();
  console.log(paths.at(-1)); // and the process exits, though the client was not closed
});
`;

const isolated = `import { Client, Worker } from 'lubdub';
import { runHandler } from 'lubdub/testing';
const worker = new Worker('default', { client: new Client('http://127.0.0.1:1') });
for (const name of ['es.mjs', 'common.cjs']) worker.handle(name, new URL('./' + name, import.meta.url));
const outputs = ['es.mjs', 'common.cjs'].map((type) => runHandler(worker, 'world', { type }));
console.log((await Promise.all(outputs)).join()); // and the process exits, though children wait for more
`;

// With the packages that the adapters need, which are not installed with the SDK.
const adapters = `import { activeTraceparent, traced } from 'lubdub/opentelemetry';
import { prometheusMetrics } from 'lubdub/prometheus';
import { register } from 'prom-client';
prometheusMetrics().claimed('ok', 3);
const output = await traced()(() => activeTraceparent())({ envelope: {} }, new AbortController().signal);
console.log(output, (await register.metrics()).match(/claimed_tasks_total \\d+/)[0]);
`;

const typed = `import { ApiError, Client, hasCode, type Task, Worker } from 'lubdub';
import { FakeServer } from 'lubdub/testing';
const server = new FakeServer({ workerIntervalMs: 1000 });
const client = new Client(server.url, server.options());
const worker = new Worker('default', { client });
worker.handle<{ to: string }, number>('mail', async (task: Task<{ to: string }>, signal: AbortSignal) => {
  signal.throwIfAborted();
  return task.payload.to.length;
});
export async function made(): Promise<string> {
  const queued = await client.createTask({ queue: 'default', type: 'mail', payload: { to: 'x' } });
  const pushed = await client.createTask({ type: 'mail' });
  await using attempt = client.track(pushed);
  attempt.progress(1);
  try {
    return (await client.getTask(queued.taskId)).state;
  } catch (error) {
    if (hasCode(error, 'task_not_found')) return error.fields.message ?? '';
    if (error instanceof ApiError) return error.requestId;
    throw error;
  }
}
`;

// What the README's examples assume to exist.
const given = `declare const rows: string[];
declare const envelope: TaskEnvelope;
type Mail = { to: string };
type Film = { frames: number };
declare function render(film: Film, frame: number, options: { signal: AbortSignal }): Promise<void>;
declare function load(row: string, options: { signal: AbortSignal }): Promise<void>;
declare function send(mail: Mail, options: { signal: AbortSignal }): Promise<string>;
declare function isUnsubscribed(address: string): Promise<boolean>;
declare function isNight(): boolean;
`;

/** The README's examples, each as a module. */
function examples(): [string, string][] {
  const text = readFileSync(join(sdk, 'README.md'), 'utf8');
  return [...text.matchAll(/```ts\n(.*?)```/gs)].map(([, code = ''], i) => {
    const count = /function count/.test(code) ? '' : 'declare const count: Handler<{ to: number }, number>;\n';
    const names = ['Client', 'Worker', 'type Handler', 'type Task', 'type TaskEnvelope'].filter(
      (name) => !new RegExp(`import .*\\b${name}\\b`).test(code),
    );
    const client = /\bclient = /.test(code) ? '' : 'declare const client: Client;\n';
    const worker = /\bworker = /.test(code) ? '' : 'declare const worker: Worker;\n';
    return [`example${i}.mts`, `import { ${names.join(', ')} } from 'lubdub';\n${given}${count}${client}${worker}${code}`];
  });
}

test('the package is installed into an empty project, and works as ES module, from CommonJS, in a thread, and in TypeScript', () => {
  const dir = mkdtempSync(join(tmpdir(), 'lubdub-'));
  const run = (command: string, args: string[], cwd = dir) => execFileSync(command, args, { cwd, encoding: 'utf8' });
  run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', dir], sdk);
  const tarball = readdirSync(dir).find((file) => file.endsWith('.tgz'))!;
  writeFileSync(join(dir, 'package.json'), '{"private":true}');
  run('npm', ['install', '--silent', '--offline', '--no-audit', '--no-fund', './' + tarball]);
  const installed = readdirSync(join(dir, 'node_modules')).filter((name) => !name.startsWith('.'));
  assert.deepEqual(installed, ['lubdub'], 'nothing else comes with it');
  const files = readdirSync(join(dir, 'node_modules/lubdub'));
  assert.deepEqual(files.sort(), ['LICENSE', 'README.md', 'dist', 'package.json']);
  for (const [name, text] of Object.entries(programs)) {
    writeFileSync(join(dir, name), text);
    assert.equal(run(process.execPath, [name]), 'hello world\n', name);
  }
  writeFileSync(join(dir, 'track.mjs'), tracks);
  assert.match(run(process.execPath, ['track.mjs']), /\/v1\/tasks\/t\/completed\n$/);
  writeFileSync(join(dir, 'es.mjs'), "export default (task) => 'hello ' + task.payload;");
  writeFileSync(join(dir, 'common.cjs'), "module.exports = (task) => 'goodbye ' + task.payload;");
  writeFileSync(join(dir, 'isolated.mjs'), isolated);
  assert.equal(run(process.execPath, ['isolated.mjs']), 'hello world,goodbye world\n');
  for (const name of ['@opentelemetry', 'prom-client']) symlinkSync(join(sdk, 'node_modules', name), join(dir, 'node_modules', name));
  writeFileSync(join(dir, 'adapters.mjs'), adapters);
  assert.equal(run(process.execPath, ['adapters.mjs']), 'undefined claimed_tasks_total 3\n');
  writeFileSync(join(dir, 'user.mts'), typed);
  const shown = examples();
  assert.ok(shown.length >= 4);
  for (const [name, text] of shown) writeFileSync(join(dir, name), text);
  const config = {
    compilerOptions: {
      target: 'es2022',
      lib: ['es2022', 'esnext.disposable'],
      module: 'nodenext',
      strict: true,
      noEmit: true,
      types: ['node'],
      typeRoots: [join(sdk, 'node_modules/@types')],
    },
    include: ['*.mts'],
  };
  writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify(config));
  run(process.execPath, [join(sdk, 'node_modules/typescript/bin/tsc'), '-p', '.']);
  const lock = readFileSync(join(sdk, 'package-lock.json'), 'utf8');
  assert.ok(!lock.includes('"resolved"'), 'the lock names no registry');
});
