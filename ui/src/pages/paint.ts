import { escape } from '../escape';
import { number } from '../format';
import { shortOf } from '../ids';
import { died, order, type Cell } from './fleet';
import { place, type Block, type Box } from './layout';

// paint draws the blocks. A cell is a card with words if it has room for them, a tile with a mark if it is large, and else a mark.

const font = (weight: number, px: number): string => `${weight} ${px}px system-ui, sans-serif`;
const tints: Record<string, string> = { FRESH: '--good-bg', LATE: '--warn-bg', LOST: '--bad-bg', DRAINING: '--calm-bg', OFFLINE: '--soft' };
const faint = 0.15; // of cells that the filter does not select
const largestMark = 22;

export interface Picture {
  blocks: Block[];
  groups: Map<string, Cell[]>;
  only: string;
  current: string; // the id of the worker that the keyboard is at
}

export function paint(canvas: HTMLCanvasElement, { blocks, groups, only, current }: Picture, width: number, height: number): void {
  const css = getComputedStyle(document.documentElement);
  const color = (name: string): string => css.getPropertyValue(name).trim();
  const marks = Object.fromEntries(order.map((o) => [o, color('--m-' + o)])),
    backs = Object.fromEntries(order.map((o) => [o, color(tints[o]!)])),
    [fg, dim, line] = [color('--fg'), color('--dim'), color('--line')];
  const dense = Math.min(devicePixelRatio || 1, 2);
  canvas.width = width * dense;
  canvas.height = height * dense;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const g = canvas.getContext('2d');
  if (!g) return;
  g.scale(dense, dense);
  for (const b of blocks) {
    const cells = groups.get(b.name) ?? [],
      { x, y, w } = b.inner;
    if (b.named) {
      g.font = font(500, 11);
      g.fillStyle = dim;
      const total = number(b.count),
        room = g.measureText(total).width;
      g.fillText(fit(g, escape(b.name), w - room - 14), x + 1, y - 5);
      g.textAlign = 'right';
      g.fillText(total, x + w - 2, y - 5);
      g.textAlign = 'left';
    }
    cells.forEach((cell, i) => {
      const at = place(b, i),
        ink = died(cell) ? marks.LOST! : (marks[cell.how] ?? dim);
      g.globalAlpha = only && cell.how !== only ? faint : 1;
      const side = Math.min(at.w, at.h);
      if (side < 14) mark(g, cell, at, side - Math.min(3, side / 5), ink);
      else {
        const tile = { x: at.x + 1.5, y: at.y + 1.5, w: at.w - 3, h: at.h - 3 };
        g.beginPath();
        g.roundRect(tile.x, tile.y, tile.w, tile.h, Math.min(6, side / 6));
        g.fillStyle = backs[cell.how] ?? line;
        g.fill();
        g.setLineDash(cell.how === 'OFFLINE' ? [3, 3] : []);
        g.lineWidth = 1;
        g.strokeStyle = cell.how === 'FRESH' ? line : ink;
        g.stroke();
        g.setLineDash([]);
        if (tile.w >= 84 && tile.h >= 30) words(g, cell, tile, ink, fg, dim);
        else mark(g, cell, tile, Math.min(largestMark, side * 0.5), ink);
      }
      if (cell.id === current) {
        g.globalAlpha = 1;
        g.lineWidth = 2;
        g.strokeStyle = fg;
        g.strokeRect(at.x + 1, at.y + 1, at.w - 2, at.h - 2);
      }
    });
  }
}

// words draws a card: the name, and below it as many facts as fit.
function words(g: CanvasRenderingContext2D, cell: Cell, at: Box, ink: string, fg: string, dim: string): void {
  const pad = 10,
    rowHeight = 16;
  const facts = [
    cell.how === 'OFFLINE' ? (cell.why || 'OFFLINE').toLowerCase().replaceAll('_', ' ') : cell.how.toLowerCase(),
    `queue ${cell.queue}`,
    `holds ${cell.held}`,
    cell.version && `version ${cell.version}`,
  ].filter(Boolean);
  const room = Math.max(0, Math.min(facts.length, Math.floor((at.h - 12) / rowHeight) - 1));
  const top = at.y + Math.min((at.h - (room + 1) * rowHeight) / 2, 10) + 12;
  mark(g, cell, { x: at.x + pad, y: top - 11, w: 12, h: 12 }, 10, ink);
  g.font = font(600, 12);
  g.fillStyle = fg;
  g.fillText(fit(g, escape(cell.name || shortOf(cell.id)), at.w - 2 * pad - 18), at.x + pad + 18, top - 1);
  g.font = font(400, 11);
  g.fillStyle = dim;
  for (const [i, fact] of facts.slice(0, room).entries())
    g.fillText(fit(g, escape(fact), at.w - 2 * pad), at.x + pad, top - 1 + (i + 1) * rowHeight);
}

function fit(g: CanvasRenderingContext2D, text: string, room: number): string {
  if (g.measureText(text).width <= room) return text;
  let end = Math.max(1, Math.floor((text.length * room) / g.measureText(text).width));
  while (end > 1 && g.measureText(text.slice(0, end) + '…').width > room) end--;
  return text.slice(0, end) + '…';
}

// mark draws the shape of a worker's state in the middle of a box: colors are not needed to tell them apart.
function mark(g: CanvasRenderingContext2D, cell: Cell, box: Box, size: number, ink: string): void {
  const cx = box.x + box.w / 2,
    cy = box.y + box.h / 2,
    r = size / 2;
  g.fillStyle = g.strokeStyle = ink;
  g.lineWidth = Math.max(1.5, size / 6);
  g.beginPath();
  switch (cell.how) {
    case 'LATE':
      g.moveTo(cx, cy - r);
      g.lineTo(cx + r, cy + r);
      g.lineTo(cx - r, cy + r);
      g.fill();
      break;
    case 'LOST':
      cross(g, cx, cy, r);
      g.lineWidth = Math.max(2, size / 4);
      g.stroke();
      break;
    case 'DRAINING':
      g.moveTo(cx, cy - r);
      g.lineTo(cx + r, cy);
      g.lineTo(cx, cy + r);
      g.lineTo(cx - r, cy);
      g.fill();
      break;
    case 'OFFLINE':
      g.rect(cx - r + 1, cy - r + 1, size - 2, size - 2);
      if (died(cell)) cross(g, cx, cy, r / 2.4);
      g.stroke();
      break;
    default:
      g.arc(cx, cy, r, 0, 7);
      g.fill();
  }
}

function cross(g: CanvasRenderingContext2D, cx: number, cy: number, r: number): void {
  g.moveTo(cx - r, cy - r);
  g.lineTo(cx + r, cy + r);
  g.moveTo(cx + r, cy - r);
  g.lineTo(cx - r, cy + r);
}
