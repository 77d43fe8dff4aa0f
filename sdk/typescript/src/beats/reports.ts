import type { ProgressUpdate } from './messages.js';

/** An attempt in a request. */
interface Item {
  readonly token: string;
  /** How many requests its report has waited for. */
  readonly waits: number;
  /** Chooses what the next beat reports, in the room that is left, and returns its size. */
  pack(room: number): number;
  beat(fields: object): string;
}

/** Progress and checkpoints in one request, in bytes. */
const maxReports = 1 << 20;

/** A heartbeat with what a handler has reported. The checkpoint is JSON text already. */
export function beatOf(fields: object, { pct, message, details }: ProgressUpdate): string {
  const text = JSON.stringify({ ...fields, progressPct: pct, message });
  return details === undefined ? text : `${text.slice(0, -1)},"details":${details}}`;
}

/** The length of a report in a heartbeat, in bytes. */
export function sizeOf({ pct, message, details }: ProgressUpdate): number {
  return Buffer.byteLength([JSON.stringify(pct), JSON.stringify(message), details].join(''));
}

/** Decides what attempts report in their next request. What does not fit is first in the one after it. */
export function share(all: readonly Item[]): void {
  let room = maxReports;
  for (const item of [...all].sort((a, b) => b.waits - a.waits)) room -= item.pack(room);
}

/** The body of POST /v1/heartbeats, each with the token of its attempt. */
export function bodyOf(batch: readonly Item[]): string {
  share(batch);
  return `{"heartbeats":[${batch.map((item) => item.beat({ taskToken: item.token })).join()}]}`;
}
