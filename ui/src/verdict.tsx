import type { JSX } from 'preact';
import type { System } from './api';
import { line, where } from './cli';

// Whether it is them or us, as the server judges it, and what it advises. An older server, which a page may meet while replicas are
// replaced, does not judge: that is said, and nothing is made up.
export function Verdict({ system }: { system: System }): JSX.Element {
  const s = system.summary as System['summary'] | undefined;
  if (!s) {
    return (
      <section class="banner b-warn" aria-label="Them or us" role="status">
        <h2>Not evaluated</h2>
        <p>The server that answered is older than this page: it reports numbers without findings.</p>
      </section>
    );
  }
  const advice = system.findings.filter((f) => f.remedy);
  return (
    <>
      <section class={`banner b-${s.severity}`} aria-label="Them or us" role="status">
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
