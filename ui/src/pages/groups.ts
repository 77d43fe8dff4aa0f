import type { Cell } from './fleet';

// What workers can be grouped by. A zone is the label zone, topology.kubernetes.io/zone or region, the first that a worker has.
export const groupings = ['machine', 'queue', 'version', 'zone'] as const;
export type By = (typeof groupings)[number];

export const groupOf = (c: Cell, by: By): string => c[by] || `no ${by}`;

// grouped has the cells of each group, in their order.
export function grouped(cells: Cell[], by: By): Map<string, Cell[]> {
  const groups = new Map<string, Cell[]>();
  for (const c of cells) {
    const name = groupOf(c, by),
      of = groups.get(name);
    if (of) of.push(c);
    else groups.set(name, [c]);
  }
  return groups;
}
