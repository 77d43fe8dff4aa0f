import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Listening {
  readonly port: number;
  close(): void;
}

/** Answers GET with 200 while isAlive returns true, and with 503 when it does not. */
export async function listen(host: string, port: number, isAlive: () => boolean): Promise<Listening> {
  const server = createServer({ requestTimeout: 5000, headersTimeout: 5000, maxHeaderSize: 16 << 10 }, (req, res) => {
    if (req.method !== 'GET' && req.method !== 'HEAD') {
      res.writeHead(405, { Allow: 'GET, HEAD' }).end();
      return;
    }
    const alive = isAlive();
    res.writeHead(alive ? 200 : 503, { 'Content-Type': 'text/plain' }).end(alive ? 'alive\n' : 'not alive\n');
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: host || undefined, port }, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
