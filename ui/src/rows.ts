import { useState } from 'preact/hooks';
import { copy } from './copy';

export interface Rows {
  at: number; // the row that Tab reaches
  focused: (id: string) => void;
  press: (e: KeyboardEvent) => void;
}

// useRows defines the keys of a table's rows. Tab reaches one row, from which the arrow keys move to the others.
export function useRows(ids: string[], select?: (id: string) => void): Rows {
  const [current, focused] = useState('');
  const press = (e: KeyboardEvent): void => {
    const row = e.target as HTMLElement;
    const all = [...((e.currentTarget as HTMLElement).children as HTMLCollectionOf<HTMLElement>)];
    const i = all.indexOf(row),
      id = ids[i]; // none if the focus is on a control in a row
    if (id === undefined || e.ctrlKey || e.metaKey || e.altKey) return;
    const to = { ArrowUp: i - 1, ArrowDown: i + 1, Home: 0, End: all.length - 1 }[e.key];
    if (to !== undefined) all[to]?.focus();
    else if (e.key === 'Enter') row.querySelector('a')?.click();
    else if (e.key === ' ' && select) select(id);
    else if (e.key === 'c') void copy(id);
    else return;
    e.preventDefault();
  };
  return { at: Math.max(0, ids.indexOf(current)), focused, press };
}
