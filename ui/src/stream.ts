import { address, headers, type LubdubEvent, type Query } from './api';
import { changed, paused } from './data';
import { scope, session } from './session';
import { Signal } from './signal';

// The stream of events, read with fetch so that the token is a header. The number of events that are parsed and stored is bounded: the
// newest of each quarter of a second, or of each second at high rates.
export const streaming = new Signal<'off' | 'opening' | 'open' | 'failed'>('off');
export const received = new Signal<{ events: LubdubEvent[]; perSecond: number; total: number }>({ events: [], perSecond: 0, total: 0 });

const maxEvents = 100,
  tick = 250,
  calm = 1000,
  many = 200, // ms; many: events a second from which on they are drawn less often
  longestFrame = 1 << 20;

let stop: (() => void) | null = null;

export function follow(query: Query): void {
  stop?.();
  const ended = new AbortController();
  let frames: string[] = [],
    newest: LubdubEvent[] = [],
    total = 0,
    inSecond = 0,
    perSecond = 0,
    last = '',
    retry = 2000,
    began = Date.now();
  received.set({ events: [], perSecond: 0, total: 0 });
  let drawn = 0;
  const show = setInterval(() => {
    if (Date.now() - began >= 1000) {
      perSecond = Math.round((inSecond * 1000) / (Date.now() - began));
      inSecond = 0;
      began = Date.now();
    }
    if ((frames.length === 0 && perSecond === received.value.perSecond) || (perSecond > many && Date.now() - drawn < calm)) return;
    drawn = Date.now();
    if (frames.length > 0) {
      const parsed: LubdubEvent[] = [];
      for (const f of frames) {
        try {
          parsed.push(JSON.parse(f) as LubdubEvent);
        } catch {
          /* cut by a proxy */
        }
      }
      frames = [];
      newest = [...parsed.reverse(), ...newest].slice(0, maxEvents);
      changed.set(changed.value + 1);
    }
    received.set({ events: newest, perSecond, total });
  }, tick);
  const take = (frame: string): void => {
    let data = '',
      event = '';
    for (const line of frame.split('\n')) {
      if (line.startsWith('data: ')) data = line.slice(6);
      else if (line.startsWith('id: ')) last = line.slice(4);
      else if (line.startsWith('event: ')) event = line.slice(7);
      else if (line.startsWith('retry: ')) retry = Number(line.slice(7)) || retry;
    }
    if (event === 'lagged') last = ''; // continue with new events
    if (event || !data) return;
    total++;
    inSecond++;
    frames.push(data);
    if (frames.length > 2 * maxEvents) frames = frames.slice(-maxEvents);
  };
  const run = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      if (paused.value) {
        streaming.set('off');
        await new Promise((r) => setTimeout(r, tick));
        continue;
      }
      if (streaming.value !== 'failed') streaming.set('opening');
      const attempt = new AbortController();
      const over = (): void => attempt.abort();
      ended.signal.addEventListener('abort', over);
      const held = paused.follow(() => {
        if (paused.value) over();
      });
      try {
        const res = await fetch(address('v1/events', query), {
          cache: 'no-store',
          credentials: 'omit',
          signal: attempt.signal,
          headers: headers({ Accept: 'text/event-stream', ...(last ? { 'Last-Event-ID': last } : {}) }),
        });
        if (!res.ok || !res.body) {
          if (res.status === 400) last = '';
          if (res.status === 401 || res.status === 403) retry = 60_000;
          throw new Error(String(res.status));
        }
        streaming.set('open');
        const reader = res.body.pipeThrough(new TextDecoderStream()).getReader();
        let rest = '';
        for (;;) {
          const { done, value } = await reader.read();
          if (done) break;
          const parts = (rest + value).split('\n\n');
          rest = parts.pop() ?? '';
          if (rest.length > longestFrame) rest = '';
          for (const p of parts) take(p);
        }
        if (!ended.signal.aborted) streaming.set('opening');
      } catch {
        if (!ended.signal.aborted && !paused.value) streaming.set('failed');
      }
      ended.signal.removeEventListener('abort', over);
      held();
      if (!ended.signal.aborted && !paused.value) await new Promise((r) => setTimeout(r, retry));
    }
  };
  stop = () => {
    ended.abort();
    clearInterval(show);
    stop = null;
    streaming.set('off');
  };
  void run();
}

export const unfollow = (): void => stop?.();

// followFor restarts the stream when the filter, the scope or the token changes.
let current: string | null = null;
export function followFor(query: Query): void {
  const key = JSON.stringify([query, scope.value, session.value?.token]);
  if (key === current && stop) return;
  current = key;
  if (session.value) follow(query);
  else unfollow();
}
