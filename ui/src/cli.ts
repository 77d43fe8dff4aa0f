// The command lines that do what the dashboard does, all in this file.
const safe = /^[A-Za-z0-9_.,:=@%+/-]+$/;
export const quote = (s: string): string => safe.test(s) ? s : `'${s.replaceAll("'", `'\\''`)}'`;

export interface Options { reason?: string; graceMs?: number; deadlineMs?: number }
export type Selector = Record<string, string | undefined>;

const flags = (o: Options): string[] => [
  ...(o.graceMs === undefined ? [] : ['--grace', `${o.graceMs}ms`]),
  ...(o.deadlineMs === undefined ? [] : ['--deadline', `${o.deadlineMs}ms`]),
  ...(o.reason ? ['--reason', o.reason] : []),
];

const filters: Record<string, string> = { state: '--state', queue: '--queue', type: '--type', runId: '--run', workerId: '--worker', machineId: '--machine',
  label: '--selector', reason: '--because', version: '--version' };

const shown = 5; // ids; more are left to the reader

export function onIds(noun: string, verb: string, ids: string[], o: Options = {}): string {
  const words = ['lubdub', noun, verb];
  if (verb === 'redeliver') {
    const [hook = '', delivery = ''] = (ids[0] ?? '').split(' ');
    words.push(hook, '--delivery', delivery);
  } else if (noun !== 'system') words.push(...ids.slice(0, shown));
  return [...words, ...flags(o)].map(quote).join(' ') + (ids.length > shown ? ` # and ${ids.length - shown} more` : '');
}

export function onAll(noun: string, verb: string, selector: Selector, o: Options = {}): string {
  const given = Object.entries(selector).filter((e): e is [string, string] => !!e[1]);
  return ['lubdub', noun, verb, ...given.flatMap(([k, v]) => [filters[k] ?? '--' + k, v]), ...flags(o)].map(quote).join(' ');
}
