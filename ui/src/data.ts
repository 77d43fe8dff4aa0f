import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from './api';
import { scope } from './session';
import { Signal, use } from './signal';

// What a page shows: what was read last, and what went wrong since. A failed read keeps the old value, which is then marked as old.
export interface Data<T> {
  value?: T;
  error?: ApiError;
  at?: number;
  refresh: () => void;
}

export const paused = new Signal(false);
export const changed = new Signal(0); // counts what the stream of events has told
export const acted = new Signal(0); // counts what was done here, whose effect is shown at once, with Pause on too
export const second = new Signal(0); // ticks, for ages
setInterval(() => {
  if (!document.hidden) second.set(second.value + 1);
}, 1000);

const soonest = 1500; // ms between two reads that events ask for

export function useData<T>(key: string, load: (signal: AbortSignal) => Promise<T>, every = 5000, rarest = 30_000): Data<T> {
  // rarest: ms between two reads while they fail
  const at = use(scope);
  const full = key + '|' + JSON.stringify(at);
  const [state, set] = useState<{ key: string; value?: T; error?: ApiError; at?: number }>({ key: full });
  const reader = useRef(load);
  reader.current = load;
  const again = useRef<() => void>(() => undefined);
  useEffect(() => {
    let over = false,
      timer = 0,
      failures = 0,
      last = 0;
    const stop = new AbortController();
    const later = (ms: number): void => {
      clearTimeout(timer);
      timer = window.setTimeout(run, ms);
    };
    let running = false,
      wanted = false; // wanted: once more, since what was asked for may be newer than what is being read
    const run = async (): Promise<void> => {
      clearTimeout(timer);
      if (over || running) return;
      if (document.hidden && last) return later(1000);
      running = true;
      last = Date.now();
      try {
        const value = await reader.current(stop.signal);
        failures = 0;
        if (!over) set({ key: full, value, at: Date.now() });
      } catch (e) {
        if (over) return;
        failures++;
        const error = e instanceof ApiError ? e : new ApiError(0, 'failed', String(e));
        set((old) => ({ key: full, error, ...(old.key === full ? { value: old.value, at: old.at } : {}) }));
      } finally {
        running = false;
      }
      if (wanted) {
        wanted = false;
        return void run();
      }
      if (!over && every > 0 && !paused.value) later(Math.min(every * 2 ** Math.min(failures, 4), Math.max(every, rarest)));
    };
    again.current = () => {
      wanted = running;
      void run();
    };
    void run();
    const asked = changed.follow(() => {
      if (!paused.value && every > 0) later(Math.max(0, last + soonest - Date.now()));
    });
    const held = paused.follow(() => {
      if (paused.value) clearTimeout(timer);
      else void run();
    });
    const did = acted.follow(() => again.current());
    return () => {
      over = true;
      clearTimeout(timer);
      stop.abort();
      asked();
      held();
      did();
    };
  }, [full, every]);
  return state.key === full ? { ...state, refresh: () => again.current() } : { refresh: () => again.current() };
}
