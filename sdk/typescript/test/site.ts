import { Client, type ClientOptions, type Handler, type Middleware, Worker, type WorkerOptions } from 'lubdub';
import { FakeServer } from 'lubdub/testing';
import { until } from './sockets.js';

/** Fields of a task that its first failure ends. */
export const once = { retry: { maxAttempts: 1 } };

export async function site(handler: Handler | URL, options: WorkerOptions = {}, more: ClientOptions = {}, middleware: Middleware[] = []) {
  const server = new FakeServer();
  const lines: string[] = [];
  const logged: Record<string, unknown>[] = []; // the same with their fields
  const extended: number[] = []; // leases, by each heartbeat
  const note = (level: string) => (message: string, fields?: object) => {
    lines.push(`${level} ${message}`);
    logged.push({ level, message, ...fields });
    if (fields && 'extended' in fields) extended.push(Number(fields.extended));
  };
  const logger = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') };
  const client = options.client ?? new Client(server.url, { ...server.options(), logger, ...more });
  const worker = new Worker('default', { client, logger, ...options });
  worker.use(...middleware).handle('work', handler);
  const running = worker.run();
  const over = running.then(
    () => undefined,
    (e: unknown) => e,
  );
  // A module is loaded in real time.
  await (handler instanceof URL ? until(() => worker.isRegistered) : server.until('it is registered', () => worker.isRegistered));
  const stop = async () => {
    worker.close();
    const end = await server.finish(over);
    client.close();
    return end;
  };
  const beats = () =>
    server.requests
      .filter((r) => /workers\/.*\/heartbeat$/.test(r.path))
      .map(
        (r) =>
          JSON.parse(r.body) as {
            seq: number;
            completedDelta: number;
            failedDelta: number;
            activeCount: number;
            tasks: { taskId: string }[];
          },
      );
  return { server, client, worker, lines, logged, extended, over, stop, beats };
}

export function untilEnded(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** A gate that many handlers wait for. */
export function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}
