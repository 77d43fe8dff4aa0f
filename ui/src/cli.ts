// The command lines that do the same as the dashboard; all are in this file.
import { escape } from './escape';
import { stringify } from './exactjson';
import { context, scopeNow } from './session';

const safe = /^[A-Za-z0-9_.,:=@%+/-]+$/;
// quote quotes a word for shells. Invisible characters are written as escapes, so that the copied text is what is shown.
export function quote(s: string): string {
  if (safe.test(s)) return s;
  const plain = s.replaceAll("'", `'\\''`);
  if (s === escape(s)) return `'${plain}'`;
  return `$'${escape(s.replace(/[\\']/g, '\\$&'))}'`;
}

export interface Options {
  reason?: string;
  graceMs?: number;
  deadlineMs?: number;
}
export type Selector = Record<string, string | undefined>;

const flags = (o: Options): string[] => [
  ...(o.graceMs === undefined ? [] : ['--grace', `${o.graceMs}ms`]),
  ...(o.deadlineMs === undefined ? [] : ['--deadline', `${o.deadlineMs}ms`]),
  ...(o.reason ? [`--reason=${o.reason}`] : []),
];

// where returns the flags for the deployment and the workspace that the page shows.
export function where(): string[] {
  const at = scopeNow();
  return [
    ...(context.value ? ['--context', context.value] : ['--server', new URL('..', document.baseURI).href.replace(/\/$/, '')]),
    ...(at ? ['--tenant', at.tenantId, '--workspace', at.workspaceId] : []),
  ];
}

const filters: Record<string, string> = {
  state: '--state',
  queue: '--queue',
  type: '--type',
  runId: '--run',
  workerId: '--worker',
  machineId: '--machine',
  scheduleId: '--schedule',
  label: '--selector',
  reason: '--because',
  version: '--version',
};

export const line = (words: string[]): string => words.map(quote).join(' ');

export function onIds(noun: string, verb: string, ids: string[], o: Options = {}): string {
  const [hook = '', delivery = ''] = (ids[0] ?? '').split(' ');
  const which = noun === 'system' ? [] : verb === 'redeliver' ? [hook, '--delivery', delivery] : ids;
  return line(['lubdub', noun, verb, ...which, ...flags(o), ...where()]);
}

// withBody is a command that reads the request's body.
export const withBody = (noun: string, verb: string, ids: string[], body: unknown, more: string[] = []): string =>
  `printf %s ${quote(stringify(body))} | ` + line(['lubdub', noun, verb, ...ids, '--file=-', ...more, ...where()]);

export function onAll(noun: string, verb: string, selector: Selector, o: Options = {}): string {
  const given = Object.entries(selector).filter((e): e is [string, string] => !!e[1]);
  return line(['lubdub', noun, verb, ...given.map(([k, v]) => `${filters[k] ?? '--' + k}=${v}`), ...flags(o), ...where()]);
}
