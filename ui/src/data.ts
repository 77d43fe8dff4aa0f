import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from './api';
import { scope } from './session';
import { Signal, use } from './signal';

// The data of a page: the value that was read last, and the error since. After a failed read the old value stays and is marked as old.
export interface Data<T> {
  value?: T;
  error?: ApiError;
  at?: number;
  refresh: () => void;
}

export const paused = new Signal(false);
export const changed = new Signal(0); // rises with each update from the stream of events
export const acted = new Signal(0); // rises with each action here; its effect is shown at once, even while paused
export const second = new Signal(0); // ticks, for ages
setInterval(() => {
  if (!document.hidden) second.set(second.value + 1);
}, 1000);

const leastBetween = 1500; // ms between two reads caused by events, at least

export function useData<T>(key: string, load: (signal: AbortSignal) => Promise<T>, every = 5000, longestRetry = 30_000): Data<T> {
  // longestRetry: ms between two reads while they fail, at most
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
      repeat = false; // repeat: read again, since the change may be newer than the read in progress
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
      if (repeat) {
        repeat = false;
        return void run();
      }
      if (!over && every > 0 && !paused.value) later(Math.min(every * 2 ** Math.min(failures, 4), Math.max(every, longestRetry)));
    };
    again.current = () => {
      repeat = running;
      void run();
    };
    void run();
    const stopChanges = changed.follow(() => {
      if (!paused.value && every > 0) later(Math.max(0, last + leastBetween - Date.now()));
    });
    const stopPaused = paused.follow(() => {
      if (paused.value) clearTimeout(timer);
      else void run();
    });
    const stopActed = acted.follow(() => again.current());
    return () => {
      over = true;
      clearTimeout(timer);
      stop.abort();
      stopChanges();
      stopPaused();
      stopActed();
    };
  }, [full, every]);
  return state.key === full ? { ...state, refresh: () => again.current() } : { refresh: () => again.current() };
}
