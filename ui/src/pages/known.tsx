import type { ComponentChildren, JSX } from 'preact';
import { copy } from '../copy';
import { stringify } from '../exactjson';
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
  if (of === null || of === undefined) return null;
  const what = `the ${title.toLowerCase()}`;
  return (
    <Section
      title={title}
      side={
        <button type="button" aria-label={`Copy ${what}`} onClick={() => void copy(stringify(of, 2), what)}>
          Copy
        </button>
      }
    >
      <Json of={of} label={title} />
    </Section>
  );
}
