import { createHmac, timingSafeEqual } from 'node:crypto';
import { UsageError } from './errors.js';
import type { Event } from './types.js';

/** A message is not the webhook's: headers are missing, it was signed too long ago, or no secret matches the signature. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError';
  readonly why: 'headers' | 'timestamp' | 'signature' | 'body';
  constructor(why: WebhookError['why'], message: string) {
    super(message);
    this.why = why;
  }
}

/** The content of a webhook message. */
export interface WebhookMessage {
  /** The same in each repeat: a receiver that has processed it can skip repeats. */
  id: string;
  type: string;
  timestamp: string;
  /** The event, or the data of another message type. */
  data: Event;
}

/** The headers of a request: those of node:http, those of fetch, or a plain object. */
export type WebhookHeaders = { get(name: string): string | null } | Record<string, string | string[] | undefined>;

export interface VerifyOptions {
  /** How far a message's timestamp may be from now, in ms; by default 5 minutes. */
  toleranceMs?: number;
  /** Milliseconds since 1970; by default the system's clock. */
  now?: () => number;
}

/**
 * Returns a webhook's message if its headers prove that it is one, as Standard Webhooks 1.0 defines; throws a WebhookError otherwise:
 * answer with 401 and do nothing else. The body is the request's, byte for byte. Give several secrets while one rotates.
 */
export function verifyWebhook(
  secrets: string | readonly string[],
  headers: WebhookHeaders,
  body: string | Uint8Array,
  options: VerifyOptions = {},
): WebhookMessage {
  const keys = [secrets].flat().map(keyOf);
  if (keys.length === 0) throw new UsageError("lubdub: give the webhook's secret");
  const id = headerOf(headers, 'webhook-id');
  const at = headerOf(headers, 'webhook-timestamp');
  const signatures = headerOf(headers, 'webhook-signature');
  if (!id || !signatures || !/^\d{1,15}$/.test(at)) throw new WebhookError('headers', "lubdub: the webhook's headers are not complete");
  const away = Math.abs((options.now ?? Date.now)() - Number(at) * 1000);
  if (away > (options.toleranceMs ?? 300_000)) {
    throw new WebhookError('timestamp', "lubdub: the webhook's timestamp is too far from now");
  }
  if (!keys.some((key) => isSigned(key, id, at, signatures, body))) {
    throw new WebhookError('signature', "lubdub: the webhook's signature matches none of the secrets");
  }
  try {
    const message = JSON.parse(typeof body === 'string' ? body : Buffer.from(body).toString('utf8')) as WebhookMessage;
    return { ...message, id };
  } catch {
    throw new WebhookError('body', "lubdub: the webhook's body is not JSON");
  }
}

function keyOf(secret: string): Buffer {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1] ?? '';
  const key = Buffer.from(encoded, 'base64');
  if (key.length < 24 || key.length > 64) {
    throw new UsageError("lubdub: a webhook's secret is not whsec_ followed by the base64 of 24 to 64 bytes");
  }
  return key;
}

function headerOf(headers: WebhookHeaders, name: string): string {
  if (typeof headers['get'] === 'function') return headers['get'](name) ?? '';
  for (const [key, value] of Object.entries(headers as Record<string, string | string[] | undefined>)) {
    if (key.toLowerCase() === name) return [value].flat()[0] ?? '';
  }
  return '';
}

function isSigned(key: Buffer, id: string, at: string, signatures: string, body: string | Uint8Array): boolean {
  const want = createHmac('sha256', key).update(`${id}.${at}.`).update(body).digest();
  return signatures.split(' ').some((one) => {
    if (!one.startsWith('v1,')) return false;
    const got = Buffer.from(one.slice(3), 'base64');
    return got.length === want.length && timingSafeEqual(got, want);
  });
}
