import type { JSX } from 'preact';
import { change, useRoute } from './route';

// Shown is how much of the newest time a chart shows.
export interface Shown {
  words: string; // as in "the last …"
  seconds: number;
}

// Range is one that can be chosen. It is in the address.
interface Range extends Shown {
  key: string;
  name: string;
}

const anHour: Range = { key: '1h', name: '1 h', words: 'hour', seconds: 3600 }; // as much as the server keeps
const ranges: Range[] = [{ key: '15m', name: '15 min', words: '15 minutes', seconds: 900 }, anHour];

export function useRange(): Range {
  const key = useRoute().query.get('range');
  return ranges.find((r) => r.key === key) ?? anHour;
}

export function RangeChoice({ range }: { range: Range }): JSX.Element {
  return (
    <div class="acts bar" role="group" aria-label="Time range of the charts">
      <span class="dim">Last</span>
      {ranges.map((r) => (
        <button key={r.key} type="button" aria-pressed={r === range} onClick={() => change({ range: r === anHour ? undefined : r.key })}>
          {r.name}
        </button>
      ))}
    </div>
  );
}
