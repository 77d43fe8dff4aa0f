import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ApiError, get, serverNow, type System, type Worker } from '../api';
import { paused, useData } from '../data';
import { statusOf } from '../parts';
import { scope } from '../session';
import { use } from '../signal';
import { received } from '../stream';

// All workers, each a cell. Workers are read in pages of a hundred: at first without pauses, then continuously with a pause between two
// pages, so that ten thousand cost only a few calls a second. Events about workers update their cells at once.

export interface Cell {
  id: string;
  name: string;
  machine: string;
  queue: string;
  version: string;
  zone: string;
  how: string;
  beat: string | null;
  held: number;
  ended: string | null; // when it went OFFLINE
  why: string; // why it went OFFLINE
  round: number;
}

export interface Fleet {
  cells: Cell[]; // by id
  error: ApiError | null;
  at: number;
  whole: boolean;
  capped: boolean;
  again: () => void;
}

export const order = ['LOST', 'LATE', 'DRAINING', 'FRESH', 'OFFLINE'];
export const atMost = 20_000;
const calm = 400; // ms between two pages, once all are known
const pause = 2000; // ms between two rounds, at least
export const stays = 15; // min that a worker stays visible after it went OFFLINE

const fromEvent: Record<string, string> = {
  'worker.late': 'LATE',
  'worker.offline': 'OFFLINE',
  'worker.draining': 'DRAINING',
  'worker.fresh': 'FRESH',
};

const zones = ['zone', 'topology.kubernetes.io/zone', 'region'];
const cell = (w: Worker, round: number): Cell => ({
  id: w.workerId,
  name: w.name ?? '',
  machine: w.machineId,
  queue: w.queue,
  version: w.version ?? '',
  zone: zones.map((z) => w.labels[z]).find(Boolean) ?? '',
  how: statusOf(w),
  beat: w.lastHeartbeatAt,
  held: w.heldCount,
  ended: w.deregisteredAt,
  why: w.status === 'OFFLINE' ? (w.endReason ?? '') : '',
  round,
});

const recent = (c: Cell): boolean => c.ended !== null && serverNow() - Date.parse(c.ended) < stays * 60_000;
export const died = (c: Cell): boolean => c.how === 'OFFLINE' && c.why === 'HEARTBEAT_TIMEOUT';

// useLost reads the workers that were lost lately, which the list of workers may no longer have.
function useLost(): Cell[] {
  const system = useData('pulse-lost', (signal) => get<System>('v1/system', {}, signal), 10_000);
  return useMemo(() => {
    const lost = (system.value?.recentlyLost as System['recentlyLost'] | undefined) ?? []; // an older server has none
    return lost.map((w) => ({
      id: w.workerId,
      name: w.name ?? '',
      machine: w.machineId,
      queue: w.queue,
      version: '',
      zone: '',
      how: 'OFFLINE',
      beat: w.lastHeartbeatAt,
      held: 0,
      ended: w.lostAt,
      why: w.reason,
      round: 0,
    }));
  }, [system.value]);
}

// useFleet has the workers that are not OFFLINE and those that recently went OFFLINE; with offline, all.
export function useFleet(offline: boolean): Fleet {
  const at = use(scope);
  const lost = useLost();
  const cells = useRef(new Map<string, Cell>());
  const [shown, show] = useState<Omit<Fleet, 'again'>>({ cells: [], error: null, at: 0, whole: false, capped: false });
  const again = useRef<() => void>(() => undefined);
  useEffect(() => {
    let over = false,
      round = 0,
      whole = false,
      error: ApiError | null = null,
      read = 0,
      dirty = true,
      timer = 0,
      capped = false;
    cells.current = new Map();
    const stop = new AbortController();
    const sleep = (ms: number): Promise<void> =>
      new Promise((r) => {
        timer = window.setTimeout(r, ms);
        again.current = () => {
          clearTimeout(timer);
          r();
        };
      });
    const keep = (c: Cell): void => {
      if (c.how === 'OFFLINE' && !offline && !recent(c)) cells.current.delete(c.id);
      else if (cells.current.size >= atMost && !cells.current.has(c.id)) capped = true;
      else cells.current.set(c.id, c);
    };
    const run = async (): Promise<void> => {
      while (!over) {
        let pageToken: string | undefined,
          failed = false;
        round++;
        do {
          if ((paused.value && whole) || document.hidden) {
            await sleep(500);
            failed = true;
            if (over) return;
            continue;
          }
          try {
            const page = await get<{ workers: Worker[]; nextPageToken?: string }>('v1/workers', { pageSize: 100, pageToken }, stop.signal);
            for (const w of page.workers) keep(cell(w, round));
            pageToken = page.nextPageToken;
            failed = false;
            error = null;
            read = Date.now();
            dirty = true;
          } catch (e) {
            if (over) return;
            error = e instanceof ApiError ? e : new ApiError(0, 'failed', String(e));
            dirty = failed = true;
            if (error.code === 'invalid_request') pageToken = undefined;
            await sleep(3000);
          }
          if (whole && !failed) await sleep(calm);
        } while (!over && (pageToken !== undefined || failed));
        for (const [id, c] of cells.current) if (c.round < round) cells.current.delete(id);
        whole = dirty = true;
        await sleep(pause);
      }
    };
    let applied = new Set<string>();
    const stopEvents = received.follow(() => {
      const fresh = received.value.events.filter((e) => !applied.has(e.id)).reverse(); // oldest first, so that the newest applies
      applied = new Set(received.value.events.map((e) => e.id));
      for (const e of fresh) {
        const how = fromEvent[e.type],
          c = cells.current.get(e.subject ?? '');
        if (!how || !c || c.how === how || c.how === 'OFFLINE' || (c.beat && e.time <= c.beat)) continue;
        cells.current.set(c.id, { ...c, how, ...(how === 'OFFLINE' && { ended: e.time, why: e.cause ?? '' }) });
        dirty = true;
      }
    });
    const draw = setInterval(() => {
      if (!dirty) return;
      dirty = false;
      show({ cells: [...cells.current.values()], error, at: read, whole, capped });
    }, 250);
    void run();
    return () => {
      over = true;
      stop.abort();
      clearTimeout(timer);
      clearInterval(draw);
      stopEvents();
    };
  }, [JSON.stringify(at), offline]);
  const all = useMemo(() => {
    const known = new Set(shown.cells.map((c) => c.id));
    return [...shown.cells, ...lost.filter((c) => !known.has(c.id) && recent(c))].sort((a, b) => (a.id < b.id ? -1 : 1));
  }, [shown.cells, lost]);
  return { ...shown, cells: all, again: () => again.current() };
}
