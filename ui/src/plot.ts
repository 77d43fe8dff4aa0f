import uPlot from 'uplot';
import type { Signal } from './signal';

export interface Line {
  name: string;
  colour: string;
  values: (number | null)[];
}

// Chosen is the time, in seconds, whose values all charts of a page show.
export type Chosen = Signal<number | null>;

const height = 120, // px
  gap = 8; // px between the line at the chosen time and the tooltip

// place puts the tooltip on the side of the chosen time that has more room, where CSS keeps it within the chart.
function place(u: uPlot, tooltip: HTMLElement): void {
  const x = u.over.offsetLeft + (u.cursor.left ?? 0);
  const left = x > u.width / 2;
  tooltip.style.left = left ? '' : `${x + gap}px`;
  tooltip.style.right = left ? `${u.width - x + gap}px` : '';
}

// cursorAt is uPlot's cursor, bound to the chosen time: the mouse chooses a time, and the cursor is where the chosen time is.
function cursorAt(chosen: Chosen): uPlot.Cursor {
  const none = (): null => null;
  return {
    left: 0, // a value from 0 on lets uPlot call move when it draws
    top: 0,
    y: false,
    points: { size: 7 },
    move: (u) => {
      const time = chosen.value;
      return time !== null && u.data[0].includes(time) ? [u.valToPos(time, 'x'), 0] : [-10, -10]; // outside: uPlot hides it
    },
    bind: {
      mousemove: (u) => (e) => {
        chosen.set(u.data[0][u.posToIdx(e.offsetX)] ?? null);
        return null;
      },
      mouseleave: () => () => {
        chosen.set(null);
        return null;
      },
      mousedown: none, // no zoom
      mouseup: none,
      dblclick: none,
    },
  };
}

const plain = (v: number): string => (v >= 1000 ? `${v / 1000}k` : String(Math.round(v * 100) / 100));

function axes(colour: (name: string) => string, write: (v: number) => string, seconds: number): uPlot.Axis[] {
  const short = seconds < 600; // its times need seconds
  const axis = {
    stroke: colour('--dim'),
    font: '11px system-ui, sans-serif',
    ticks: { show: false },
    grid: { stroke: colour('--line'), width: 1 },
  };
  return [
    {
      ...axis,
      grid: { show: false },
      space: short ? 70 : 44,
      size: 22,
      values: (_u, at) => at.map((t) => new Date(t * 1000).toISOString().slice(11, short ? 19 : 16)),
    },
    {
      ...axis,
      size: 46,
      space: 30,
      values: (_u, at) => at.map(write),
    },
  ];
}

export interface Plot {
  box: HTMLElement;
  tooltip: HTMLElement;
  lines: Line[];
  write?: (value: number) => string; // at the axis of values
  seconds: number; // the range
  chosen: Chosen;
}

// draw makes a chart in the box, which follows the width of the box and the chosen time until it is destroyed.
export function draw({ box, tooltip, lines, write = plain, seconds, chosen }: Plot, data: uPlot.AlignedData): uPlot {
  const css = getComputedStyle(document.documentElement);
  const colour = (name: string): string => css.getPropertyValue(name).trim();
  const move = (u: uPlot): void => place(u, tooltip);
  const plot = new uPlot(
    {
      width: box.clientWidth || 300,
      height,
      legend: { show: false },
      cursor: cursorAt(chosen),
      padding: [8, 16, 0, 0],
      scales: {
        x: {
          range: (u) => {
            const last = u.data[0][u.data[0].length - 1] ?? Date.now() / 1000;
            return [last - seconds, last];
          },
        },
        y: { range: (_u, _min, max) => [0, Math.max(max || 0, 1) * 1.1] },
      },
      axes: axes(colour, write, seconds),
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
      hooks: {
        setCursor: [move],
        setSize: [move],
        destroy: [
          () => {
            watch.disconnect();
            unfollow();
          },
        ],
      },
    },
    data,
    box,
  );
  const watch = new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height }));
  watch.observe(box);
  const unfollow = chosen.follow(() => plot.setCursor({ left: 0, top: 0 })); // move knows where
  return plot;
}
