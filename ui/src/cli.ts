// The command lines that do what the dashboard does, all in this file.
const safe = /^[A-Za-z0-9_.,:=@%+/-]+$/;
export const quote = (s: string): string => safe.test(s) ? s : `'${s.replaceAll("'", `'\\''`)}'`;

export interface Options { reason?: string; graceMs?: number; deadlineMs?: number; silentForMs?: number }
export type Selector = Record<string, string | undefined>;

const flags = (o: Options): string[] => [
  ...(o.graceMs === undefined ? [] : ['--grace', `${o.graceMs}ms`]),
  ...(o.deadlineMs === undefined ? [] : ['--deadline', `${o.deadlineMs}ms`]),
  ...(o.silentForMs === undefined ? [] : ['--silent-for', `${o.silentForMs}ms`]),
  ...(o.reason ? ['--reason', o.reason] : []),
];

export const onIds = (noun: string, verb: string, ids: string[], o: Options = {}): string =>
  ['lubdub', noun, verb, ...(ids.length > 5 ? [...ids.slice(0, 5), '…'] : ids), ...flags(o)].map((s) => s === '…' ? s : quote(s)).join(' ');

export const onAll = (noun: string, verb: string, selector: Selector, o: Options = {}): string => {
  const pairs = Object.entries(selector).filter((e): e is [string, string] => !!e[1]).map(([k, v]) => `${k}=${v}`);
  return ['lubdub', noun, verb, '--selector', pairs.join(','), ...flags(o)].map(quote).join(' ');
};
