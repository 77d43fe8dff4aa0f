import type { JSX } from 'preact';
import type { System } from './api';
import { line, where } from './cli';

// The server's summary and its remedies. An older server, which a page may meet during an upgrade, sends none: the page states that and
// evaluates nothing itself.
export function Verdict({ system }: { system: System }): JSX.Element {
  const s = system.summary as System['summary'] | undefined;
  if (!s) {
    return (
      <section class="banner b-warn" aria-label="Lubdub or workers" role="status">
        <h2>No findings</h2>
        <p>The server that answered is older than this page and reports no findings.</p>
      </section>
    );
  }
  const advice = system.findings.filter((f) => f.remedy);
  return (
    <>
      <section class={`banner b-${s.severity}`} aria-label="Lubdub or workers" role="status">
        <h2>{s.title}</h2>
        <p>{s.message}</p>
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
          Add <code>{line(where())}</code> to commands, so that they reach what is shown here.
        </p>
      )}
    </>
  );
}
