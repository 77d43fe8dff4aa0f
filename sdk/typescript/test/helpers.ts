import type { Answer, RequestInit } from 'lubdub';

export interface Seen extends RequestInit {
  url: URL;
}

/** An answer in memory. */
export function answer(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, headers });
}

/** A transport that answers from a function and keeps the requests. */
export function carrier(reply: (seen: Seen, n: number) => Answer | Promise<Answer>) {
  const seen: Seen[] = [];
  const fetch = async (url: string, init: RequestInit): Promise<Answer> => {
    const one = { ...init, url: new URL(url) };
    seen.push(one);
    return reply(one, seen.length - 1);
  };
  return { seen, fetch };
}

/** A value that looks like a token of a kind. */
export function tokenOf(kind: string): string {
  return `e30.${Buffer.from(JSON.stringify({ knd: kind })).toString('base64url')}.c2ln`;
}
