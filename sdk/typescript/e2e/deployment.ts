import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Client } from 'lubdub';

const lubdub = process.env['LUBDUB_BIN'] ?? fileURLToPath(new URL('../../../bin/lubdub', import.meta.url));

export const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A free port below the range that systems use for outgoing connections, so that none of those takes it. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = 21_000 + Math.floor(Math.random() * 10_000);
    const server = createServer().listen(port, '127.0.0.1');
    const free = await new Promise<boolean>((resolve) => server.once('listening', () => resolve(true)).once('error', () => resolve(false)));
    if (!free) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

/** The workers' heartbeat timeout, in ms: long enough that a busy machine delays no heartbeat for that long. */
export const life = 6000;

/** A real server and a real Redis, with workers that send three heartbeats per timeout. */
export async function deploy() {
  const keys = { LUBDUB_SIGNING_KEYS: 'k1=' + randomBytes(32).toString('base64') };
  const env = { ...process.env, ...keys };
  const children: ChildProcess[] = [];
  const [redisPort, port, adminPort] = [await freePort(), await freePort(), await freePort()];
  children.push(
    spawn('redis-server', ['--port', `${redisPort}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'], {
      stdio: 'ignore',
    }),
  );
  const url = `http://127.0.0.1:${port}`;
  const token = execFileSync(lubdub, ['token', '--role', 'admin'], { env }).toString().trim();
  children.push(
    spawn(
      lubdub,
      [
        'serve',
        '--redis',
        `redis://127.0.0.1:${redisPort}/0`,
        '--listen',
        `127.0.0.1:${port}`,
        '--admin-listen',
        `127.0.0.1:${adminPort}`,
        '--public-url',
        url,
        '--worker-heartbeat-interval',
        `${life / 3}ms`,
        '--redis-timeout',
        '10s',
      ],
      { env, stdio: ['ignore', 'ignore', process.env['LUBDUB_E2E_LOG'] ? 'inherit' : 'ignore'] },
    ),
  );
  const client = new Client(url, { token });
  while (
    !(await client.readyz().then(
      () => true,
      () => false,
    ))
  )
    await wait(50);

  /** Starts a worker process and keeps its output. */
  const work = (queue: string, ...args: string[]) => {
    const child = spawn(process.execPath, [fileURLToPath(new URL('./worker.js', import.meta.url)), queue, ...args], {
      env: { ...process.env, LUBDUB_URL: url, LUBDUB_TOKEN: token },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    children.push(child);
    const lines: string[] = [];
    child.stdout.on('data', (part: Buffer) => lines.push(...part.toString().split('\n').filter(Boolean)));
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    return { child, lines, ended };
  };
  const close = () => {
    client.close();
    for (const child of children) child.kill('SIGKILL');
  };
  return { client, work, close };
}
