import { render, type JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, call, get, reach, serverNow, type Query, type ScopeList, type Task, type Worker } from './api';
import { ActDialog, done, forbidden } from './acts';
import { paused, second } from './data';
import { escapeAll } from './escape';
import { keepFocus } from './focus';
import { kindOf, WithIds } from './ids';
import { KeysDialog, keysShown, useKeys } from './keys';
import { beginSignIn, findProvider, finishSignIn, signingIn, type Provider } from './oidc';
import { shareSession } from './tabs';
import { span } from './format';
import { Events, eventFields } from './pages/events';
import { Losses } from './pages/losses';
import { Overview } from './pages/overview';
import { Pulse } from './pages/pulse';
import { QueuePage, Queues, RunPage, Runs } from './pages/queues';
import { EditSchedule, NewSchedule } from './pages/scheduleform';
import { SchedulePage, Schedules, WebhookPage, Webhooks } from './pages/schedules';
import { SystemPage } from './pages/system';
import { TaskPage } from './pages/task';
import { TaskForm } from './pages/taskform';
import { Tasks } from './pages/tasks';
import { Tokens } from './pages/tokens';
import { EditWebhook, NewWebhook } from './pages/webhookform';
import { MachinePage, WorkerPage } from './pages/worker';
import { Machines, Workers } from './pages/workers';
import { kinds, Title } from './parts';
import { go, href, reroute, useRoute, type Route } from './route';
import { begin, choose, read, scope, session, signedOut, signIn, signOut, stored, wide, type Scope } from './session';
import { use } from './signal';
import { followFor, streaming, unfollow } from './stream';
import { chosen, next as nextTheme } from './theme';

interface Page {
  path: string;
  title: string;
  op: string;
  all: () => JSX.Element;
  one?: (p: { id: string }) => JSX.Element;
  under?: string; // the page that opens it, instead of the navigation
}

const pages: Page[] = [
  { path: '', title: 'Overview', op: 'getStats', all: Overview },
  { path: 'pulse', title: 'Pulse', op: 'listWorkers', all: Pulse },
  { path: 'tasks', title: 'Tasks', op: 'listTasks', all: Tasks, one: TaskPage },
  { path: 'workers', title: 'Workers', op: 'listWorkers', all: Workers, one: WorkerPage },
  { path: 'machines', title: 'Machines', op: 'listMachines', all: Machines, one: MachinePage },
  { path: 'queues', title: 'Queues', op: 'listQueues', all: Queues, one: QueuePage },
  { path: 'runs', title: 'Runs', op: 'listTasks', all: Runs, one: RunPage },
  { path: 'schedules', title: 'Schedules', op: 'listSchedules', all: Schedules, one: SchedulePage },
  { path: 'webhooks', title: 'Webhooks', op: 'listWebhooks', all: Webhooks, one: WebhookPage },
  { path: 'events', title: 'Events', op: 'listEvents', all: Events },
  { path: 'losses', title: 'Losses', op: 'countVerdicts', all: Losses },
  { path: 'tokens', title: 'Tokens', op: 'createToken', all: Tokens },
  { path: 'system', title: 'System', op: 'getSystem', all: SystemPage },
  { path: 'task-form', title: 'Create task', op: 'createTask', all: TaskForm, under: 'tasks' },
  { path: 'schedule-form', title: 'Schedule', op: 'createSchedule', all: NewSchedule, one: EditSchedule, under: 'schedules' },
  { path: 'webhook-form', title: 'Webhook', op: 'createWebhook', all: NewWebhook, one: EditWebhook, under: 'webhooks' },
];

function App(): JSX.Element {
  const who = use(session);
  useEffect(() => {
    if (!who) unfollow();
  }, [who]);
  return who ? <Shell /> : <SignIn />;
}

function SignIn(): JSX.Element {
  const why = use(signedOut),
    busy = use(signingIn);
  const [bad, setBad] = useState('');
  const [provider, setProvider] = useState<Provider | null>(null);
  useEffect(() => void findProvider().then(setProvider), []);
  const enter = async (e: SubmitEvent): Promise<void> => {
    e.preventDefault();
    const form = new FormData(e.currentTarget as HTMLFormElement);
    const token = String(form.get('token') ?? '').trim();
    if (!read(token)) return setBad('This is not a Lubdub control token. It looks like eyJ….eyJ….…');
    const tenantId = String(form.get('tenant') ?? '').trim(),
      workspaceId = String(form.get('workspace') ?? '').trim();
    signIn(token, tenantId && workspaceId ? { tenantId, workspaceId } : null);
  };
  return (
    <main class="signin">
      <h1>
        <Logo /> Lubdub
      </h1>
      {why && (
        <p class="failed" role="alert">
          {why}
        </p>
      )}
      {provider && (
        <button type="button" class="primary" disabled={busy} onClick={() => void beginSignIn(provider)}>
          {busy ? 'Signing in…' : `Sign in with ${new URL(provider.issuer).host}`}
        </button>
      )}
      <form onSubmit={(e) => void enter(e)}>
        <label>
          Control token
          <textarea name="token" rows={4} required spellcheck={false} autoComplete="off" aria-describedby="token-help" />
        </label>
        {bad && (
          <p class="failed" role="alert">
            {bad}
          </p>
        )}
        <p id="token-help" class="dim">
          <code>lubdub ui</code> opens this page signed in; <code>lubdub token --role viewer</code> prints a token to paste. It is stored
          until the tabs of this page are closed.
        </p>
        <button type="submit" class={provider ? '' : 'primary'}>
          {provider ? 'Sign in with this token' : 'Sign in'}
        </button>
      </form>
    </main>
  );
}

const Logo = (): JSX.Element => (
  <svg viewBox="0 0 32 20" width="32" height="20" aria-hidden="true" class="logo">
    <path d="M1 11h6l3-8 5 15 4-11 2 4h10" />
  </svg>
);

// watched returns the filter of the event stream: the object that the page shows, or the rare events that change its numbers.
function watched(r: Route): Query {
  const [page, id] = r.path;
  if (page === 'events') return Object.fromEntries(eventFields.map((f) => [f, r.query.get(f) ?? '']));
  if (id && page === 'machines') return { machineId: id };
  if (id && page === 'runs') return { runId: id };
  if (id && page === 'queues') return { queue: id, type: 'task.zombie,task.failed' };
  if (id) return { subject: id };
  return { type: 'worker.*,machine.*,system.*,task.zombie' };
}

function Shell(): JSX.Element {
  const route = useRoute(),
    at = use(scope),
    who = session.value!;
  const [name = '', id] = route.path;
  const page = pages.find((p) => p.path === name),
    no = page && forbidden(page.op);
  const ready = !wide(who) || !!at;
  useEffect(() => {
    if (!ready || forbidden('listEvents')) unfollow();
    else followFor(watched(route));
  }, [ready, JSON.stringify(watched(route)), at, who.token]);
  useKeys();
  const Page = page?.all,
    Detail = page?.one;
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(e) => {
          e.preventDefault();
          document.querySelector<HTMLElement>('main h1')?.focus();
        }}
      >
        Skip to the page
      </a>
      <header class="top">
        <a class="brand" href={href('')}>
          <Logo />
          Lubdub
        </a>
        <Scopes />
        <Search />
        <Connection />
        <Who />
      </header>
      <nav aria-label="Pages">
        <ul>
          {pages
            .filter((p) => !p.under)
            .map(({ path, title }) => (
              <li key={path}>
                <a href={href(path)} aria-current={path === name ? (id ? 'true' : 'page') : path === page?.under ? 'true' : undefined}>
                  {title}
                </a>
              </li>
            ))}
        </ul>
      </nav>
      <main id="main">
        {!ready ? (
          <>
            <Title name="Choose">Choose a workspace</Title>
            <p>The token is valid for several; choose one above.</p>
          </>
        ) : page && no ? (
          <>
            <Title name={page.title}>{page.title}</Title>
            <div class="failed">
              <p>
                <strong>Not allowed.</strong> {no}
              </p>
            </div>
          </>
        ) : id && Detail ? (
          <Detail key={id} id={id} />
        ) : Page && !id ? (
          <Page key={name} />
        ) : (
          <NoPage />
        )}
      </main>
      <Toast />
      <ActDialog />
      <KeysDialog />
    </>
  );
}

function NoPage(): JSX.Element {
  return (
    <>
      <Title name="Not found">Page not found</Title>
      <p>
        <a href={href('')}>Go to the overview</a>, or press <kbd>/</kbd> to search by id.
      </p>
    </>
  );
}

function Scopes(): JSX.Element | null {
  const who = use(session),
    at = use(scope);
  const [all, set] = useState<Scope[]>([]);
  const [more, setMore] = useState(false);
  useEffect(() => {
    if (!who || !wide(who)) return;
    const load = (): void =>
      void call<ScopeList>('GET', 'v1/scopes', { everywhere: true }).then(
        (l) => {
          set(l.scopes);
          setMore(!!l.nextPageToken);
          const first = l.scopes[0];
          if (!scope.value && first) choose(first);
        },
        () => undefined,
      );
    load();
    const timer = setInterval(load, 60_000);
    return () => clearInterval(timer);
  }, [who]);
  if (!who) return null;
  if (!wide(who))
    return (
      <span class="scope">
        {who.tenant} / {who.workspace}
      </span>
    );
  const text = (s: Scope): string => `${s.tenantId}/${s.workspaceId}`;
  const shown = at && !all.some((s) => text(s) === text(at)) ? [at, ...all] : all;
  return (
    <label class="scope">
      <span class="sr">Workspace</span>
      <select
        value={at ? text(at) : ''}
        title={more ? 'The first hundred are listed' : undefined}
        onChange={(e) => {
          const to = shown.find((s) => text(s) === e.currentTarget.value);
          if (to) {
            choose(to);
            go(href(''));
          }
        }}
      >
        {!at && <option value="">choose</option>}
        {shown.map((s) => (
          <option key={text(s)} value={text(s)}>
            {s.tenantId} / {s.workspaceId}
          </option>
        ))}
      </select>
    </label>
  );
}

// Connection shows whether the data is current, and how it is read.
function Connection(): JSX.Element {
  const held = use(paused),
    how = use(streaming),
    net = use(reach);
  const [word, why] = held
    ? ['Paused', 'What is shown is not updated until you resume or start an action']
    : !net.ok
      ? ['Offline', net.why]
      : how === 'open'
        ? ['Live', 'Events are streamed, and numbers are read every few seconds']
        : ['Polling', 'Read every few seconds; events are not streamed'];
  return (
    <div class="connection">
      <span class={`st st-${word}`} role="status" title={why}>
        <i aria-hidden="true" />
        {word}
      </span>
      <button type="button" aria-pressed={held} onClick={() => paused.set(!held)}>
        {held ? 'Resume' : 'Pause'}
      </button>
    </div>
  );
}

function Who(): JSX.Element | null {
  use(second);
  const who = use(session),
    kept = use(stored),
    look = use(chosen);
  if (!who) return null;
  const left = kept?.refreshToken ? Infinity : who.expires - serverNow();
  return (
    <div class="who">
      <span title={who.subject ? `signed in as ${who.subject}` : 'the token has no subject'}>
        {who.role}
        {left < 600_000 && <b class="bad"> · {left > 0 ? `expires in ${span(left)}` : 'expired'}</b>}
      </span>
      <button type="button" onClick={nextTheme} aria-label={`Theme: ${look}`} title={`Theme: ${look}`}>
        {look === 'auto' ? '◐' : look === 'light' ? '○' : '●'}
      </button>
      <button type="button" onClick={() => keysShown.set(true)} aria-label="Keys" title="Keys ( ? )">
        ?
      </button>
      <button type="button" onClick={() => signOut('')}>
        Sign out
      </button>
    </div>
  );
}

// Search opens the object with this id. An id with a known prefix is opened without a request.
function Search(): JSX.Element {
  const [found, set] = useState<{ kind: keyof typeof kinds; id: string }[] | string>([]);
  const box = useRef<HTMLInputElement>(null);
  const open = (kind: keyof typeof kinds, id: string): void => {
    set([]);
    box.current!.value = '';
    box.current!.blur(); // the page's heading gets the focus
    go(href(`${kinds[kind]}/${id}`));
  };
  const search = async (id: string): Promise<void> => {
    set([]);
    if (!id) return;
    const known = kindOf(id);
    if (known) return open(known, id);
    set('Searching …');
    const tried = await Promise.allSettled(
      (Object.keys(kinds) as (keyof typeof kinds)[])
        .filter((k) => !forbidden(pages.find((p) => p.path === kinds[k])?.op ?? ''))
        .map(async (kind) => {
          if (kind === 'run') {
            // a run exists if it has tasks
            const l = await get<{ tasks: Task[] }>('v1/tasks', { runId: id, pageSize: 1 });
            if (!l.tasks.length) throw new ApiError(404, '', '');
          } else if (kind === 'machine') {
            const l = await get<{ workers: Worker[] }>('v1/workers', { machineId: id, pageSize: 1 });
            if (!l.workers.length) throw new ApiError(404, '', '');
          } else await get(`v1/${kinds[kind]}/${encodeURIComponent(id)}`);
          return { kind, id };
        }),
    );
    const hits = tried.flatMap((t) => (t.status === 'fulfilled' ? [t.value] : []));
    if (hits.length === 1) return open(hits[0]!.kind, id);
    const broken = tried.some(
      (t) => t.status === 'rejected' && !(t.reason instanceof ApiError && [400, 403, 404].includes(t.reason.status)),
    );
    set(
      hits.length
        ? hits
        : broken
          ? 'The search failed: not every kind of object could be searched. Try again.'
          : `Nothing here has the id ${id}: tasks, runs, workers, machines, queues, schedules and webhooks were searched.`,
    );
  };
  return (
    <form
      class="search"
      role="search"
      onSubmit={(e) => {
        e.preventDefault();
        void search(String(new FormData(e.currentTarget).get('id')).trim());
      }}
    >
      <label>
        <span class="sr">Search by id</span>
        <input
          ref={box}
          name="id"
          type="search"
          placeholder="Search by id  ( / )"
          autoComplete="off"
          spellcheck={false}
          onInput={() => set([])}
        />
      </label>
      {found.length > 0 && (
        <div class="found" role="status">
          {typeof found === 'string' ? (
            found
          ) : (
            <ul>
              {found.map((f) => (
                <li key={f.kind}>
                  <a href={href(`${kinds[f.kind]}/${f.id}`)} onClick={() => set([])}>
                    {f.kind} {f.id}
                  </a>
                </li>
              ))}
            </ul>
          )}
        </div>
      )}
    </form>
  );
}

function Toast(): JSX.Element {
  const it = use(done);
  const timer = useRef(0);
  useEffect(() => {
    clearTimeout(timer.current);
    if (it && !it.failed) timer.current = window.setTimeout(() => done.set(null), 8000);
  }, [it]);
  return (
    <div class="toast" role="status" aria-live="polite">
      {it && (
        <p class={it.failed ? 'failed' : ''}>
          <WithIds text={it.text} />{' '}
          <button type="button" aria-label="Close" onClick={() => done.set(null)}>
            ×
          </button>
        </p>
      )}
    </div>
  );
}

escapeAll();
keepFocus();
begin();
shareSession();
void finishSignIn();
window.addEventListener('hashchange', () => {
  if (/[#&?]token=/.test(location.hash)) {
    begin();
    reroute();
  }
});
reroute();
render(<App />, document.getElementById('app')!);
