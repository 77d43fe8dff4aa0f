import { Signal } from './signal';

// The session: a control token in sessionStorage, which ends with the tab. Its claims are read here for display only; the server
// verifies it.
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

const tokenKey = 'lubdub.token',
  scopeKey = 'lubdub.scope',
  contextKey = 'lubdub.context';

export const session = new Signal<Session | null>(null);
export const scope = new Signal<Scope | null>(null); // null: the token's own
export const context = new Signal(''); // the command line's name for this deployment, where `lubdub ui` opened the page
export const signedOut = new Signal<string>(''); // why

export function read(token: string): Session | null {
  const part = token.trim().split('.')[1];
  if (!part) return null;
  try {
    const text = atob(part.replace(/-/g, '+').replace(/_/g, '/'));
    const c = JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (ch) => ch.charCodeAt(0)))) as Record<string, unknown>;
    if (typeof c.rol !== 'string') return null;
    return {
      token: token.trim(),
      role: c.rol,
      tenant: String(c.ten),
      workspace: String(c.wsp),
      subject: String(c.sub ?? ''),
      expires: Number(c.exp) * 1000,
    };
  } catch {
    return null;
  }
}

export function signIn(token: string, at: Scope | null, named = ''): boolean {
  const s = read(token);
  if (!s) return false;
  sessionStorage.setItem(contextKey, named);
  context.set(named);
  sessionStorage.setItem(tokenKey, s.token);
  choose(wide(s) ? at : null);
  signedOut.set('');
  session.set(s);
  return true;
}

export function signOut(why: string): void {
  sessionStorage.removeItem(tokenKey);
  sessionStorage.removeItem(scopeKey);
  sessionStorage.removeItem(contextKey);
  signedOut.set(why);
  scope.set(null);
  session.set(null);
}

// A token with * is valid for several scopes, of which the page shows one.
export const wide = (s: Session): boolean => s.tenant === '*' || s.workspace === '*';

// scopeNow returns the scope that the page shows.
export const scopeNow = (): Scope | null =>
  scope.value ?? (session.value && !wide(session.value) ? { tenantId: session.value.tenant, workspaceId: session.value.workspace } : null);

export function choose(at: Scope | null): void {
  if (at) sessionStorage.setItem(scopeKey, JSON.stringify(at));
  else sessionStorage.removeItem(scopeKey);
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
  const stored = sessionStorage.getItem(tokenKey);
  if (!stored) return;
  let at: Scope | null = null;
  try {
    at = JSON.parse(sessionStorage.getItem(scopeKey) ?? 'null') as Scope | null;
  } catch {
    /* choose again */
  }
  signIn(stored, at, sessionStorage.getItem(contextKey) ?? '');
}
