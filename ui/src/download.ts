import { scope, session } from './session';

// cell returns a cell of a CSV file. A spreadsheet would compute what begins like a formula, and workers and clients supply texts.
function cell(v: unknown): string {
  const text = v === null || v === undefined ? '' : typeof v === 'object' ? JSON.stringify(v) : String(v);
  const safe = /^[=+\-@]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csv(rows: object[]): string {
  const names = [...new Set(rows.flatMap((r) => Object.keys(r)))];
  const lines = rows.map((r) => names.map((n) => cell((r as Record<string, unknown>)[n])));
  return [names.map(cell), ...lines].map((l) => l.join(',') + '\r\n').join('');
}

export type Format = 'csv' | 'json';

// download saves rows of the API as a file that is named by the workspace and the time.
export function download(noun: string, rows: object[], format: Format): void {
  const body = format === 'csv' ? csv(rows) : JSON.stringify(rows, null, 2) + '\n';
  const to = document.createElement('a');
  to.href = URL.createObjectURL(new Blob([body], { type: format === 'csv' ? 'text/csv' : 'application/json' }));
  const where = scope.value?.workspaceId ?? session.value?.workspace ?? '';
  to.download = `${noun}s-${where}-${new Date().toISOString().slice(0, 19).replaceAll(':', '')}Z.${format}`;
  to.click();
  setTimeout(() => URL.revokeObjectURL(to.href), 60_000); // once the browser has read it
}
