import { AnswerError } from './errors.js';
import type { TaskEnvelope } from './types.js';

// Reads fields of answers defensively: a proxy may have written the answer.

/** Longer than any time that a server sends, in ms. */
const longest = 7 * 86_400_000;

/** The shortest heartbeat interval, in ms. */
const shortest = 10;

/** A number of milliseconds; 0 if the value is not a plausible duration. */
export function millis(value: unknown): number {
  return typeof value === 'number' && value > 0 && value <= longest ? value : 0;
}

/** The interval in an answer, shortened so that one lost heartbeat does not end the attempt; the known one if the answer has none. */
export function intervalOf(value: unknown, timeoutMs: number, known: number): number {
  const given = millis(value);
  if (given === 0) return known;
  return Math.max(shortest, timeoutMs > 0 ? Math.min(given, timeoutMs / 2) : given);
}

/** The timeout in an answer; the known one if the answer has none. */
export function timeoutOf(value: unknown, known: number): number {
  const given = millis(value);
  return given >= 2 * shortest ? given : known;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The objects in a list; other items are dropped. */
export function objects(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** A string; empty if the value is not one. */
export function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A string of printable ASCII, as ids and tokens are; empty if the value is not one. */
export function plain(value: unknown): string {
  return typeof value === 'string' && /^[!-~]*$/.test(value) ? value : '';
}

/** Whether this is a task envelope, with the fields that the SDK needs. */
export function isEnvelope(value: unknown): value is TaskEnvelope {
  return (
    isObject(value) &&
    plain(value['taskId']) !== '' &&
    plain(value['taskToken']) !== '' &&
    Number.isInteger(value['attempt']) &&
    (value['attempt'] as number) >= 1
  );
}

/** The tasks in the answer to a claim. */
export function envelopesOf(tasks: unknown): TaskEnvelope[] {
  if (tasks === undefined || tasks === null) return [];
  if (Array.isArray(tasks) && tasks.every(isEnvelope)) return tasks;
  throw new AnswerError('lubdub: POST claim: the claimed tasks lack taskId, attempt or taskToken');
}
