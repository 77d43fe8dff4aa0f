// The layout of the pulse: each group of workers is a block whose area follows its number of workers, and the blocks fill the whole area.

export interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}
export interface Group {
  name: string;
  count: number;
}
// A block has rows of cells of one size; row by row, cell i is at place(block, i).
export interface Block extends Group {
  outer: Box;
  inner: Box;
  named: boolean;
  across: number;
  wide: number;
  high: number;
}

export const heading = 18; // px of a block's name
const least = 7.5; // px of a cell's side: smaller cells are not distinguishable, so the area becomes higher
const card = 6000; // px² of a cell, from which it has room for words and is wider than high
const sizeClass = (g: Group): number => Math.round(Math.log2(g.count));

// heightFor is the height of the area: what the window has left, or more if there are too many workers for it.
export const heightFor = (workers: number, width: number, free: number): number =>
  Math.round(Math.max(free, (workers * least * least * 1.25) / Math.max(width, 1)));

// layout sorts large groups first, because blocks of similar size are then almost square. Groups of about the same size are sorted by
// name, so that they keep their places while workers come and go.
export function layout(groups: Group[], width: number, height: number): Block[] {
  const sorted = groups
    .filter((g) => g.count > 0)
    .sort((a, b) => sizeClass(b) - sizeClass(a) || a.name.localeCompare(b.name, 'en', { numeric: true }));
  const counts = sorted.map((g) => g.count),
    area = { x: 0, y: 0, w: width, h: height };
  const similar = Math.max(...counts) <= 1.5 * Math.min(...counts);
  const boxes = similar ? inRows(counts, area) : inSquares(counts, area);
  return sorted.map((g, i) => block(g, boxes[i]!));
}

function block(group: Group, outer: Box): Block {
  const gap = Math.min(6, Math.min(outer.w, outer.h) / 12);
  const w = outer.w - gap,
    h = outer.h - gap;
  const named = w >= 64 && h >= 3 * heading;
  const top = named ? heading : 0;
  const inner = { x: outer.x + gap / 2, y: outer.y + gap / 2 + top, w, h: h - top };
  const across = columns(group.count, inner.w, inner.h);
  return { ...group, outer, inner, named, across, wide: inner.w / across, high: inner.h / Math.ceil(group.count / across) };
}

// columns finds the number of columns with the largest cells and the fewest empty places.
function columns(count: number, w: number, h: number): number {
  const shape = (w * h) / count >= card ? 1.6 : 1;
  const near = Math.sqrt((count * w) / h / shape);
  let best = 1,
    most = -1;
  for (let n = Math.max(1, Math.floor(near / 2)); n <= Math.min(count, Math.ceil(near * 2) + 1); n++) {
    const rows = Math.ceil(count / n);
    const score = Math.min(w / n / shape, h / rows) * (count / (n * rows));
    if (score > most) [most, best] = [score, n];
  }
  return best;
}

export const place = (b: Block, i: number): Box => ({
  x: b.inner.x + (i % b.across) * b.wide,
  y: b.inner.y + Math.floor(i / b.across) * b.high,
  w: b.wide,
  h: b.high,
});

// under finds the block at a point, and the index of its cell there, or -1 in its heading or an empty place.
export function under(blocks: Block[], x: number, y: number): { block: Block; index: number } | null {
  const block = blocks.find(({ outer: o }) => x >= o.x && x < o.x + o.w && y >= o.y && y < o.y + o.h);
  if (!block) return null;
  const column = Math.floor((x - block.inner.x) / block.wide),
    row = Math.floor((y - block.inner.y) / block.high);
  const index = row * block.across + column;
  return { block, index: column < 0 || column >= block.across || row < 0 || index >= block.count ? -1 : index };
}

// covered is the share of the area that cells occupy.
export const covered = (blocks: Block[], width: number, height: number): number =>
  blocks.reduce((sum, b) => sum + b.count * b.wide * b.high, 0) / (width * height);

// inRows divides the area into rows of boxes: as many rows as make the boxes most square.
function inRows(weights: number[], area: Box): Box[] {
  let best: Box[] = [],
    least = Infinity;
  for (let rows = 1; rows <= weights.length; rows++) {
    const boxes = rowsOf(weights, area, rows),
      worst = Math.max(...boxes.map((b) => Math.max(b.w / b.h, b.h / b.w)));
    if (worst >= least) break;
    [least, best] = [worst, boxes];
  }
  return best;
}

function rowsOf(weights: number[], area: Box, rows: number): Box[] {
  const sum = (of: number[]): number => of.reduce((a, b) => a + b, 0),
    total = sum(weights);
  const boxes: Box[] = [];
  let y = area.y;
  for (let r = 0; r < rows; r++) {
    const row = weights.slice(Math.ceil((r * weights.length) / rows), Math.ceil(((r + 1) * weights.length) / rows));
    const h = (area.h * sum(row)) / total;
    let x = area.x;
    for (const weight of row) {
      const w = (area.w * weight) / sum(row);
      boxes.push({ x, y, w, h });
      x += w;
    }
    y += h;
  }
  return boxes;
}

// inSquares divides the area into boxes with these weights, as a squarified treemap: along the shorter side of what is left, it adds boxes to a
// row for as long as they become more square.
function inSquares(weights: number[], area: Box): Box[] {
  const unit = (area.w * area.h) / weights.reduce((sum, w) => sum + w, 0);
  const boxes: Box[] = [];
  const rest = { ...area };
  while (boxes.length < weights.length) {
    const side = Math.min(rest.w, rest.h);
    let row: number[] = [],
      worst = Infinity;
    for (const weight of weights.slice(boxes.length)) {
      const longer = [...row, weight * unit],
        ratio = worstRatio(longer, side);
      if (ratio > worst) break;
      row = longer;
      worst = ratio;
    }
    const thick = row.reduce((sum, a) => sum + a, 0) / side;
    const across = rest.w >= rest.h; // the row is a column at the left
    let along = across ? rest.y : rest.x;
    for (const a of row) {
      const long = a / thick;
      boxes.push(across ? { x: rest.x, y: along, w: thick, h: long } : { x: along, y: rest.y, w: long, h: thick });
      along += long;
    }
    if (across) {
      rest.x += thick;
      rest.w -= thick;
    } else {
      rest.y += thick;
      rest.h -= thick;
    }
  }
  return boxes;
}

function worstRatio(areas: number[], side: number): number {
  const sum = areas.reduce((s, a) => s + a, 0);
  return Math.max((side * side * Math.max(...areas)) / (sum * sum), (sum * sum) / (side * side * Math.min(...areas)));
}

// nextTo finds the nearest place in the direction of an arrow key, of all places in the order in which they are drawn.
export function nextTo(places: Box[], from: number, key: string): number {
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key] ?? [0, 0];
  const center = (b: Box): [number, number] => [b.x + b.w / 2, b.y + b.h / 2];
  const start = places[from];
  if (!start) return places.length ? 0 : -1;
  const [x, y] = center(start);
  let best = from,
    nearest = Infinity;
  places.forEach((b, i) => {
    const [cx, cy] = center(b);
    const ahead = (cx - x) * dx + (cy - y) * dy,
      aside = Math.abs((cx - x) * dy) + Math.abs((cy - y) * dx);
    const distance = ahead + 3 * aside; // the same row or column first
    if (ahead > 0.5 && distance < nearest) [nearest, best] = [distance, i];
  });
  return best;
}
