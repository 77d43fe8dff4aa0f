import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, extname } from 'node:path';
import type { RegisterWorkerRequest } from '../types.js';
import type { Settings } from './options.js';

/** A worker's name within its process, until it is released. */
export interface Identity {
  name: string;
  machineId: string;
  release(): void;
}

const taken = new Set<string>();

/**
 * Finds a name that no other worker of this process has for a queue of a deployment: two workers of one name would supersede each other.
 */
export function identify(queue: string, set: Settings, deployment: string): Identity {
  const base = set.name ?? nameFound();
  const machineId = set.machineId ?? asId(process.env['NODE_NAME'] || hostname());
  const keyOf = (name: string) => JSON.stringify([deployment, queue, machineId, name]);
  let name = base;
  for (let n = 2; taken.has(keyOf(name)); n++) name = `${base}-${n}`;
  const key = keyOf(name);
  taken.add(key);
  return { name, machineId, release: () => void taken.delete(key) };
}

/** The registration of this process. */
export function registrationOf(
  queue: string,
  types: string[],
  set: Settings & Partial<Identity>,
  probeUrl: string | undefined,
): RegisterWorkerRequest {
  const { env, pid } = process;
  const major = process.versions.node.split('.')[0];
  return {
    queue,
    types,
    runtimes: [...new Set(['node', `node${major}`, ...(set.runtimes ?? [])])],
    name: set.name,
    machineId: set.machineId,
    hostname: hostname(),
    pid,
    ...version(set.version ?? env['npm_package_version']),
    maxConcurrent: set.concurrency,
    labels: { ...labelsOfEnvironment(), ...set.labels },
    ...(probeUrl && { probeUrl }),
  };
}

function version(text: string | undefined): { version?: string } {
  return text ? { version: text } : {};
}

function labelsOfEnvironment(): Record<string, string> {
  const labels: Record<string, string> = {};
  const of = { pod: 'POD_NAME', namespace: 'POD_NAMESPACE', node: 'NODE_NAME', zone: 'ZONE', deployment: 'DEPLOYMENT' };
  for (const [name, variable] of Object.entries(of)) {
    const value = process.env[variable];
    if (value) labels[name] = value;
  }
  return labels;
}

/**
 * A name that distinguishes this process from others on its machine. In a container the process may be pid 1, and with host networking it
 * has the host's name; then the container's id is used.
 */
function nameFound(): string {
  if (process.env['POD_NAME']) return process.env['POD_NAME'];
  const script = process.argv[1] ?? 'node';
  const program = basename(script, extname(script)) || 'node';
  const container = process.pid === 1 ? /[0-9a-f]{64}/.exec(mounts())?.[0] : undefined;
  return container ? `${program}-${container.slice(0, 12)}` : program;
}

function mounts(): string {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8');
  } catch {
    return '';
  }
}

/** Turns a host's name into an id. */
export function asId(name: string): string {
  return name
    .replace(/[^A-Za-z0-9._-]/g, '-')
    .replace(/^[._-]+/, '')
    .slice(0, 128);
}
