import { AnswerError } from './errors.js';
import type { TaskEnvelope } from './types.js';

// What answers say is read with care: whoever stands between may have written them.

/** More than any time that a server tells, in ms. */
const longest = 7 * 86_400_000;

/** The shortest interval of beats, in ms. */
const shortest = 10;

/** A number of milliseconds; 0 where it is none that can be meant. */
export function millis(value: unknown): number {
  return typeof value === 'number' && value > 0 && value <= longest ? value : 0;
}

/** The interval that an answer tells, in time for one beat that is lost on the way; where it tells none, the one known. */
export function intervalOf(value: unknown, timeoutMs: number, known: number): number {
  const told = millis(value);
  if (told === 0) return known;
  return Math.max(shortest, timeoutMs > 0 ? Math.min(told, timeoutMs / 2) : told);
}

/** The timeout that an answer tells; where it tells none, the one known. */
export function timeoutOf(value: unknown, known: number): number {
  const told = millis(value);
  return told >= 2 * shortest ? told : known;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The objects of a list. */
export function objects(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** A text; empty where it is none. */
export function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A text of printable ASCII, as ids and tokens are; empty where it is none. */
export function plain(value: unknown): string {
  return typeof value === 'string' && /^[!-~]*$/.test(value) ? value : '';
}

/** Whether this is the envelope of a task, as far as it must be. */
export function isEnvelope(value: unknown): value is TaskEnvelope {
  return (
    isObject(value) &&
    plain(value['taskId']) !== '' &&
    plain(value['taskToken']) !== '' &&
    Number.isInteger(value['attempt']) &&
    (value['attempt'] as number) >= 1
  );
}

/** The tasks that a claim brought. */
export function envelopesOf(tasks: unknown): TaskEnvelope[] {
  if (tasks === undefined || tasks === null) return [];
  if (Array.isArray(tasks) && tasks.every(isEnvelope)) return tasks;
  throw new AnswerError('lubdub: POST claim: what was claimed are no tasks with taskId, attempt and taskToken');
}
