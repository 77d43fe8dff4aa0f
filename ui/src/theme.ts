import { Signal } from './signal';

// The theme: light, dark, or the system's.
export type Theme = 'auto' | 'light' | 'dark';
const key = 'lubdub.theme';
const dark = matchMedia('(prefers-color-scheme: dark)');

const stored = (): Theme => {
  try {
    return (localStorage.getItem(key) as Theme | null) ?? 'auto';
  } catch {
    return 'auto';
  }
};
export const chosen = new Signal<Theme>(stored());
export const theme = new Signal<'light' | 'dark'>('light'); // in effect

function apply(): void {
  const now = chosen.value === 'auto' ? (dark.matches ? 'dark' : 'light') : chosen.value;
  document.documentElement.dataset.theme = now;
  theme.set(now);
}
dark.addEventListener('change', apply);
apply();

export function next(): void {
  const to: Theme = chosen.value === 'auto' ? 'light' : chosen.value === 'light' ? 'dark' : 'auto';
  try {
    localStorage.setItem(key, to);
  } catch {
    /* this tab only */
  }
  chosen.set(to);
  apply();
}
