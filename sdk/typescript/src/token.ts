import { readFile } from 'node:fs/promises';
import { UsageError } from './errors.js';

/** Supplies the token for control calls. */
export interface TokenSource {
  /** The token; empty: none. */
  current(): Promise<string>;
  /** A new token after `refused` was refused; the same one: there is no other. */
  renew(refused: string): Promise<string>;
}

export class FixedToken implements TokenSource {
  readonly #token: string;

  constructor(token: string) {
    if (token) checkToken(token);
    this.#token = token;
  }

  current(): Promise<string> {
    return Promise.resolve(this.#token);
  }

  renew(): Promise<string> {
    return Promise.resolve(this.#token);
  }
}

/** Calls for a token when it has none or the current one was refused. Many callers that are refused at the same time cause one call. */
export class ChangingToken implements TokenSource {
  readonly #get: () => string | Promise<string>;
  #have = '';
  #asking: Promise<string> | undefined;

  constructor(get: () => string | Promise<string>) {
    this.#get = get;
  }

  current(): Promise<string> {
    return this.#have ? Promise.resolve(this.#have) : this.#ask();
  }

  renew(refused: string): Promise<string> {
    return this.#have === refused ? this.#ask() : Promise.resolve(this.#have);
  }

  #ask(): Promise<string> {
    this.#asking ??= this.#fetch().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #fetch(): Promise<string> {
    let token: string;
    try {
      token = await this.#get();
    } catch (cause) {
      throw new UsageError('lubdub: the token could not be read: ' + (cause instanceof Error ? cause.message : String(cause)), { cause });
    }
    checkToken(token);
    this.#have = token;
    return token;
  }
}

/** Reads the token from a file; surrounding whitespace is removed. */
export function tokenOfFile(path: string): TokenSource {
  return new ChangingToken(async () => {
    const token = (await readFile(path, 'utf8')).trim();
    if (!token) throw new Error(`${path} is empty; put there what \`lubdub token\` prints`);
    return token;
  });
}

/** Refuses a value that cannot be a control token, without repeating it. */
export function checkToken(token: string): void {
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) {
    throw new UsageError('lubdub: the token has invalid characters; give what `lubdub token` prints, without quotes or spaces');
  }
  const kind = tokenKind(token);
  if (kind === 'task' || kind === 'worker') {
    throw new UsageError(
      `lubdub: this is the token of a ${kind}, which is valid for that ${kind}'s own calls only; ` +
        'make one for the client with `lubdub token --role …`',
    );
  }
}

/** The kind of a token, read without verifying it; undefined: unknown. */
function tokenKind(token: string): unknown {
  const parts = token.split('.');
  if (parts.length !== 3) return undefined;
  try {
    return (JSON.parse(Buffer.from(parts[1]!, 'base64url').toString('utf8')) as { knd?: unknown }).knd;
  } catch {
    return undefined;
  }
}
