/** Encodes a query: lists are joined with commas, labels are repeated as key=value, and undefined is omitted. */
export function queryOf(given: object): URLSearchParams {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(given) as [string, unknown][]) {
    if (value === undefined || value === null || value === '') continue;
    if (name === 'labels') {
      for (const [key, text] of Object.entries(value as Record<string, string>).sort()) {
        out.append('label', key + '=' + encodeURIComponent(text));
      }
    } else {
      out.set(name, value instanceof Date ? value.toISOString() : String(value));
    }
  }
  return out;
}

/** Yields all entries of a list, page by page. */
export async function* pages<P extends { nextPageToken?: string }, T>(
  fetch: (pageToken: string | undefined) => Promise<P>,
  entries: (page: P) => readonly T[],
  first?: string,
): AsyncGenerator<T, void, undefined> {
  for (let token = first; ;) {
    const page = await fetch(token);
    yield* entries(page);
    const next = page.nextPageToken;
    if (!next || next === token) return;
    token = next;
  }
}
