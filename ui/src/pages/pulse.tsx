import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, get, serverNow, type Worker } from '../api';
import { paused, second } from '../data';
import { escape } from '../escape';
import { age, count, number } from '../format';
import { Failed, Id, Mark, statusOf, Table, Title } from '../parts';
import { go, href } from '../route';
import { scope } from '../session';
import { received } from '../stream';
import { theme } from '../theme';
import { use } from '../signal';

// Every worker is a cell, grouped by machine. Workers are read in pages of a hundred: at first without pauses, then continuously with a
// pause between two pages, so that ten thousand cost only a few calls a second. Events about workers update their cells at once.

interface Cell {
  id: string;
  name: string;
  machine: string;
  queue: string;
  how: string;
  beat: string | null;
  held: number;
  round: number;
}

const calm = 400; // ms between two pages, once all are known
const pause = 2000; // ms between two rounds, at least
const atMost = 20_000;
const order = ['LOST', 'LATE', 'DRAINING', 'FRESH', 'OFFLINE'];

const fromEvent: Record<string, string> = {
  'worker.late': 'LATE',
  'worker.offline': 'OFFLINE',
  'worker.draining': 'DRAINING',
  'worker.fresh': 'FRESH',
};

interface Fleet {
  cells: Cell[];
  counts: Record<string, number>;
  error: ApiError | null;
  at: number;
  whole: boolean;
  capped: boolean;
  again: () => void;
}

function useFleet(offline: boolean): Fleet {
  const at = use(scope);
  const cells = useRef(new Map<string, Cell>());
  const [shown, show] = useState<Omit<Fleet, 'again'>>({ cells: [], counts: {}, error: null, at: 0, whole: false, capped: false });
  const again = useRef<() => void>(() => undefined);
  useEffect(() => {
    let over = false,
      round = 0,
      whole = false,
      error: ApiError | null = null,
      read = 0,
      dirty = true,
      timer = 0,
      capped = false;
    cells.current = new Map();
    const stop = new AbortController();
    const sleep = (ms: number): Promise<void> =>
      new Promise((r) => {
        timer = window.setTimeout(r, ms);
        again.current = () => {
          clearTimeout(timer);
          r();
        };
      });
    const run = async (): Promise<void> => {
      while (!over) {
        let pageToken: string | undefined,
          failed = false;
        round++;
        do {
          if ((paused.value && whole) || document.hidden) {
            await sleep(500);
            failed = true;
            if (over) return;
            continue;
          }
          try {
            const page = await get<{ workers: Worker[]; nextPageToken?: string }>('v1/workers', { pageSize: 100, pageToken }, stop.signal);
            for (const w of page.workers) {
              const how = statusOf(w);
              if (how === 'OFFLINE' && !offline) {
                cells.current.delete(w.workerId);
                continue;
              }
              if (cells.current.size >= atMost && !cells.current.has(w.workerId)) {
                capped = true;
                continue;
              }
              cells.current.set(w.workerId, {
                id: w.workerId,
                name: w.name ?? '',
                machine: w.machineId,
                queue: w.queue,
                how,
                beat: w.lastHeartbeatAt,
                held: w.heldCount,
                round,
              });
            }
            pageToken = page.nextPageToken;
            failed = false;
            error = null;
            read = Date.now();
            dirty = true;
          } catch (e) {
            if (over) return;
            error = e instanceof ApiError ? e : new ApiError(0, 'failed', String(e));
            dirty = failed = true;
            if (error.code === 'invalid_request') pageToken = undefined;
            await sleep(3000);
          }
          if (whole && !failed) await sleep(calm);
        } while (!over && (pageToken !== undefined || failed));
        for (const [id, c] of cells.current) if (c.round < round) cells.current.delete(id);
        whole = dirty = true;
        await sleep(pause);
      }
    };
    let applied = new Set<string>();
    const stopEvents = received.follow(() => {
      const fresh = received.value.events.filter((e) => !applied.has(e.id)).reverse(); // oldest first, so that the newest applies
      applied = new Set(received.value.events.map((e) => e.id));
      for (const e of fresh) {
        const how = fromEvent[e.type],
          c = cells.current.get(e.subject ?? '');
        if (!how || !c || c.how === how || c.how === 'OFFLINE' || (c.beat && e.time <= c.beat)) continue;
        if (how === 'OFFLINE' && !offline) cells.current.delete(c.id);
        else c.how = how;
        dirty = true;
      }
    });
    const draw = setInterval(() => {
      if (!dirty) return;
      dirty = false;
      const all = [...cells.current.values()].sort((a, b) =>
        a.machine < b.machine ? -1 : a.machine > b.machine ? 1 : a.id < b.id ? -1 : 1,
      );
      const counts: Record<string, number> = {};
      for (const c of all) counts[c.how] = (counts[c.how] ?? 0) + 1;
      show({ cells: all, counts, error, at: read, whole, capped });
    }, 250);
    void run();
    return () => {
      over = true;
      stop.abort();
      clearTimeout(timer);
      clearInterval(draw);
      stopEvents();
    };
  }, [JSON.stringify(at), offline]);
  return { ...shown, again: () => again.current() };
}

export function Pulse(): JSX.Element {
  const [offline, setOffline] = useState(false);
  const [only, setOnly] = useState('');
  const fleet = useFleet(offline);
  const text = order
    .filter((o) => fleet.counts[o])
    .map((o) => `${number(fleet.counts[o] ?? 0)} ${o.toLowerCase()}`)
    .join(', ');
  return (
    <>
      <Title name="Pulse">Pulse</Title>
      <div class="acts bar">
        {order
          .filter((o) => o !== 'OFFLINE' || offline)
          .map((o) => (
            <button key={o} type="button" aria-pressed={only === o} onClick={() => setOnly(only === o ? '' : o)}>
              <Mark of={o} />
              {o.toLowerCase()} <b>{number(fleet.counts[o] ?? 0)}</b>
            </button>
          ))}
        <label class="check">
          <input type="checkbox" checked={offline} onChange={(e) => setOffline(e.currentTarget.checked)} />
          show offline workers
        </label>
        <span class="dim" role="status">
          {fleet.whole ? count(fleet.cells.length, 'worker') : `reading, ${number(fleet.cells.length)} so far`}
          {fleet.capped && `; more than ${number(atMost)} are not drawn`}
        </span>
      </div>
      {fleet.error && <Failed error={fleet.error} what="the workers" at={fleet.at || undefined} retry={fleet.again} />}
      <div class={`pulse ${fleet.error ? 'old' : ''}`}>
        <Cells
          cells={fleet.cells}
          only={only}
          label={`${count(fleet.cells.length, 'worker')} by machine: ${text || 'none'}. The table next to it lists them.`}
        />
        <CellTable cells={fleet.cells} only={only} known={fleet.whole} />
      </div>
    </>
  );
}

const frame = 24; // px of the panel around the canvas

interface Place {
  x: number;
  y: number;
  cell: Cell;
}

function Cells({ cells, only, label }: { cells: Cell[]; only: string; label: string }): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const places = useRef<{ all: Place[]; size: number }>({ all: [], size: 10 });
  const [width, setWidth] = useState(0);
  const [tip, setTip] = useState<Place | null>(null);
  const look = use(theme);
  useEffect(() => {
    const el = canvas.current?.parentElement;
    if (!el) return;
    const watch = new ResizeObserver(() => setWidth(el.clientWidth - frame));
    watch.observe(el);
    setWidth(el.clientWidth - frame);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    const c = canvas.current;
    if (c && width) places.current = paint(c, cells, only, width);
  }, [cells, only, width, look]);
  const under = (e: MouseEvent): Place | null => {
    const box = canvas.current?.getBoundingClientRect();
    if (!box) return null;
    const { all, size } = places.current,
      x = e.clientX - box.left,
      y = e.clientY - box.top;
    return all.find((p) => x >= p.x && x < p.x + size && y >= p.y && y < p.y + size) ?? null;
  };
  return (
    <div class="cells">
      <canvas
        ref={canvas}
        role="img"
        aria-label={label}
        onMouseMove={(e) => setTip(under(e))}
        onMouseLeave={() => setTip(null)}
        onClick={(e) => {
          const p = under(e);
          if (p) go(href('workers/' + p.cell.id));
        }}
      />
      <p class="tip" aria-hidden="true">
        {tip ? (
          <>
            <Mark of={tip.cell.how} /> <b>{tip.cell.name || tip.cell.id}</b> on {tip.cell.machine}, queue {tip.cell.queue}, holds{' '}
            {tip.cell.held}, last beat {tip.cell.beat ? age(serverNow() - Date.parse(tip.cell.beat)) : 'never'}
          </>
        ) : (
          'Point at a cell to see whose it is; click to open it.'
        )}
      </p>
    </div>
  );
}

// paint draws each machine as a block of cells under its name; many small machines are drawn without names.
function paint(canvas: HTMLCanvasElement, cells: Cell[], only: string, width: number): { all: Place[]; size: number } {
  const css = getComputedStyle(document.documentElement);
  const colour: Record<string, string> = Object.fromEntries(order.map((o) => [o, css.getPropertyValue('--m-' + o).trim()]));
  const machines = new Map<string, Cell[]>();
  for (const c of cells) {
    const m = machines.get(c.machine);
    if (m) m.push(c);
    else machines.set(c.machine, [c]);
  }
  const size = cells.length <= 400 ? 16 : cells.length <= 2500 ? 12 : 9;
  const named = machines.size <= 60 || (cells.length / machines.size >= 3 && machines.size <= 600);
  const all: Place[] = [],
    names: { text: string; x: number; y: number; w: number }[] = [];
  let height = 0;
  if (named) {
    const gap = 14,
      head = 16;
    let x = 0,
      y = 0,
      row = 0;
    for (const [machine, of] of machines) {
      const across = Math.max(Math.ceil(84 / size), Math.min(Math.ceil(Math.sqrt(of.length * 2)), Math.floor(width / size)));
      const w = Math.min(across * size, width),
        h = head + Math.ceil(of.length / across) * size;
      if (x > 0 && x + w > width) {
        x = 0;
        y += row + gap;
        row = 0;
      }
      names.push({ text: machine, x, y: y + 11, w });
      of.forEach((cell, i) => all.push({ x: x + (i % across) * size, y: y + head + Math.floor(i / across) * size, cell }));
      x += w + gap;
      row = Math.max(row, h);
    }
    height = y + row;
  } else {
    const across = Math.max(1, Math.floor(width / size));
    cells.forEach((cell, i) => all.push({ x: (i % across) * size, y: Math.floor(i / across) * size, cell }));
    height = Math.ceil(cells.length / across) * size;
  }
  const dense = Math.min(devicePixelRatio || 1, 2);
  canvas.width = width * dense;
  canvas.height = Math.max(1, height) * dense;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${Math.max(1, height)}px`;
  const g = canvas.getContext('2d');
  if (!g) return { all, size };
  g.scale(dense, dense);
  g.font = '11px system-ui, sans-serif';
  g.fillStyle = css.getPropertyValue('--dim').trim();
  for (const n of names) {
    let text = escape(n.text);
    while (text.length > 3 && g.measureText(text).width > n.w) text = text.slice(0, -2) + '…';
    g.fillText(text, n.x, n.y);
  }
  const s = size - 3;
  for (const { x, y, cell } of all) {
    g.globalAlpha = only && cell.how !== only ? 0.15 : 1;
    g.fillStyle = g.strokeStyle = colour[cell.how] ?? '#888';
    g.lineWidth = Math.max(1.5, s / 6);
    g.beginPath();
    const cx = x + s / 2,
      cy = y + s / 2;
    switch (cell.how) {
      case 'LATE':
        g.moveTo(cx, y);
        g.lineTo(x + s, y + s);
        g.lineTo(x, y + s);
        g.fill();
        break;
      case 'LOST':
        g.moveTo(x, y);
        g.lineTo(x + s, y + s);
        g.moveTo(x + s, y);
        g.lineTo(x, y + s);
        g.lineWidth = Math.max(2, s / 4);
        g.stroke();
        break;
      case 'DRAINING':
        g.moveTo(cx, y);
        g.lineTo(x + s, cy);
        g.lineTo(cx, y + s);
        g.lineTo(x, cy);
        g.fill();
        break;
      case 'OFFLINE':
        g.strokeRect(x + 1, y + 1, s - 2, s - 2);
        break;
      default:
        g.arc(cx, cy, s / 2, 0, 7);
        g.fill();
    }
  }
  return { all, size };
}

const rows = 50;

function CellTable({ cells, only, known }: { cells: Cell[]; only: string; known: boolean }): JSX.Element {
  use(second);
  const [page, setPage] = useState(0);
  const of = cells.filter((c) => !only || c.how === only).sort((a, b) => order.indexOf(a.how) - order.indexOf(b.how));
  const last = Math.max(0, Math.ceil(of.length / rows) - 1),
    at = Math.min(page, last);
  return (
    <div class="cell-table">
      <Table
        label="Workers, the most silent first"
        rows={of.slice(at * rows, at * rows + rows)}
        id={(c) => c.id}
        none={known ? (only ? `No worker is ${only.toLowerCase()}.` : 'There are no workers here.') : 'Reading the workers …'}
        columns={[
          {
            name: 'Liveness',
            cell: (c) => (
              <span class="live">
                <Mark of={c.how} />
                {c.how}
              </span>
            ),
          },
          {
            name: 'Worker',
            cell: (c) => (
              <>
                <Id kind="worker" id={c.id} />
                {c.name && <div class="dim">{c.name}</div>}
              </>
            ),
          },
          { name: 'Machine', cell: (c) => <Id kind="machine" id={c.machine} /> },
          { name: 'Last beat', cell: (c) => (c.beat ? age(serverNow() - Date.parse(c.beat)) : 'never') },
        ]}
      />
      {last > 0 && (
        <div class="pager">
          <span>
            {at * rows + 1} to {Math.min(of.length, at * rows + rows)} of {number(of.length)}
          </span>
          <button type="button" disabled={at === 0} onClick={() => setPage(at - 1)}>
            Previous page
          </button>
          <button type="button" disabled={at === last} onClick={() => setPage(at + 1)}>
            Next page
          </button>
        </div>
      )}
    </div>
  );
}
