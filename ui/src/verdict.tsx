import type { JSX } from 'preact';
import type { System } from './api';
import { line, where } from './cli';

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
          Add <code>{line(where())}</code> to commands, so that they apply to the deployment and workspace shown here.
        </p>
      )}
    </>
  );
}
