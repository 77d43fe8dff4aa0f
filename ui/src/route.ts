import { Signal, use } from './signal';

// Pages are in the fragment, as #/tasks/task_1?x=y, so the dashboard works below any path.
export interface Route {
  path: string[];
  query: URLSearchParams;
}

function read(): Route {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  let parts: string[] = [];
  try {
    parts = path.split('/').filter(Boolean).map(decodeURIComponent);
  } catch {
    /* a malformed address */
  }
  return { path: parts, query: new URLSearchParams(query) };
}

const current = new Signal<Route>(read());
window.addEventListener('hashchange', () => current.set(read()));
export const useRoute = (): Route => use(current);
export const reroute = (): void => current.set(read());

export function href(path: string, query: Record<string, string | undefined> = {}): string {
  const q = new URLSearchParams(Object.entries(query).filter((e): e is [string, string] => !!e[1])).toString();
  return '#/' + path.split('/').map(encodeURIComponent).join('/') + (q ? '?' + q : '');
}
export const go = (to: string): void => {
  location.hash = to;
};
export function change(query: Record<string, string | undefined>): void {
  const r = current.value;
  const all: Record<string, string | undefined> = Object.fromEntries(r.query);
  go(href(r.path.join('/'), { ...all, ...query }));
}
