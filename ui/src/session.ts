import { Signal } from './signal';

// The session: a control token in sessionStorage, which ends with the tab. Tabs of the same browser share it (tabs.ts). The token's claims
// are read here for display only; the server verifies it.
export interface Session {
  token: string;
  role: string;
  tenant: string;
  workspace: string;
  subject: string;
  expires: number;
}
export interface Scope {
  tenantId: string;
  workspaceId: string;
}

// What is stored of a session, and what its tabs share.
export interface Stored {
  id: string; // the same in all tabs that share the session
  token: string;
  scope: Scope | null;
  context: string;
  refreshToken?: string; // of the OpenID provider, if it issued one
  idleTimeoutMs?: number; // how long a session without input lasts; absent: as long as its token
}

const key = 'lubdub.session';

export const session = new Signal<Session | null>(null);
export const stored = new Signal<Stored | null>(null);
export const scope = new Signal<Scope | null>(null); // null: the token's own
export const context = new Signal(''); // the command line's name for this deployment, where `lubdub ui` opened the page
export const signedOut = new Signal<string>(''); // why
export const rejected = new Signal(0); // how often the server has rejected the token of a session that can be renewed

export function read(token: string): Session | null {
  const c = claimsOf(token);
  if (typeof c?.rol !== 'string') return null;
  return {
    token: token.trim(),
    role: c.rol,
    tenant: String(c.ten),
    workspace: String(c.wsp),
    subject: String(c.sub ?? ''),
    expires: Number(c.exp) * 1000,
  };
}

// claimsOf reads a JWT without verifying it; null: it is not a JWT.
export function claimsOf(token: string): Record<string, unknown> | null {
  const part = token.trim().split('.')[1];
  if (!part) return null;
  try {
    const text = atob(part.replace(/-/g, '+').replace(/_/g, '/'));
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (ch) => ch.charCodeAt(0)))) as Record<string, unknown>;
  } catch {
    return null;
  }
}

// signIn begins a session; false: this is not a control token.
export function signIn(token: string, at: Scope | null, named = '', more: Partial<Stored> = {}): boolean {
  return restore({ ...more, id: crypto.randomUUID?.() ?? String(Math.random()), token: token.trim(), scope: at, context: named });
}

// restore continues a session that this or another tab has stored.
export function restore(of: Stored): boolean {
  const s = read(of.token);
  if (!s) return false;
  keep({ ...of, scope: wide(s) ? of.scope : null });
  context.set(of.context);
  scope.set(stored.value!.scope);
  signedOut.set('');
  session.set(s);
  return true;
}

export function signOut(why: string): void {
  signedOut.set(why); // first: other tabs learn it when the session is no longer stored
  keep(null);
  scope.set(null);
  session.set(null);
}

function keep(of: Stored | null): void {
  if (of) sessionStorage.setItem(key, JSON.stringify(of));
  else sessionStorage.removeItem(key);
  stored.set(of);
}

// A token with * is valid for several scopes, of which the page shows one.
export const wide = (s: Session): boolean => s.tenant === '*' || s.workspace === '*';

// scopeNow returns the scope that the page shows.
export const scopeNow = (): Scope | null =>
  scope.value ?? (session.value && !wide(session.value) ? { tenantId: session.value.tenant, workspaceId: session.value.workspace } : null);

export function choose(at: Scope | null): void {
  if (stored.value) keep({ ...stored.value, scope: at });
  scope.set(at);
}

// begin removes the token from the address, where `lubdub ui` puts it, before anything else reads the address.
export function begin(): void {
  const given = new URLSearchParams(location.hash.slice(1));
  const token = given.get('token');
  if (token !== null) {
    const tenantId = given.get('tenantId'),
      workspaceId = given.get('workspaceId');
    history.replaceState(null, '', location.pathname + location.search + '#/' + (given.get('page') ?? ''));
    if (!signIn(token, tenantId && workspaceId ? { tenantId, workspaceId } : null, given.get('context') ?? '')) {
      signedOut.set('The token in the address cannot be read. Create another with: lubdub ui');
    }
    return;
  }
  try {
    const of = JSON.parse(sessionStorage.getItem(key) ?? 'null') as Stored | null;
    if (of) restore(of);
  } catch {
    /* sign in again */
  }
}
