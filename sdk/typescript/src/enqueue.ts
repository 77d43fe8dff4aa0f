import { UsageError } from './errors.js';
import { delayOf } from './failure.js';
import type { CreateTasksItem, Task } from './types.js';

/** A task for `enqueueMany`: where it waits, its type, its payload, and any other field of a creation. */
export interface NewTask extends Omit<CreateTasksItem, 'queue' | 'type' | 'runAt' | 'delayMs' | 'notBefore' | 'deadline'> {
  queue: string;
  type: string;
  /** The earliest time of the first claim; until then the task is SCHEDULED. */
  runAt?: Date | string;
  /** The same as a time from the creation on, in ms by the server's clock, at most 366 days; instead of runAt. */
  delayMs?: number;
  /** @deprecated Another name of runAt. */
  notBefore?: Date | string;
  /** When the task fails if it has not finished. */
  deadline?: Date | string;
}

/** The result of one task of `enqueueMany`. The error is an ApiError if the server refused the task. */
export type EnqueuedTask = { task: Task; error?: undefined } | { task?: undefined; error: Error };

// Bounds of a batch; the server accepts 1,000 creations and 4 MiB.
const maxTasks = 1000;
const maxBytes = 2 << 20;

export function itemOf(task: NewTask): CreateTasksItem & { queue: string } {
  if (!task.queue) throw new UsageError('lubdub: a task to enqueue needs a queue; createTask creates tasks without one');
  const time = (at: Date | string | undefined): string | undefined => (at instanceof Date ? at.toISOString() : at);
  const delayMs = task.delayMs === undefined ? undefined : delayOf(task.delayMs);
  return { ...task, delayMs, runAt: time(task.runAt), notBefore: time(task.notBefore), deadline: time(task.deadline) };
}

/** Creates tasks in batches of bounded size, and yields one result for each, in order. */
export async function* inBatches(
  tasks: AsyncIterable<NewTask>,
  create: (items: CreateTasksItem[]) => Promise<EnqueuedTask[]>,
  ended: AbortSignal,
): AsyncGenerator<EnqueuedTask, void, undefined> {
  let batch: (CreateTasksItem | Error)[] = []; // an error is why a task cannot be sent
  let bytes = 0;
  const failed = (items: CreateTasksItem[], error: Error) => {
    ended.throwIfAborted();
    return items.map(() => ({ error }));
  };
  async function* send(): AsyncGenerator<EnqueuedTask, void, undefined> {
    const items = batch.filter((one) => !(one instanceof Error)) as CreateTasksItem[];
    const results = items.length > 0 ? await create(items).catch((error: Error) => failed(items, error)) : [];
    let n = 0;
    for (const one of batch) yield one instanceof Error ? { error: one } : results[n++]!;
    batch = [];
    bytes = 0;
  }
  for await (const task of tasks) {
    let one: CreateTasksItem | Error,
      size = 0;
    try {
      const text = JSON.stringify(itemOf(task));
      one = JSON.parse(text) as CreateTasksItem; // a copy: the caller may change the task while it waits
      size = Buffer.byteLength(text);
    } catch (error) {
      one = error as Error;
    }
    if (bytes + size > maxBytes) yield* send();
    batch.push(one);
    bytes += size;
    if (batch.length === maxTasks) yield* send();
  }
  yield* send();
}
