import type { JSX, RefObject } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type uPlot from 'uplot';
import { clockTime, number } from './format';
import { draw, type Chosen, type Line } from './plot';
import type { Shown } from './range';
import { use } from './signal';
import { theme } from './theme';

// Unit is the unit of numbers, or what writes a value with its unit.
type Unit = string | ((value: number) => string);

interface Values {
  times: number[];
  lines: Line[];
  unit: Unit;
  chosen: Chosen; // shared by the charts of a page
}

// Chart draws lines over the same times. Its label describes it in words, and its title has the newest values. The mouse or the arrow keys
// choose a time, whose values a tooltip shows.
export function Chart(p: Values & { label: string; range: Shown }): JSX.Element {
  const { times, lines, label, unit, range, chosen } = p;
  const box = useRef<HTMLDivElement>(null),
    tooltip = useRef<HTMLParagraphElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [focused, setFocused] = useState(false);
  const id = useId();
  const look = use(theme);
  const names = lines.map((l) => l.name).join() + (times.length < 3);
  const data = [times, ...lines.map((l) => l.values)] as uPlot.AlignedData;
  useEffect(() => {
    const write = typeof unit === 'function' ? unit : undefined;
    const drawn = draw({ box: box.current!, tooltip: tooltip.current!, lines, write, seconds: range.seconds, chosen }, data);
    plot.current = drawn;
    return () => {
      plot.current = null;
      drawn.destroy();
    };
  }, [look, names, range, chosen]);
  useEffect(() => plot.current?.setData(data));
  const press = (e: KeyboardEvent): void => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const time = chosen.value,
      at =
        time === null
          ? -1
          : Math.max(
              0,
              times.findIndex((t) => t >= time),
            ), // a time that left the range is followed by the oldest
      last = times.length - 1,
      from = at < 0 ? last + 1 : at; // the first arrow key chooses the newest time
    const to = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: last }[e.key];
    if (to !== undefined) chosen.set(times[Math.max(0, Math.min(last, to))] ?? null);
    else if (e.key === 'Escape') chosen.set(null);
    else return;
    e.preventDefault();
  };
  const leave = (e: FocusEvent): void => {
    setFocused(false);
    if (!(e.relatedTarget as Element | null)?.closest('.chart')) chosen.set(null); // the next chart shows the same time
  };
  return (
    <div
      class="chart"
      role="group"
      tabIndex={0}
      aria-label={`${label}: arrow keys choose a time`}
      aria-describedby={id}
      onKeyDown={press}
      onFocus={() => setFocused(true)}
      onBlur={leave}
    >
      <div ref={box} role="img" aria-label={`${label}. ${summary(lines, unit, range)}`} />
      <Tooltip {...p} id={id} box={tooltip} spoken={focused} />
    </div>
  );
}

const withUnit = (v: number, unit: Unit): string => (typeof unit === 'string' ? `${number(v)} ${unit}` : unit(v));
const amount = (v: number | null | undefined, unit: Unit): string => (v === null || v === undefined ? 'none' : withUnit(v, unit));

function summary(lines: Line[], unit: Unit, range: Shown): string {
  return lines
    .map(({ name, values }) => {
      const most = Math.max(0, ...values.map((v) => v ?? 0));
      return `${name}: now ${amount(values[values.length - 1], unit)}, at most ${typeof unit === 'string' ? number(most) : unit(most)} in the last ${range.words}`;
    })
    .join('; ');
}

// Tooltip shows the values at the chosen time. Of several charts, the one that has the focus is spoken.
function Tooltip(p: Values & { id: string; box: RefObject<HTMLParagraphElement | null>; spoken: boolean }): JSX.Element {
  const { times, lines, unit, chosen } = p;
  const time = use(chosen);
  const at = time === null ? -1 : times.indexOf(time);
  return (
    <p class="tooltip" id={p.id} ref={p.box} aria-live={p.spoken ? 'polite' : 'off'} aria-atomic="true">
      {time !== null && at >= 0 && (
        <>
          <b>{clockTime(time * 1000)} UTC</b>
          {lines.map((l) => (
            <span key={l.name}>{` ${l.name}: ${amount(l.values[at], unit)}`}</span>
          ))}
        </>
      )}
    </p>
  );
}
