import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { use } from './signal';
import { theme } from './theme';

const least = 600; // seconds that a chart shows at least

// spanOf returns the time range of a chart. uPlot's own range of a single step is a day.
function spanOf(times: ArrayLike<number>): [number, number] {
  const last = times[times.length - 1] ?? Date.now() / 1000;
  return [Math.min(times[0] ?? last, last - least), last];
}

export interface Line {
  name: string;
  colour: string;
  values: (number | null)[];
}

// Chart draws lines over the same times. Its label describes it in words, and its title has the newest values.
export function Chart({ times, lines, label, unit }: { times: number[]; lines: Line[]; label: string; unit: string }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const look = use(theme);
  const names = lines.map((l) => l.name).join() + (times.length < 3);
  useEffect(() => {
    const el = box.current;
    if (!el) return;
    const css = getComputedStyle(document.documentElement);
    const colour = (name: string): string => css.getPropertyValue(name).trim();
    const font = '11px system-ui, sans-serif';
    const axis = { stroke: colour('--dim'), font, ticks: { show: false }, grid: { stroke: colour('--line'), width: 1 } };
    const height = 120;
    const p = new uPlot(
      {
        width: el.clientWidth || 300,
        height,
        legend: { show: false },
        cursor: { show: false },
        padding: [8, 16, 0, 0],
        scales: { x: { range: (u) => spanOf(u.data[0]) }, y: { range: (_u, _min, max) => [0, Math.max(max || 0, 1) * 1.1] } },
        axes: [
          {
            ...axis,
            grid: { show: false },
            space: 60,
            size: 22,
            values: (_u, at) => at.map((t) => new Date(t * 1000).toISOString().slice(11, 16)),
          },
          {
            ...axis,
            size: 46,
            space: 30,
            values: (_u, at) => at.map((v) => (v >= 1000 ? `${v / 1000}k` : String(Math.round(v * 100) / 100))),
          },
        ],
        series: [
          {},
          ...lines.map((l) => ({
            label: l.name,
            stroke: colour(l.colour),
            width: 1.5,
            fill: colour(l.colour) + '1c',
            points: { show: l.values.length < 3, size: 4 },
          })),
        ],
      },
      [times, ...lines.map((l) => l.values)] as uPlot.AlignedData,
      el,
    );
    plot.current = p;
    const watch = new ResizeObserver(() => p.setSize({ width: el.clientWidth, height }));
    watch.observe(el);
    return () => {
      watch.disconnect();
      p.destroy();
      plot.current = null;
    };
  }, [look, names]);
  useEffect(() => {
    plot.current?.setData([times, ...lines.map((l) => l.values)] as uPlot.AlignedData);
  });
  const summary = lines
    .map((l) => {
      const known = l.values.filter((v): v is number => v !== null);
      const last = known[known.length - 1] ?? 0,
        most = known.length ? Math.max(...known) : 0;
      return `${l.name}: now ${Math.round(last * 100) / 100} ${unit}, at most ${Math.round(most * 100) / 100} in the last hour`;
    })
    .join('; ');
  return (
    <div class="chart" role="img" aria-label={`${label}. ${summary}`}>
      <div ref={box} />
    </div>
  );
}
