import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';
import { version } from 'lubdub';
import { FakeServer } from 'lubdub/testing';
import { sockets, until } from './sockets.js';

for (const [format, name] of [
  ['esm', 'worker.mjs'],
  ['cjs', 'worker.cjs'],
] as const) {
  test(`a worker that is bundled into one file (${format}) starts, and its thread beats while the event loop is blocked`, async (t) => {
    const { server, url, beats, close } = await sockets();
    t.after(close);
    const dir = mkdtempSync(join(tmpdir(), 'lubdub-'));
    const outfile = join(dir, name);
    const contents = `import { Worker } from 'lubdub';
      new Worker('default', { name: 'bundled' }).handle('block', () => { for (;;); }).runUntilSignal();`;
    const resolveDir = fileURLToPath(new URL('.', import.meta.url));
    buildSync({ stdin: { contents, resolveDir }, bundle: true, platform: 'node', format, target: 'node20', outfile, logLevel: 'error' });
    const env = { ...process.env, LUBDUB_URL: url, LUBDUB_TOKEN: FakeServer.token };
    const child = spawn(process.execPath, [outfile], { cwd: dir, env, stdio: ['ignore', 'ignore', 'pipe'] });
    t.after(() => child.kill('SIGKILL'));
    let log = '';
    child.stderr.on('data', (part: Buffer) => (log += String(part)));
    server.enqueue({ type: 'block', taskId: 'a' });
    await until(() => child.exitCode !== null || (server.task('a').state === 'RUNNING' && beats().length > 5));
    assert.equal(child.exitCode, null, log);
    const before = beats().length;
    await until(() => beats().length >= before + 5);
    assert.doesNotMatch(log, /heartbeat thread has died/);
  });
}

test('the version is that of the package, under the licence of the repository', () => {
  const found = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string; license: string };
  assert.equal(version, found.version);
  assert.equal(found.license, 'Apache-2.0');
});
