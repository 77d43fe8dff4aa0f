import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Signal, use } from './signal';

const keys: [string[], string][] = [
  [['/'], 'Search by id'],
  [['?'], 'Show these keys'],
  [['Tab'], 'Move to the next control, table or chart'],
  [['↑', '↓'], 'Move between the rows of a table'],
  [['Home', 'End'], 'Move to the first or last row'],
  [['Enter'], 'Open the row'],
  [['←', '→'], 'Choose a time in a chart'],
  [['Space'], 'Select the row'],
  [['c'], 'Copy the id of the row or link'],
  [['Esc'], 'Close a dialog, or hide the values at a time'],
];

export const keysShown = new Signal(false);

// useKeys defines the keys that work on every page, except while typing.
export function useKeys(): void {
  useEffect(() => {
    const press = (e: KeyboardEvent): void => {
      const t = e.target as HTMLElement;
      if (!['/', '?'].includes(e.key) || e.ctrlKey || e.metaKey || e.altKey || t.closest('input, textarea, select, dialog')) return;
      e.preventDefault();
      if (e.key === '?') return keysShown.set(true);
      const field = document.querySelector<HTMLInputElement>('.search input');
      field?.focus();
      field?.select();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

export function KeysDialog(): JSX.Element | null {
  return use(keysShown) ? <Keys /> : null;
}

function Keys(): JSX.Element {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => box.current?.showModal(), []);
  return (
    <dialog ref={box} aria-labelledby="keys-title" onClose={() => keysShown.set(false)}>
      <h2 id="keys-title">Keys</h2>
      <dl class="keys">
        {keys.map(([names, does]) => (
          <div key={does}>
            <dt>
              {names.map((n) => (
                <kbd key={n}>{n}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <div class="acts end">
        <button type="button" onClick={() => box.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
