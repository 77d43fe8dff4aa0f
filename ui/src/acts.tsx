import { toChildArray, type ComponentChildren, type JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, get, post, type Delivery, type Task } from './api';
import { onAll, onIds, type Options, type Selector } from './cli';
import { acted } from './data';
import { count, list, number } from './format';
import { rolesOf } from './roles.gen';
import { session } from './session';
import { Signal, use } from './signal';

// The actions on each kind of object. The server enforces permissions; actions that the role forbids are disabled, with the reason.

interface Counted {
  matched: number;
  wouldDo?: number;
  done?: number;
  draining?: number;
  refused?: Record<string, number>;
  nextPageToken?: string;
}

interface Act {
  noun: string;
  verb: string;
  label: string;
  past: string;
  op: string;
  opMany?: string;
  effect: string;
  danger?: boolean;
  reason?: boolean;
  grace?: boolean;
  deadline?: boolean;
  others?: string; // why some matching objects are left unchanged
  one: (id: string, o: Options) => Promise<unknown>;
  many?: (selector: Selector, dryRun: boolean, o: Options, pageToken?: string) => Promise<Counted>;
}

const enc = encodeURIComponent;

// The last test message, whose answer its page shows.
export const tested = new Signal<{ webhookId: string; delivery: Delivery } | null>(null);
const because = (o: Options): object => (o.reason ? { reason: o.reason } : {});

function selectorBody({ label, ...rest }: Selector): object {
  const s = Object.fromEntries(Object.entries(rest).filter(([, v]) => v));
  const labels = Object.fromEntries(
    (label ?? '')
      .split(',')
      .filter(Boolean)
      .map((l) => {
        const [k = '', ...v] = l.trim().split('=');
        return [k, v.join('=')];
      }),
  );
  return { ...s, ...(label ? { labels } : {}) };
}

// includesEnded reports whether a selector may match tasks that have ended. Otherwise these, which may be very many, are not selected,
// since they would be left unchanged; the command line does the same.
const includesEnded = (s: Selector): boolean => !!(s.state || s.reason);

const onWorkers =
  (verb: string) =>
  (s: Selector, dryRun: boolean, o: Options): Promise<Counted> =>
    post(`v1/workers:${verb}`, {
      selector: selectorBody(s),
      dryRun,
      ...because(o),
      ...(o.deadlineMs === undefined ? {} : { deadlineMs: o.deadlineMs }),
    });
const onWorker =
  (verb: string) =>
  (id: string, o: Options): Promise<unknown> =>
    post(`v1/workers/${enc(id)}/${verb}`, {
      ...because(o),
      ...(o.deadlineMs === undefined ? {} : { deadlineMs: o.deadlineMs }),
    });

export const acts = {
  cancelTask: {
    noun: 'task',
    verb: 'cancel',
    label: 'Cancel',
    past: 'Cancelled',
    op: 'cancelTask',
    opMany: 'cancelTasks',
    danger: true,
    reason: true,
    grace: true,
    effect: 'Its worker is notified with its next heartbeat and must stop within the grace period.',
    others: 'have ended',
    one: (id, o) => post(`v1/tasks/${enc(id)}/cancel`, { ...because(o), ...(o.graceMs === undefined ? {} : { gracePeriodMs: o.graceMs }) }),
    many: (s, dryRun, o, pageToken) =>
      post('v1/tasks:cancel', {
        selector: selectorBody(includesEnded(s) ? s : { ...s, state: 'SCHEDULED,QUEUED,DISPATCHED,RUNNING' }),
        dryRun,
        ...because(o),
        pageToken,
        ...(o.graceMs === undefined ? {} : { gracePeriodMs: o.graceMs }),
      }),
  },
  retryTask: {
    noun: 'task',
    verb: 'retry',
    label: 'Retry',
    past: 'Retried',
    op: 'nextAttempt',
    opMany: 'retryTasks',
    effect: 'The next attempt begins; one that still runs is fenced off at once.',
    others: 'have not failed',
    one: async (id) => {
      const t = await get<Task>(`v1/tasks/${enc(id)}`);
      return post(`v1/tasks/${enc(id)}/attempts`, { fromAttempt: t.attempt });
    },
    many: (s, dryRun, _, pageToken) =>
      post('v1/tasks:retry', { selector: selectorBody({ ...s, state: s.state || 'FAILED' }), dryRun, pageToken }),
  },
  cancelRun: {
    noun: 'run',
    verb: 'cancel',
    label: 'Cancel run',
    past: 'Cancelled',
    op: 'cancelRun',
    danger: true,
    reason: true,
    grace: true,
    effect: 'Every task of the run is cancelled.',
    one: (id, o) => post(`v1/runs/${enc(id)}/cancel`, { ...because(o), ...(o.graceMs === undefined ? {} : { gracePeriodMs: o.graceMs }) }),
  },
  drainWorker: {
    noun: 'worker',
    verb: 'drain',
    label: 'Drain',
    past: 'Draining',
    op: 'drainWorker',
    opMany: 'drainWorkers',
    reason: true,
    deadline: true,
    effect: 'It takes no new tasks, and goes OFFLINE when its tasks have ended or the deadline has passed.',
    one: onWorker('drain'),
    many: onWorkers('drain'),
  },
  cordonWorker: {
    noun: 'worker',
    verb: 'cordon',
    label: 'Cordon',
    past: 'Cordoned',
    op: 'cordonWorker',
    opMany: 'cordonWorkers',
    reason: true,
    effect: 'It takes nothing new and stays ONLINE.',
    one: onWorker('cordon'),
    many: onWorkers('cordon'),
  },
  uncordonWorker: {
    noun: 'worker',
    verb: 'uncordon',
    label: 'Uncordon',
    past: 'Uncordoned',
    op: 'uncordonWorker',
    opMany: 'uncordonWorkers',
    reason: true,
    effect: 'It takes work again.',
    one: onWorker('uncordon'),
    many: onWorkers('uncordon'),
  },
  resumeWorker: {
    noun: 'worker',
    verb: 'resume',
    label: 'Resume',
    past: 'Resumed',
    op: 'resumeWorker',
    opMany: 'resumeWorkers',
    reason: true,
    effect: 'Its drain or hold is undone: it takes tasks again, or may register again.',
    one: onWorker('resume'),
    many: onWorkers('resume'),
  },
  offlineWorker: {
    noun: 'worker',
    verb: 'offline',
    label: 'Take offline',
    past: 'Took offline',
    op: 'offlineWorker',
    opMany: 'offlineWorkers',
    danger: true,
    reason: true,
    effect: 'It is OFFLINE now, and what it holds goes to others at once. It cannot register again until it is resumed.',
    one: onWorker('offline'),
    many: onWorkers('offline'),
  },
  drainMachine: {
    noun: 'machine',
    verb: 'drain',
    label: 'Drain machine',
    past: 'Draining',
    op: 'drainMachine',
    reason: true,
    deadline: true,
    effect: 'All of its workers drain, and it takes no new ones until it is resumed.',
    one: (id, o) =>
      post(`v1/machines/${enc(id)}/drain`, { ...because(o), ...(o.deadlineMs === undefined ? {} : { deadlineMs: o.deadlineMs }) }),
  },
  offlineMachine: {
    noun: 'machine',
    verb: 'offline',
    label: 'Take machine offline',
    past: 'Took offline',
    op: 'offlineMachine',
    danger: true,
    reason: true,
    effect: 'All of its workers are OFFLINE now, what they hold goes to others, and no worker of it can register until it is resumed.',
    one: (id, o) => post(`v1/machines/${enc(id)}/offline`, because(o)),
  },
  resumeMachine: {
    noun: 'machine',
    verb: 'resume',
    label: 'Resume machine',
    past: 'Resumed',
    op: 'resumeMachine',
    reason: true,
    effect: 'It accepts workers again, and its draining workers resume.',
    one: (id, o) => post(`v1/machines/${enc(id)}/resume`, because(o)),
  },
  pauseQueue: {
    noun: 'queue',
    verb: 'pause',
    label: 'Pause queue',
    past: 'Paused',
    op: 'pauseQueue',
    reason: true,
    effect: 'No task is dispatched from it; running tasks continue.',
    one: (id, o) => post(`v1/queues/${enc(id)}/pause`, because(o)),
  },
  resumeQueue: {
    noun: 'queue',
    verb: 'resume',
    label: 'Resume queue',
    past: 'Resumed',
    op: 'resumeQueue',
    effect: 'Its tasks are dispatched again.',
    one: (id) => post(`v1/queues/${enc(id)}/resume`),
  },
  pauseSchedule: {
    noun: 'schedule',
    verb: 'pause',
    label: 'Pause schedule',
    past: 'Paused',
    op: 'pauseSchedule',
    effect: 'It creates no tasks until it is resumed.',
    one: (id) => post(`v1/schedules/${enc(id)}/pause`),
  },
  resumeSchedule: {
    noun: 'schedule',
    verb: 'resume',
    label: 'Resume schedule',
    past: 'Resumed',
    op: 'resumeSchedule',
    effect: 'It fires again, and catches up missed fires up to its limit.',
    one: (id) => post(`v1/schedules/${enc(id)}/resume`),
  },
  fireSchedule: {
    noun: 'schedule',
    verb: 'fire',
    label: 'Fire now',
    past: 'Fired',
    op: 'fireSchedule',
    effect: 'Its task is created now, in addition to its schedule.',
    one: (id) => post(`v1/schedules/${enc(id)}/fire`),
  },
  testWebhook: {
    noun: 'webhook',
    verb: 'test',
    label: 'Send a test',
    past: 'Sent a test to',
    op: 'testWebhook',
    effect: 'A message of type webhook.test is sent to it.',
    one: async (id) => tested.set({ webhookId: id, delivery: await post<Delivery>(`v1/webhooks/${enc(id)}/test`) }),
  },
  redeliver: {
    noun: 'webhook',
    verb: 'redeliver',
    label: 'Redeliver',
    past: 'Redelivered',
    op: 'redeliver',
    effect: 'The message is sent again now.',
    one: (id) => {
      const [hook = '', deliveryId] = id.split(' ');
      return post(`v1/webhooks/${enc(hook)}/redeliver`, { deliveryId });
    },
  },
  release: {
    noun: 'system',
    verb: 'release',
    label: 'Release the brake',
    past: 'Released the brake',
    op: 'releaseBrake',
    danger: true,
    effect: 'What the mass-expiry brake holds here expires now, and nothing is held for ten minutes.',
    one: () => post('v1/system:release'),
  },
  sweep: {
    noun: 'system',
    verb: 'sweep',
    label: 'Sweep now',
    past: 'Swept',
    op: 'sweep',
    effect: 'One sweep of everything now, in addition to the sweepers.',
    one: () => post('v1/system:sweep'),
  },
} satisfies Record<string, Act>;

export type ActName = keyof typeof acts;
export type Target = { ids: string[] } | { selector: Selector };

// forbidden returns why this role may not perform an action; "" if it may.
export function forbidden(op: string): string {
  const role = session.value?.role ?? '';
  const may = rolesOf[op] ?? [];
  return may.includes(role) ? '' : `The role ${role} may not do this; it takes ${list([...may]).replace(' and ', ' or ')}.`;
}

export const pendingAction = new Signal<{ act: ActName; on: Target } | null>(null);
export const done = new Signal<{ text: string; failed: boolean } | null>(null);

export function ActButton({ act, on, label, why }: { act: ActName; on: Target; label?: string; why?: string }): JSX.Element {
  use(session);
  const a: Act = acts[act];
  const no = forbidden('selector' in on ? (a.opMany ?? a.op) : a.op) || why || '';
  return (
    <button
      type="button"
      class={a.danger ? 'danger' : ''}
      aria-disabled={no ? 'true' : undefined}
      title={no || a.effect}
      onClick={() => {
        if (!no) pendingAction.set({ act, on });
      }}
    >
      {label ?? a.label}
      {no && <span class="sr">. {no}</span>}
    </button>
  );
}

// Acts is a row of buttons. The reason why some are disabled is shown once as text.
export function Acts({ names, on, note }: { names: ActName[]; on: Target; note?: string }): JSX.Element {
  use(session);
  const no = [...new Set(names.map((n) => forbidden(acts[n].op)).filter(Boolean))];
  return (
    <div class="acts">
      {names.map((n, i) => (
        <ActButton key={i} act={n} on={on} />
      ))}
      {(no[0] ?? note) && <span class="why">{no[0] ?? note}</span>}
    </div>
  );
}

// ActBar has the groups of actions that have objects to act on. It sticks to the end of the window, so that no row moves when it appears.
export function ActBar({ children }: { children: ComponentChildren }): JSX.Element | null {
  return toChildArray(children).length ? <div class="actbar">{children}</div> : null;
}

const parallel = 4;

async function onEach(a: Act, ids: string[], o: Options, onProgress: (done: number) => void): Promise<Map<string, string[]>> {
  const refused = new Map<string, string[]>();
  const rest = [...ids];
  let finished = 0;
  const work = async (): Promise<void> => {
    for (let id = rest.shift(); id !== undefined; id = rest.shift()) {
      try {
        await a.one(id, o);
      } catch (e) {
        const why = e instanceof ApiError ? e.message : String(e);
        refused.set(why, [...(refused.get(why) ?? []), id]);
      }
      onProgress(++finished);
    }
  };
  await Promise.all(Array.from({ length: Math.min(parallel, ids.length) }, work));
  return refused;
}

const shown = (ids: string[]): string => list(ids.slice(0, 3)) + (ids.length > 3 ? ` and ${ids.length - 3} more` : '');

export function ActDialog(): JSX.Element | null {
  const on = use(pendingAction);
  return on && <ConfirmDialog key={on.act + JSON.stringify(on.on)} act={on.act} on={on.on} />;
}

// doneText describes the result of an action: one object by its name, several by their number.
function doneText(a: Act, n: number, ids: string[] = []): string {
  if (a.noun === 'system') return a.past;
  return `${a.past} ${ids.length === 1 && n === 1 ? `${a.noun} ${ids[0]}` : count(n, a.noun)}`;
}

// Count is how many objects match, as far as the server has counted them, and how many of these the action would change.
interface Count {
  matched: number;
  due: number;
  more: boolean;
}

function countText({ matched, due, more }: Count, a: Act): string {
  const those = `${count(matched, a.noun)} ${matched === 1 ? 'matches' : 'match'}`;
  const not =
    matched > due
      ? `, of which ${number(matched - due)} ${a.others ?? 'need nothing'} and ${matched - due === 1 ? 'is' : 'are'} left alone`
      : '';
  return `${more ? `${those} so far${not}; still counting` : those + not}. Nothing has changed yet.`;
}

function ConfirmDialog({ act, on }: { act: ActName; on: Target }): JSX.Element {
  const a: Act = acts[act];
  const box = useRef<HTMLDialogElement>(null);
  const [o, set] = useState<Options>({});
  const [counted, setCounted] = useState<Count | null>('ids' in on ? { matched: on.ids.length, due: on.ids.length, more: false } : null);
  const counting = useRef(true);
  const [busy, setBusy] = useState('');
  const [failed, setFailed] = useState('');
  useEffect(() => {
    box.current?.showModal();
    const many = a.many;
    if (!('selector' in on) || !many) return;
    const dryRun = async (): Promise<void> => {
      let page: string | undefined,
        matched = 0,
        due = 0;
      do {
        const c = await many(on.selector, true, {}, page);
        if (!counting.current) return;
        page = c.nextPageToken;
        matched += c.matched;
        due += c.wouldDo ?? c.matched;
        setCounted({ matched, due, more: !!page });
      } while (page);
    };
    dryRun().catch((e: unknown) => {
      if (counting.current) setFailed(e instanceof Error ? e.message : String(e));
    });
    return () => {
      counting.current = false;
    };
  }, []);
  const close = (): void => {
    box.current?.close();
    pendingAction.set(null);
  };
  const submit = async (): Promise<void> => {
    setBusy('Working …');
    setFailed('');
    counting.current = false;
    let n = 0;
    try {
      let text = '',
        wrong = false;
      if ('ids' in on) {
        const refused = await onEach(a, on.ids, o, (n) => setBusy(`${n} of ${on.ids.length} …`));
        const bad = [...refused.values()].flat().length;
        wrong = bad > 0;
        text = doneText(a, on.ids.length - bad, on.ids) + [...refused].map(([why, ids]) => `; ${shown(ids)}: ${why}`).join('');
        if (bad === on.ids.length && bad === 1) {
          setFailed([...refused.keys()][0] ?? '');
          setBusy('');
          return;
        }
      } else if (a.many) {
        let page: string | undefined;
        const refused: Record<string, number> = {};
        do {
          const c = await a.many(on.selector, false, o, page);
          n += c.done ?? c.draining ?? 0;
          for (const [code, times] of Object.entries(c.refused ?? {})) refused[code] = (refused[code] ?? 0) + times;
          page = c.nextPageToken;
          setBusy(`${n} done …`);
        } while (page);
        text =
          doneText(a, n) +
          Object.entries(refused)
            .map(([code, times]) => `; ${times} refused (${code})`)
            .join('');
        wrong = Object.keys(refused).length > 0;
      }
      done.set({ text, failed: wrong });
      acted.set(acted.value + 1);
      close();
    } catch (e) {
      const why = e instanceof Error ? e.message : String(e);
      setFailed('selector' in on ? `${why}. ${doneText(a, n)} so far; submit again to continue with the rest.` : why);
      setBusy('');
    }
  };
  const cli = 'ids' in on ? onIds(a.noun, a.verb, on.ids, o) : onAll(a.noun, a.verb, on.selector, o);
  const due = counted?.due ?? 0,
    least = counted?.more ? 'at least ' : '';
  const what =
    a.noun === 'system'
      ? ''
      : !counted
        ? `the ${a.noun}s that match`
        : 'ids' in on && on.ids.length === 1
          ? on.ids[0]
          : least + count(due, a.noun);
  const ms = (text: string): number | undefined => (text === '' ? undefined : Math.round(Number(text) * 1000));
  return (
    <dialog ref={box} aria-labelledby="act-title" onClose={() => pendingAction.set(null)}>
      <form
        method="dialog"
        onSubmit={(e) => {
          e.preventDefault();
          if (!busy && due) void submit();
        }}
      >
        <h2 id="act-title">
          {a.label} <span class="id">{what}</span>
        </h2>
        <p>{a.effect}</p>
        {'selector' in on && (
          <p class="count" role="status">
            {failed ? '' : counted ? countText(counted, a) : 'Counting …'}
          </p>
        )}
        {a.reason && (
          <label>
            Reason{' '}
            <input
              name="reason"
              maxLength={200}
              autoComplete="off"
              placeholder="shown in events and history"
              onInput={(e) => set({ ...o, reason: e.currentTarget.value })}
            />
          </label>
        )}
        {a.grace && (
          <label>
            Grace period, seconds{' '}
            <input
              name="grace"
              type="number"
              min="0"
              max="86400"
              step="any"
              placeholder="the task's own; 0 ends it now"
              onInput={(e) => set({ ...o, graceMs: ms(e.currentTarget.value) })}
            />
          </label>
        )}
        {a.deadline && (
          <label>
            Deadline, seconds from now{' '}
            <input
              name="deadline"
              type="number"
              min="0"
              max="86400"
              step="any"
              placeholder="none: wait for its work"
              onInput={(e) => set({ ...o, deadlineMs: ms(e.currentTarget.value) })}
            />
          </label>
        )}
        <p class="cli">
          The same on the command line:<code tabIndex={0}>{cli}</code>
        </p>
        {failed && (
          <p class="failed" role="alert">
            {failed}
          </p>
        )}
        <div class="acts end">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class={a.danger ? 'danger primary' : 'primary'} disabled={!due} aria-disabled={busy ? 'true' : undefined}>
            {busy || `${a.label}${due > 1 ? ` ${least}${count(due, a.noun)}` : ''}`}
          </button>
        </div>
      </form>
    </dialog>
  );
}
