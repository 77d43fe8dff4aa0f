import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { WorkerOptions } from 'lubdub';
import { FakeServer } from 'lubdub/testing';

interface Beat {
  tasks?: { taskId: string }[];
}

/** The fake server behind a real socket. Its own clock does not move. */
export async function sockets() {
  const server = new FakeServer({ workerIntervalMs: 50, workerTimeoutMs: 30_000 });
  const serve = server.options().fetch!;
  const http = createServer(async (req, res) => {
    let body = '';
    for await (const part of req) body += String(part);
    const gone = new AbortController();
    res.once('close', () => gone.abort(new Error('the client has left')));
    const headers = { Authorization: req.headers.authorization ?? '' };
    try {
      const init = { method: req.method!, headers, body, signal: gone.signal, redirect: 'manual' as const };
      const answer = await serve(server.url + req.url!, init);
      res.writeHead(answer.status).end((await answer.text()).replaceAll(server.url, url));
    } catch {
      req.socket.destroy();
    }
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => http.once('listening', resolve));
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const children: ChildProcess[] = [];

  /** Starts a worker in a separate process; `release` unblocks it. */
  const work = (options: WorkerOptions, forEver = false) => {
    const file = join(mkdtempSync(join(tmpdir(), 'lubdub-')), 'go');
    const script = fileURLToPath(new URL('./children/worker.js', import.meta.url));
    const child = spawn(process.execPath, [script, JSON.stringify(options), ...(forEver ? [] : [file])], {
      env: { ...process.env, LUBDUB_URL: url, LUBDUB_TOKEN: FakeServer.token },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.push(child);
    const lines: string[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (part: Buffer) => lines.push(...part.toString().split('\n').filter(Boolean)));
    }
    const ended = new Promise<number | NodeJS.Signals | null>((resolve) => child.once('close', (code, signal) => resolve(signal ?? code)));
    return { child, lines, ended, release: () => writeFileSync(file, '') };
  };
  const beats = () => server.requests.filter((r) => /workers\/.*\/heartbeat$/.test(r.path)).map((r) => JSON.parse(r.body) as Beat);
  const close = () => {
    for (const child of children) child.kill('SIGKILL');
    http.close();
    http.closeAllConnections();
  };
  return { server, url, work, beats, close };
}

/** Waits for something that happens in another process. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}
