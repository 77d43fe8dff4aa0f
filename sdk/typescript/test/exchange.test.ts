import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type TestContext } from 'node:test';
import { Client, Worker } from 'lubdub';

interface Sent {
  completed: { taskId: string; outcome: string }[];
}

/** A server with five tasks that takes completions together, as answer has it. */
async function served(t: TestContext, answer: (n: number, ids: string[]) => Promise<[status: number, body: object]>) {
  const together: string[][] = [];
  const alone: string[] = [];
  const tasks = ['a', 'b', 'c', 'd', 'e'].map((taskId) => ({
    taskId,
    attempt: 1,
    state: 'RUNNING',
    taskToken: `token-${taskId}`,
    type: 'job',
    heartbeatIntervalMs: 60_000,
  }));
  const serve = async (path: string, body: string): Promise<[number, object]> => {
    switch (path.split('/').pop()) {
      case 'workers':
        return [
          201,
          { workerId: 'w1', workerToken: 't', heartbeatIntervalMs: 60_000, heartbeatTimeoutMs: 180_000, capabilities: ['exchange'] },
        ];
      case 'claim':
        return [200, { tasks: tasks.splice(0) }];
      case 'exchange': {
        const ids = (JSON.parse(body) as Sent).completed.map((one) => one.taskId);
        together.push(ids);
        return answer(together.length, ids);
      }
      case 'completed':
        alone.push(path.split('/')[3]!);
        return [200, { acknowledged: true, finalState: 'SUCCEEDED' }];
      default:
        return [200, { accepted: true }];
    }
  };
  const server = createServer((req: IncomingMessage, res: ServerResponse) => {
    let body = '';
    req.on('data', (chunk) => (body += String(chunk)));
    req.on('end', () => {
      void serve(req.url!, body).then(([status, found]) => {
        res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(found));
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const client = new Client(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { token: 'c' });
  t.after(() => client.close());
  const worker = new Worker('default', { client, concurrency: 5 });
  let left = 5;
  worker.handle('job', () => {
    if (--left === 0) setImmediate(() => worker.close());
  });
  await worker.run();
  return { together, alone };
}

const succeeded = (taskId: string) => ({ taskId, status: 200, acknowledged: true, finalState: 'SUCCEEDED' });

test('completions that come while a request is in flight share the next one', async (t) => {
  const { together, alone } = await served(t, (_, ids) => {
    const completed = ids.map((id) => {
      if (id === 'b') return { taskId: id, status: 403, error: 'forbidden' };
      return id === 'c' ? { taskId: id, status: 503, error: 'store_unavailable', retryAfterMs: 1 } : succeeded(id);
    });
    return Promise.resolve([200, { completed }]);
  });
  assert.deepEqual(together, [['a'], ['b', 'c', 'd', 'e']]);
  assert.deepEqual(alone.sort(), ['b', 'c'], 'what the token does not open, and what is repeated, is sent with the token of the task');
});

test('a refused exchange makes its completions be sent on their own', async (t) => {
  const { alone } = await served(t, () => Promise.resolve([404, { error: 'not_found', message: 'No resource at this path' }]));
  assert.deepEqual(alone.sort(), ['a', 'b', 'c', 'd', 'e']);
});
