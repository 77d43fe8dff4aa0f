import { UsageError } from './errors.js';

/** The addresses of one deployment. The one that answered last is tried first. */
export class Endpoints {
  readonly urls: string[] = []; // without trailing slashes
  #at = 0;

  constructor(urls: readonly string[]) {
    for (const raw of urls) {
      const clean = checkUrl(raw.trim());
      if (!this.urls.includes(clean)) this.urls.push(clean);
    }
  }

  /** The address to try first. */
  first(): string {
    return this.urls[this.#at]!;
  }

  /** Moves on from an address that did not answer, unless another call has. */
  failed(url: string): void {
    if (this.first() === url) this.#at = (this.#at + 1) % this.urls.length;
  }

  /** Refuses addresses that would expose the token. */
  checkPlainHttp(allowHttp: boolean): void {
    for (const url of this.urls) checkSecret(url, allowHttp);
  }
}

function checkUrl(raw: string): string {
  const url = URL.canParse(raw) ? new URL(raw) : undefined;
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    throw new UsageError('lubdub: an address is not like https://host:port; check the address in new Client or LUBDUB_URL');
  }
  if (url.username || url.password) {
    // The message omits it, since it is a secret.
    throw new UsageError(`lubdub: the address of ${url.host} contains credentials; give a token with the option token instead`);
  }
  if (url.search || url.hash) {
    throw new UsageError(`lubdub: the address ${url.host} has more than a path; give scope and token as options`);
  }
  return (url.origin + url.pathname).replace(/\/+$/, '');
}

export function checkSecret(base: string, allowHttp: boolean): void {
  const url = new URL(base);
  if (allowHttp || url.protocol === 'https:' || isLoopback(url.hostname)) return;
  throw new UsageError(
    `lubdub: http://${url.host} would expose the token on the network; ` + 'use https, or the option allowHttp on a network that you trust',
  );
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(host);
}
