import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { call, type System } from './api';
import { useData, paused, second, type Data } from './data';
import { age } from './format';
import { Healthy, Verdict } from './verdict';
import { use } from './signal';

// The state of the deployment. An old state is never shown as current: a response that fails or is late is reported instead.

export interface Health extends Data<System> {
  down: System | null; // what the server reports while Redis does not respond
  doubt: string; // what GET /healthz reports while GET /v1/system is late
}

const every = 2000,
  slow = 500,
  wait = 3000,
  longestRetry = 4000; // ms; slow: after which /healthz is called, which responds without Redis

export function useHealth(): Health {
  const [doubt, set] = useState('');
  const seen = useRef(0);
  const data = useData(
    'system',
    async (signal) => {
      const mine = ++seen.current;
      const late = setTimeout(
        () =>
          void call<{ status: string; message?: string }>('GET', 'healthz', { signal, wait, everywhere: true, quiet: true }).then(
            (h) => {
              if (mine === seen.current && h.status !== 'ok') set(h.message ?? '');
            },
            () => undefined,
          ),
        slow,
      );
      try {
        const system = await call<System>('GET', 'v1/system', { signal, wait });
        seen.current++;
        set('');
        return system;
      } finally {
        clearTimeout(late);
      }
    },
    every,
    longestRetry,
  );
  const body = data.error?.body as System | undefined;
  return { ...data, doubt, down: body?.summary && body.findings ? body : null };
}

// stale reports whether the state that was read may be out of date.
export const stale = (h: Health): boolean => !!h.error || !!h.doubt;

// outdated reports whether the last state is older than a read may take, as while the page is paused.
const outdated = ({ at }: Health): boolean => at !== undefined && Date.now() - at > every + wait && !document.hidden;

export function HealthBanner({ of }: { of: Health }): JSX.Element {
  use(second);
  const held = use(paused),
    { value, error, at, down, doubt } = of;
  const old = at === undefined ? 0 : Date.now() - at;
  const known = at === undefined ? '' : ` The numbers below are old: they were read ${age(old)}.`;
  if (down)
    return (
      <>
        <Verdict system={down} />
        {known && <p class="dim">{known}</p>}
      </>
    );
  if (doubt)
    return (
      <Alarm title="Redis is not responding; timeouts are paused">
        {doubt}. No worker and no task is failed for silence until it responds.{known}
      </Alarm>
    );
  if (error)
    return (
      <Alarm title="The state is unknown">
        {error.message}.{known}
      </Alarm>
    );
  if (!value)
    return (
      <p class="dim" role="status">
        Reading the state of the deployment …
      </p>
    );
  if (outdated(of))
    return (
      <div class="old">
        <Verdict system={value} />
        <p>
          {held ? 'Paused: this' : 'This'} was read {age(old)}.
        </p>
      </div>
    );
  return <Verdict system={value} />;
}

// HealthyParts is a quiet line at the end of a page: the parts that work, while that is known to be current.
export function HealthyParts({ of }: { of: Health }): JSX.Element | null {
  use(second);
  return stale(of) || outdated(of) ? null : <Healthy system={of.value} />;
}

function Alarm({ title, children }: { title: string; children: JSX.Element | (string | JSX.Element)[] | string }): JSX.Element {
  return (
    <section class="banner b-fail" aria-label="Health" role="status">
      <h2>{title}</h2>
      <p>{children}</p>
    </section>
  );
}
