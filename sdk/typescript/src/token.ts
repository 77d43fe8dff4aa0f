import { readFile } from 'node:fs/promises';
import { UsageError } from './errors.js';

/** Has the token of control calls. */
export interface TokenSource {
  /** The token; empty: there is none. */
  current(): Promise<string>;
  /** Another one after `refused` was; the same one: there is no other. */
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

/** Asks for a token when it has none or when the one that it has was refused. Many who are refused at once ask once. */
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
      throw new UsageError('lubdub: the token cannot be had: ' + (cause instanceof Error ? cause.message : String(cause)), { cause });
    }
    checkToken(token);
    this.#have = token;
    return token;
  }
}

/** Reads the token from a file; spaces around it are not of it. */
export function tokenOfFile(path: string): TokenSource {
  return new ChangingToken(async () => {
    const token = (await readFile(path, 'utf8')).trim();
    if (!token) throw new Error(`${path} is empty; put there what \`lubdub token\` prints`);
    return token;
  });
}

/** Refuses what cannot be the token of control calls, without repeating any of it. */
export function checkToken(token: string): void {
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) {
    throw new UsageError('lubdub: the token has characters that no token has; give what `lubdub token` prints, without quotes or spaces');
  }
  const kind = tokenKind(token);
  if (kind === 'task' || kind === 'worker') {
    throw new UsageError(
      `lubdub: this is the token of a ${kind}, which opens that ${kind}'s own calls only; ` +
        'make one for the client with `lubdub token --role …`',
    );
  }
}

/** Reads from a token what it is for, without verifying it; undefined where it does not say. */
function tokenKind(token: string): unknown {
  const parts = token.split('.');
  if (parts.length !== 3) return undefined;
  try {
    return (JSON.parse(Buffer.from(parts[1]!, 'base64url').toString('utf8')) as { knd?: unknown }).knd;
  } catch {
    return undefined;
  }
}
