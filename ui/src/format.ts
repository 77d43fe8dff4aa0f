// The formats of numbers, times and spans.
export function span(ms: number): string {
  if (ms < 0) ms = 0;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min${s < 600 && Math.floor(s % 60) ? ` ${Math.floor(s % 60)} s` : ''}`;
  if (s < 172_800) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86_400)} d`;
}

// Ages are updated once a second, so they have no tenths.
export const age = (ms: number): string => (ms < 1000 ? 'now' : ms < 10_000 ? `${Math.floor(ms / 1000)} s ago` : `${span(ms)} ago`);

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 }),
  some = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
export const number = (n: number): string => (Math.abs(n) < 100 ? some : whole).format(n);
export const count = (n: number, one: string, many = one.replace(/y$/, 'ie') + 's'): string => `${whole.format(n)} ${n === 1 ? one : many}`;
export const bytes = (n: number): string => (n < 1 << 20 ? `${some.format(n / 1024)} KiB` : `${some.format(n / (1 << 20))} MiB`);

const pad = (n: number, w = 2): string => String(n).padStart(w, '0');
export function clockTime(at: string | number | Date): string {
  const d = new Date(at);
  return `${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}:${pad(d.getUTCSeconds())}`;
}
export function moment(at: string | number | Date): string {
  const d = new Date(at);
  return `${d.getUTCFullYear()}-${pad(d.getUTCMonth() + 1)}-${pad(d.getUTCDate())} ${clockTime(d)} UTC`;
}
export const list = (of: string[]): string => (of.length < 2 ? of.join('') : `${of.slice(0, -1).join(', ')} and ${of[of.length - 1]}`);
