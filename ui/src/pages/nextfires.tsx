import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ApiError, get } from '../api';
import { Age, Moment } from '../parts';

const pause = 250; // ms without a key after which the server is asked

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const local = new Intl.DateTimeFormat('en-GB', { weekday: 'short', hour: '2-digit', minute: '2-digit', second: '2-digit' });

// NextFires shows when a cron expression fires, as it is typed.
export function NextFires({ id, cron }: { id: string; cron: string }): JSX.Element {
  const [found, set] = useState<{ next?: string[]; why?: string }>({});
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => {
      if (!cron) return set({});
      get<{ next: string[] }>(`v1/schedules/${encodeURIComponent(id)}/next`, { cron, count: 5 }, stop.signal).then(
        ({ next }) => set({ next }),
        (e: unknown) => {
          if (!stop.signal.aborted) set({ why: e instanceof ApiError ? e.message : String(e) });
        },
      );
    }, pause);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [id, cron]);
  return (
    <div class="next" role="status" aria-label="Next fires">
      {found.why ? (
        <p class="wrong">{found.why}</p>
      ) : found.next?.length ? (
        <>
          <p class="dim">It fires next{zone === 'UTC' ? '' : `, in UTC and in ${zone}`}:</p>
          <ol>
            {found.next.map((at) => (
              <li key={at}>
                <Moment at={at} />
                {zone !== 'UTC' && <span> · {local.format(new Date(at))}</span>}
              </li>
            ))}
          </ol>
          <p class="dim">
            The first is <Age at={found.next[0]} />.
          </p>
        </>
      ) : (
        <p class="dim">Here you will see when it fires.</p>
      )}
    </div>
  );
}
