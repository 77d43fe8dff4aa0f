import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import { Facts, Json, Section } from '../parts';

type Fact = [string, ComponentChildren];

// Known shows the facts that have a value.
export function Known({ of }: { of: Fact[] }): JSX.Element {
  return <Facts of={of.filter(([, v]) => v !== null && v !== undefined && v !== '' && v !== false)} />;
}

export const labels = (of: Record<string, string>): string =>
  Object.entries(of)
    .map(([k, v]) => `${k}=${v}`)
    .join(', ');

// Value shows a JSON value, if there is one, with a button that copies all of it.
export function Value({ of, title }: { of: unknown; title: string }): JSX.Element | null {
  const [copied, set] = useState('');
  if (of === null || of === undefined) return null;
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(JSON.stringify(of, null, 2));
      set('Copied');
    } catch {
      set('Your browser does not let this page copy'); // such as on plain HTTP
    }
  };
  return (
    <Section
      title={title}
      side={
        <span class="acts">
          <span class="dim" role="status">
            {copied}
          </span>
          <button type="button" aria-label={`Copy the ${title.toLowerCase()}`} onClick={() => void copy()}>
            Copy
          </button>
        </span>
      }
    >
      <Json of={of} label={title} />
    </Section>
  );
}
