// JSON whose numbers may have more digits than a browser keeps.

// isExact reports whether a browser parses a number without changing it.
function isExact(n: string): boolean {
  const value = Number(n),
    digits = n.replace(/e.*/i, '').replace(/\D/g, '').replace(/^0+/, '');
  if (!Number.isFinite(value) || (value === 0 && digits)) return false;
  return /^-?\d+$/.test(n) ? BigInt(n) === BigInt(value) : digits.length <= 15 || String(value) === n;
}

const numbers = /"(?:\\.|[^"\\])*"|(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)/gi; // or strings, so that what is in them is skipped

// parseExact puts marked strings in the place of numbers that a browser would change, and stringify restores the numbers.
const mark = `\ue000${Math.random()}:`,
  marked = new RegExp(`"${mark}(.*?)"`, 'g');

export function parseExact(text: string): unknown {
  const value: unknown = JSON.parse(text); // its error has the position
  const kept = text.replace(numbers, (all: string, n?: string) => (n && !isExact(n) ? `"${mark}${n}"` : all));
  return kept === text ? value : JSON.parse(kept);
}

export const stringify = (of: unknown, indent?: number): string => JSON.stringify(of, null, indent).replace(marked, '$1');
