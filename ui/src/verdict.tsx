import type { JSX } from 'preact';
import type { System } from './api';
import { line, where } from './cli';
import { href, useRoute } from './route';

type Finding = System['findings'][number];

// healthyIn returns the messages of healthy parts that the server added to its summary.
function healthyIn({ summary, findings }: System): string[] {
  return findings.filter((f) => f.severity === 'ok' && summary.message.includes(f.message)).map((f) => f.message);
}

// causeIn is the summary without them: what is wrong, or that nothing is.
const causeIn = (system: System): string =>
  healthyIn(system)
    .reduce((text, m) => text.replace(m, ''), system.summary.message)
    .replace(/\s+/g, ' ')
    .trim();

// The pages that show what a finding is about, by its code. All others are about Lubdub itself.
const pages: Record<string, [label: string, href: string]> = {
  queue: ['Open Queues', href('queues')],
  workers: ['Open Pulse', href('pulse')],
  flapping: ['Open offline workers', href('workers', { status: 'OFFLINE' })],
  'recently-lost': ['Open offline workers', href('workers', { status: 'OFFLINE' })],
  'poison-task': ['Open Losses', href('losses')],
  failures: ['Open failed tasks', href('tasks', { state: 'FAILED', reason: 'WORKER_REPORTED' })],
  webhooks: ['Open Webhooks', href('webhooks')],
};

// The first finding is the likeliest cause: its page is where to look next.
function Look({ at }: { at: Finding | undefined }): JSX.Element | null {
  const { path } = useRoute();
  if (!at || at.severity === 'ok') return null;
  const [label, to] = pages[at.code] ?? ['Open System', href('system')];
  return path[0] === 'system' && to === href('system') ? null : (
    <a class="button" href={to}>
      {label}
    </a>
  );
}

// Healthy lists the healthy parts, in the server's words.
export function Healthy({ system }: { system: System | undefined }): JSX.Element | null {
  const text = system?.summary && healthyIn(system).join(' ');
  return text ? <p class="healthy">{text}</p> : null;
}

// The server's evaluation of the deployment, with its advice. An older server, which may respond during an upgrade, has no evaluation;
// the banner says so.
export function Verdict({ system }: { system: System }): JSX.Element {
  const s = system.summary as System['summary'] | undefined;
  if (!s) {
    return (
      <section class="banner b-warn" aria-label="Health" role="status">
        <h2>No findings</h2>
        <p>The server that answered is older than this page and reports no findings.</p>
      </section>
    );
  }
  const advice = system.findings.filter((f) => f.remedy);
  return (
    <>
      <section class={`banner b-${s.severity}`} aria-label="Health" role="status">
        <header>
          <h2>{s.title}</h2>
          <Look at={system.findings[0]} />
        </header>
        <p>{causeIn(system)}</p>
        {advice.length > 0 && (
          <ul aria-label="What to do">
            {advice.map((f, i) => (
              <li key={i}>
                <b>{f.code}</b> {f.remedy}
              </li>
            ))}
          </ul>
        )}
      </section>
      {advice.some((f) => f.remedy!.includes('lubdub ')) && (
        <p class="dim">
          Add <code>{line(where())}</code> to commands, so that they apply to the deployment and workspace shown here.
        </p>
      )}
    </>
  );
}
