import type { Held } from './held.js';
import type { ProgressUpdate } from './messages.js';

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
export function share(all: Held[]): void {
  let room = maxReports;
  for (const held of [...all].sort((a, b) => b.waits - a.waits)) room -= held.pack(room);
}

/** The body of POST /v1/heartbeats, each with the token of its attempt. */
export function bodyOf(batch: Held[]): string {
  share(batch);
  return `{"heartbeats":[${batch.map((held) => held.beat({ taskToken: held.token })).join()}]}`;
}
