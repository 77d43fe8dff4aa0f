import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { serverNow } from '../api';
import { second } from '../data';
import { age } from '../format';
import { Short } from '../ids';
import { Mark } from '../parts';
import { go, href } from '../route';
import { use } from '../signal';
import { theme } from '../theme';
import type { Cell } from './fleet';
import { grouped, type By } from './groups';
import { heightFor, layout, nextTo, place, under } from './layout';
import { paint } from './paint';

const frame = 16; // px of the panel left and right of the canvas
const below = 96; // px of the window for the line below the canvas and the edges
const lowest = 340; // px

// Cells is the picture of all workers: the mouse or the arrow keys choose one, a click or Enter opens it. A click elsewhere in a group
// shows this group alone.
export function Cells(p: { cells: Cell[]; by: By; only: string; label: string; choose: (group: string) => void }): JSX.Element {
  const { cells, by, only, label, choose } = p;
  const canvas = useRef<HTMLCanvasElement>(null);
  const { width, free } = useRoom(canvas);
  const look = use(theme);
  const [pointed, point] = useState<{ cell?: Cell; group: string } | null>(null);
  const [current, setCurrent] = useState('');
  const height = heightFor(cells.length, width, free);
  const groups = useMemo(() => grouped(cells, by), [cells, by]);
  const blocks = useMemo(
    () =>
      width > 0
        ? layout(
            [...groups].map(([name, of]) => ({ name, count: of.length })),
            width,
            height,
          )
        : [],
    [groups, width, height],
  );
  useEffect(() => {
    if (canvas.current && width > 0) paint(canvas.current, { blocks, groups, only, current }, width, height);
  }, [blocks, only, current, look]);
  const at = (e: MouseEvent): { cell?: Cell; group: string } | null => {
    const box = canvas.current!.getBoundingClientRect();
    const hit = under(blocks, e.clientX - box.left, e.clientY - box.top);
    return hit && { cell: groups.get(hit.block.name)?.[hit.index], group: hit.block.name };
  };
  const press = (e: KeyboardEvent): void => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === 'Enter' && current) return go(href('workers/' + current));
    if (!e.key.startsWith('Arrow')) return;
    e.preventDefault();
    const drawn = blocks.flatMap((b) => (groups.get(b.name) ?? []).map((cell, i) => ({ cell, ...place(b, i) })));
    const of = drawn.filter((d) => !only || d.cell.how === only);
    const next =
      of[
        nextTo(
          of,
          of.findIndex((d) => d.cell.id === current),
          e.key,
        )
      ];
    if (next) setCurrent(next.cell.id);
  };
  const chosen = current ? cells.find((c) => c.id === current) : undefined;
  const shown = pointed ?? (chosen && { cell: chosen, group: '' });
  return (
    <div class="cells">
      <div
        class="picture"
        role="group"
        tabIndex={0}
        aria-label="Picture of the workers: arrow keys choose a worker, Enter opens it"
        onKeyDown={press}
        onBlur={() => setCurrent('')}
      >
        <canvas
          ref={canvas}
          role="img"
          aria-label={label}
          onMouseMove={(e) => point(at(e))}
          onMouseLeave={() => point(null)}
          onClick={(e) => {
            const hit = at(e);
            if (hit?.cell) go(href('workers/' + hit.cell.id));
            else if (hit) choose(hit.group);
          }}
        />
      </div>
      <p class="tip" aria-live={pointed ? 'off' : 'polite'}>
        {shown?.cell ? (
          <Tip of={shown.cell} />
        ) : shown ? (
          `Click to show only ${by} ${shown.group}.`
        ) : (
          'Point at a worker, or use the arrow keys.'
        )}
      </p>
    </div>
  );
}

const since = (at: string | null): string => (at ? age(serverNow() - Date.parse(at)) : 'never');

function Tip({ of: c }: { of: Cell }): JSX.Element {
  use(second);
  return (
    <>
      <Mark of={c.how} /> <b>{c.name || <Short id={c.id} />}</b> on {c.machine}, queue {c.queue},{' '}
      {c.how === 'OFFLINE' ? `OFFLINE ${since(c.ended)}${c.why && ` (${c.why})`}` : `holds ${c.held}`}, last beat {since(c.beat)}
    </>
  );
}

// useRoom measures the width of the panel, and how much of the window's height is left for it.
function useRoom(canvas: { current: HTMLCanvasElement | null }): { width: number; free: number } {
  const [room, set] = useState({ width: 0, free: lowest });
  useEffect(() => {
    const panel = canvas.current?.closest('.cells');
    if (!panel) return;
    const measure = (): void => {
      const top = panel.getBoundingClientRect().top + scrollY;
      const to = { width: panel.clientWidth - frame, free: Math.max(lowest, Math.round(innerHeight - top - below)) };
      set((old) => (old.width === to.width && old.free === to.free ? old : to));
    };
    const watch = new ResizeObserver(measure);
    watch.observe(panel);
    watch.observe(document.querySelector('main')!); // what is above the panel may grow
    addEventListener('resize', measure);
    measure();
    return () => {
      watch.disconnect();
      removeEventListener('resize', measure);
    };
  }, []);
  return room;
}
