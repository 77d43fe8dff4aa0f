import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'node:test';
import { Client, hasCode } from 'lubdub';

async function serving(reply: (req: IncomingMessage, res: ServerResponse, n: number) => void) {
  const requests: { url: string; id: string | undefined }[] = [];
  const server = createServer((req, res) => {
    requests.push({ url: req.url!, id: req.headers['last-event-id'] as string | undefined });
    reply(req, res, requests.length - 1);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const client = new Client(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { token: 'tok' });
  const close = () => {
    client.close();
    server.closeAllConnections();
    server.close();
  };
  return { requests, client, close };
}

const event = (id: string) => `id: ${id}\ndata: ${JSON.stringify({ id, type: 'task.created' })}\n\n`;
const begin = (res: ServerResponse) => res.writeHead(200, { 'Content-Type': 'text/event-stream' });

test('events resume at their position after cut connections, lag, server stops and rejected retries', async () => {
  const gaps: unknown[] = [];
  const { requests, client, close } = await serving((_, res, n) => {
    if (n === 1) {
      res.writeHead(503, { 'Retry-After': '0' });
      return void res.end('{"error":"overloaded","message":""}');
    }
    begin(res);
    if (n === 0) {
      res.write(': a sign of life\n\n' + event('c1'));
      return void setImmediate(() => res.write('id: c2\ndata: {"id":"c2",\nda', () => res.destroy())); // cut in the middle
    }
    if (n === 2) return void res.end(event('c2') + 'event: lagged\nid: c3\ndata: {}\nretry: 1\n\n');
    if (n === 3)
      return void res.end(
        'event: gap\nid: c4\ndata: {"from":"2026-01-01T00:00:00.000Z","to":"2026-01-02T00:00:00.000Z"}\n\n' +
          'id: c5\r\ndata: {"id":"c5",\r\ndata: "type":"x"}\r\n\r\nretry: 1\nevent: end\n\n',
      );
    res.write(event('c6'));
  });
  const stream = client.events({ type: ['task.*'], after: 'now' }, { onGap: (gap) => gaps.push(gap.from) });
  const got: string[] = [];
  for await (const one of stream) {
    got.push(one.id);
    assert.equal(stream.cursor, one.id);
    if (one.id === 'c6') break;
  }
  assert.deepEqual(got, ['c1', 'c2', 'c5', 'c6']);
  assert.deepEqual(gaps, ['2026-01-01T00:00:00.000Z']);
  assert.deepEqual(
    requests.map((a) => a.id),
    [undefined, 'c1', 'c1', 'c3', 'c5'],
  );
  assert.equal(requests[0]!.url, '/v1/events?type=task.*&after=now');
  assert.equal(requests[1]!.url, '/v1/events?type=task.*');
  close();
});

test('a final error ends the events, and so does their signal', async () => {
  const { client, close } = await serving((req, res) => {
    if (req.url!.includes('bad')) {
      res.writeHead(400);
      return void res.end('{"error":"invalid_cursor","message":"no"}');
    }
    begin(res).write(event('c1') + event('c2')); // c2 is not read
  });
  await assert.rejects(
    async () => {
      for await (const one of client.events({ after: 'bad' })) assert.fail(one.id);
    },
    (e) => hasCode(e, 'invalid_cursor'),
  );
  const enough = new AbortController();
  const listened = async () => {
    for await (const one of client.events({}, { signal: enough.signal })) {
      assert.equal(one.id, 'c1');
      enough.abort(new Error('enough'));
    }
  };
  await assert.rejects(listened, /enough/);
  close();
});
