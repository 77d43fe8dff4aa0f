import { UsageError } from './errors.js';

/** The addresses of one deployment. The one that answered last is asked first. */
export class Endpoints {
  readonly urls: string[] = []; // without a slash at their ends
  #at = 0;

  constructor(urls: readonly string[]) {
    for (const raw of urls) {
      const clean = checkUrl(raw.trim());
      if (!this.urls.includes(clean)) this.urls.push(clean);
    }
  }

  /** The address to ask first. */
  first(): string {
    return this.urls[this.#at]!;
  }

  /** Moves on from an address that did not answer, unless somebody has. */
  failed(url: string): void {
    if (this.first() === url) this.#at = (this.#at + 1) % this.urls.length;
  }

  /** Refuses addresses to which no token may go. */
  checkSecrecy(allowHttp: boolean): void {
    for (const url of this.urls) checkSecret(url, allowHttp);
  }
}

function checkUrl(raw: string): string {
  const url = URL.canParse(raw) ? new URL(raw) : undefined;
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    throw new UsageError('lubdub: an address is not like https://host:port; see what was given to new Client or in LUBDUB_URL');
  }
  if (url.username || url.password) {
    // Not repeated, since it is a secret.
    throw new UsageError(`lubdub: the address of ${url.host} carries credentials; give a token with the option token instead`);
  }
  if (url.search || url.hash) {
    throw new UsageError(`lubdub: the address ${url.host} has more than a path; scope and token have options of their own`);
  }
  return (url.origin + url.pathname).replace(/\/+$/, '');
}

export function checkSecret(base: string, allowHttp: boolean): void {
  const url = new URL(base);
  if (allowHttp || url.protocol === 'https:' || isLoopback(url.hostname)) return;
  throw new UsageError(
    `lubdub: http://${url.host} would show the token to whoever listens on the way; ` +
      'use https, or the option allowHttp where the network is your own',
  );
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(host);
}
