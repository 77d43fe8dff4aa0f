import * as http from 'node:http';
import * as https from 'node:https';
import type { Duplex } from 'node:stream';
import * as tls from 'node:tls';
import { isLoopback } from './endpoints.js';
import { AnswerError, UsageError } from './errors.js';

/** The parts of a request; the global fetch accepts it too. */
export interface RequestInit {
  method: string;
  headers: Record<string, string>;
  body?: string;
  signal: AbortSignal;
  redirect: 'manual';
}

/** The parts of an answer that are read; a Response of the global fetch has them. */
export interface Answer {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
  readonly body: AsyncIterable<Uint8Array> | null;
}

/** Sends requests. It must not follow redirects, which would send the token to another host. */
export type Fetch = (url: string, init: RequestInit) => Promise<Answer>;

/** How the SDK's own transport connects. */
export interface Connecting {
  /** Certificate authorities in PEM form, instead of the default ones. */
  ca?: string;
  /** The proxy's URL; empty: none. */
  proxy?: string;
}

/** The limit of an answer, in bytes. */
const maxAnswer = 64 << 20;

/** The options of a connection, with the signal of the request that it is for, which Node does not pass to the agent. */
type ConnectionOptions = https.RequestOptions & { gone?: AbortSignal };

/** Returns a transport with its own connection pool. */
export function nodeTransport(connecting: Connecting): { fetch: Fetch; close(): void } {
  const proxy = connecting.proxy ? new URL(connecting.proxy) : undefined;
  const plain = new http.Agent({ keepAlive: true });
  const secure = proxy ? new TunnelAgent(proxy, connecting.ca) : new https.Agent({ keepAlive: true, ca: connecting.ca });
  const direct = new https.Agent({ keepAlive: true, ca: connecting.ca });
  const fetch: Fetch = (address, init) =>
    new Promise((resolve, reject) => {
      const url = new URL(address);
      const around = !proxy || isLoopback(url.hostname);
      const isSecure = url.protocol === 'https:';
      const { method, headers, signal } = init;
      const options: ConnectionOptions = { method, headers, signal, gone: signal };
      if (isSecure) options.agent = around ? direct : secure;
      else options.agent = plain;
      let req: http.ClientRequest;
      if (!isSecure && !around) {
        const withHost = { ...headers, Host: url.host, ...proxyHeaders(proxy) };
        req = http.request({ ...options, headers: withHost, host: bare(proxy.hostname), port: proxy.port || 80, path: address });
      } else {
        req = (isSecure ? https : http).request(url, options);
      }
      req.once('error', reject);
      req.once('response', (res) => resolve(answerOf(res)));
      req.end(init.body);
    });
  return {
    fetch,
    close() {
      for (const agent of [plain, secure, direct]) agent.destroy();
    },
  };
}

function answerOf(res: http.IncomingMessage): Answer {
  return {
    status: res.statusCode ?? 0,
    headers: { get: (name) => [res.headers[name.toLowerCase()] ?? null].flat()[0] ?? null },
    body: res,
    async text() {
      const parts: Buffer[] = [];
      let size = 0;
      for await (const part of res as AsyncIterable<Buffer>) {
        size += part.length;
        if (size > maxAnswer) throw new AnswerError(`lubdub: the answer is longer than ${maxAnswer >> 20} MiB`);
        parts.push(part);
      }
      return Buffer.concat(parts).toString('utf8');
    },
  };
}

/** Connects to servers through a proxy, by CONNECT. */
class TunnelAgent extends https.Agent {
  readonly #proxy: URL;
  readonly #ca: string | undefined;

  constructor(proxy: URL, ca: string | undefined) {
    super({ keepAlive: true });
    this.#proxy = proxy;
    this.#ca = ca;
  }

  override createConnection(options: ConnectionOptions, callback?: (err: Error | null, stream: Duplex) => void): undefined {
    const host = String(options.host);
    const target = `${host.includes(':') ? `[${host}]` : host}:${options.port ?? 443}`;
    const connect = (this.#proxy.protocol === 'https:' ? https : http).request({
      method: 'CONNECT',
      host: bare(this.#proxy.hostname),
      port: this.#proxy.port || (this.#proxy.protocol === 'https:' ? 443 : 80),
      path: target,
      headers: { Host: target, ...proxyHeaders(this.#proxy) },
      agent: false,
      signal: options.gone,
    });
    const fail = (err: Error) => callback?.(err, undefined as unknown as Duplex);
    connect.once('error', fail);
    connect.once('connect', (res, socket) => {
      if (res.statusCode !== 200) {
        socket.destroy();
        return fail(Object.assign(new Error(`the proxy answered ${res.statusCode}`), { code: 'ECONNREFUSED' }));
      }
      const inner = tls.connect({ socket, servername: host.replace(/^[\d.:[\]]+$/, ''), ca: this.#ca });
      const stop = () => inner.destroy(options.gone!.reason as Error);
      const settle = () => options.gone?.removeEventListener('abort', stop);
      options.gone?.addEventListener('abort', stop, { once: true });
      inner.once('close', settle).once('error', fail);
      inner.once('secureConnect', () => {
        settle();
        callback?.(null, inner);
      });
      return undefined;
    });
    connect.end();
  }
}

function bare(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

function proxyHeaders(proxy: URL): Record<string, string> {
  if (!proxy.username) return {};
  const user = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  return { 'Proxy-Authorization': 'Basic ' + Buffer.from(user).toString('base64') };
}

/** The proxy that the environment names for an address, by curl's rules: HTTPS_PROXY, HTTP_PROXY and NO_PROXY, also in lower case. */
export function proxyOfEnvironment(address: string, env: Record<string, string | undefined>): string {
  const url = new URL(address);
  const of = (name: string) => env[name.toLowerCase()] || env[name] || '';
  const host = url.hostname;
  for (const entry of of('NO_PROXY').split(',')) {
    const name = entry
      .trim()
      .replace(/^\*?\./, '')
      .replace(/:\d+$/, '');
    if (entry.trim() === '*' || (name && (host === name || host.endsWith('.' + name)))) return '';
  }
  return url.protocol === 'https:' ? of('HTTPS_PROXY') : of('HTTP_PROXY');
}

export function checkProxy(proxy: string): string {
  if (!proxy) return '';
  const full = proxy.includes('://') ? proxy : 'http://' + proxy;
  if (!URL.canParse(full) || !['http:', 'https:'].includes(new URL(full).protocol)) {
    throw new UsageError('lubdub: the proxy is not like http://host:port');
  }
  return full;
}

const beforeSending = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'];

/** Whether an error means that there was no connection, so that no server can have received the call. */
export function wasNotSent(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (beforeSending.includes((at as NodeJS.ErrnoException).code ?? '')) return true;
    if (at instanceof AggregateError && at.errors.length > 0) return at.errors.every(wasNotSent);
  }
  return false;
}
