import { type ApiError, call } from './api';
import { claimsOf, signedOut, signIn, type Stored } from './session';
import { Signal } from './signal';

// Sign-in with the server's OpenID provider, by authorization code with PKCE. The provider's ID token is exchanged for a control token of
// the server at once, and is not stored.

export interface Provider {
  issuer: string;
  authorization_endpoint: string;
  token_endpoint: string;
  client_id: string;
  scopes: string[];
  idleTimeoutMs?: number;
}

interface Pending {
  verifier: string;
  state: string;
  nonce: string;
  page: string; // the fragment to return to
}

const key = 'lubdub.oidc';

export const signingIn = new Signal(false); // the provider has led the browser back here, and the session is about to begin

// findProvider returns the server's provider; null: it has none, or has not reached it.
export async function findProvider(): Promise<Provider | null> {
  try {
    const res = await fetch('oidc.json', { cache: 'no-store', credentials: 'omit' });
    const p = res.ok ? ((await res.json()) as Provider) : null;
    return p?.authorization_endpoint && p.token_endpoint ? p : null;
  } catch {
    return null;
  }
}

const base64url = (of: Uint8Array): string =>
  btoa(String.fromCharCode(...of))
    .replace(/\+/g, '-')
    .replace(/\//g, '_')
    .replace(/=/g, '');
const random = (): string => base64url(crypto.getRandomValues(new Uint8Array(32)));
const redirectURI = (): string => location.origin + location.pathname;

// beginSignIn leads the browser to the provider.
export async function beginSignIn(p: Provider): Promise<void> {
  if (!isSecureContext) return signedOut.set('Open this page over https:// to sign in with ' + new URL(p.issuer).host + '.');
  const pending: Pending = { verifier: random(), state: random(), nonce: random(), page: location.hash };
  sessionStorage.setItem(key, JSON.stringify(pending));
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(pending.verifier));
  const to = new URL(p.authorization_endpoint);
  const query = {
    response_type: 'code',
    client_id: p.client_id,
    redirect_uri: redirectURI(),
    scope: p.scopes.join(' '),
    state: pending.state,
    nonce: pending.nonce,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: 'S256',
    ...(p.scopes.includes('offline_access') ? { prompt: 'consent' } : {}), // without which providers issue no refresh token
  };
  for (const [name, value] of Object.entries(query)) to.searchParams.set(name, value);
  location.assign(to);
}

// finishSignIn continues where the provider has led the browser back to. It removes the code from the address first.
export async function finishSignIn(): Promise<void> {
  const query = new URLSearchParams(location.search);
  const pending = JSON.parse(sessionStorage.getItem(key) ?? 'null') as Pending | null;
  if (!pending || !query.has('state')) return;
  sessionStorage.removeItem(key);
  history.replaceState(null, '', location.pathname + pending.page);
  const fail = (why: string): void => signedOut.set('The sign-in failed: ' + why + '. Try again.');
  if (query.get('state') !== pending.state) return fail('the answer of the provider belongs to another sign-in');
  const code = query.get('code');
  if (!code) return fail(query.get('error_description') ?? query.get('error') ?? 'the provider sent no code');
  const p = await findProvider();
  if (!p) return fail('the server cannot reach the provider');
  signingIn.set(true);
  try {
    const got = await ask(p, { grant_type: 'authorization_code', code, redirect_uri: redirectURI(), code_verifier: pending.verifier });
    if (claimsOf(got.id_token)?.nonce !== pending.nonce) return fail('the token of the provider belongs to another sign-in');
    const token = await exchange(got.id_token);
    signIn(token, null, '', { refreshToken: got.refresh_token, idleTimeoutMs: p.idleTimeoutMs });
  } catch (e) {
    fail((e as Error).message);
  } finally {
    signingIn.set(false);
  }
}

// renew returns a session with a new token. The next refresh token is passed to keep as soon as it is there, since the provider accepts each
// only once. It fails with Refused if the provider or the server does not renew the session any more.
export async function renew(of: Stored, keep: (refreshToken: string) => void): Promise<string> {
  const p = await findProvider();
  if (!p) throw new Error('the server cannot reach the provider');
  const got = await ask(p, { grant_type: 'refresh_token', refresh_token: of.refreshToken! });
  if (got.refresh_token) keep(got.refresh_token);
  return exchange(got.id_token);
}

// Refused means that the person must sign in again.
export class Refused extends Error {}

interface Tokens {
  id_token: string;
  refresh_token?: string;
}

async function ask(p: Provider, form: Record<string, string>): Promise<Tokens> {
  const res = await fetch(p.token_endpoint, {
    method: 'POST',
    credentials: 'omit',
    headers: { Accept: 'application/json' },
    body: new URLSearchParams({ ...form, client_id: p.client_id }),
  });
  const answer = (await res.json()) as Tokens & { error?: string; error_description?: string };
  const why = `the provider answered ${res.status} ${answer.error_description ?? answer.error ?? ''}`;
  if (res.status === 400 || res.status === 401) throw new Refused(why);
  if (!res.ok) throw new Error(why);
  if (!answer.id_token) throw new Refused('the provider issued no ID token');
  return answer;
}

const longest = 12 * 3600_000; // that a token of the server may be valid; it expires no later than the ID token

async function exchange(idToken: string): Promise<string> {
  try {
    const made = await call<{ token: string }>('POST', 'v1/tokens', { body: { ttlMs: longest }, everywhere: true, token: idToken });
    return made.token;
  } catch (e) {
    const { status, message } = e as ApiError;
    throw status === 401 || status === 403 ? new Refused(message) : e;
  }
}
