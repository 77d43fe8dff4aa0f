import type { JSX } from 'preact';
import { forbidden } from './acts';
import { get, serverNow, type System } from './api';
import { useData } from './data';
import { scopeNow } from './session';

let read: Promise<System> | undefined; // once: the setting changes with a restart of the server only

async function templateOf(): Promise<string | null> {
  if (forbidden('getSystem')) return null;
  read ??= get<System>('v1/system').catch((e: unknown) => {
    read = undefined;
    throw e;
  });
  return (await read).logsUrl;
}

const around = 60_000; // ms of logs before the first and after the last time
const longest = 3_600_000; // ms; a longer range begins later, since most questions are about the end

// Logs links to the logs of a task, worker or machine where the server has a template for such links (logs-url). It shows nothing otherwise.
export function Logs({ ids, from, to }: { ids: Record<string, string>; from?: string; to?: string | null }): JSX.Element | null {
  const template = useData('logs', templateOf, 30_000).value;
  if (!template) return null;
  const last = to ? Date.parse(to) : serverNow();
  const begin = new Date(Math.max(from ? Date.parse(from) : 0, last - longest) - around),
    end = new Date(last + around);
  const values: Record<string, string> = {
    ...scopeNow(),
    ...ids,
    from: begin.toISOString(),
    to: end.toISOString(),
    fromMs: String(+begin),
    toMs: String(+end),
  };
  const url = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ''));
  return (
    <a href={url} target="_blank" rel="noreferrer">
      Logs
    </a>
  );
}
