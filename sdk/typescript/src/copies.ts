import { Cancelled, DeadlineExceeded, EndedError, Expired, LeaseEnded, Lost, StoppedError, Superseded } from './ends.js';
import { AnswerError, ApiError, ClosedError, UnansweredError, UsageError } from './errors.js';
import { cut, Failure, maxStack, OutputError, Snooze, textOf } from './failure.js';
import { Stopping, Stuck, TaskTimeout } from './worker/ends.js';

/** The classes that a copy keeps, by name, since a bundler may rename them. */
const classes = Object.assign(
  { Cancelled, DeadlineExceeded, EndedError, Expired, LeaseEnded, Lost, StoppedError, Superseded },
  { AnswerError, ApiError, ClosedError, UnansweredError, UsageError },
  { Failure, OutputError, Snooze, Stopping, Stuck, TaskTimeout },
);

const names = Object.keys(classes) as (keyof typeof classes)[];

/** An error in a form that another thread or process can receive. */
export interface ErrorCopy {
  is?: keyof typeof classes;
  name: string;
  message: string;
  stack?: string;
  fields: Record<string, unknown>;
  cause?: ErrorCopy;
  isShared?: boolean; // the other side has the error
}

/** How many causes a copy keeps. */
const maxCauses = 8;

/** The limit of a copied field, in bytes of JSON. */
const maxField = 4 << 10;

/** Copies an error. shared: one that the other side has, and gives to errorOf. */
export function copyOf(error: unknown, shared?: unknown, causes = maxCauses): ErrorCopy {
  if (!(error instanceof Error)) return { name: 'Error', message: cut(textOf(error), maxStack), stack: '', fields: {} };
  const { name, message, stack, cause } = error;
  return {
    is: names.find((one) => error instanceof classes[one]),
    name: name === 'Error' ? error.constructor.name : name, // a class that sets no name
    message: cut(message, maxStack),
    stack: stack && cut(stack, maxStack),
    fields: fieldsOf(error),
    cause: cause instanceof Error && causes > 0 ? copyOf(cause, shared, causes - 1) : undefined,
    isShared: error === shared,
  };
}

export function errorOf(copy: ErrorCopy, shared?: unknown): Error {
  if (copy.isShared && shared instanceof Error) return shared;
  const { is, name, message, stack, fields, cause } = copy;
  const error = new Error(message, cause && { cause: errorOf(cause, shared) });
  if (is) Object.setPrototypeOf(error, classes[is].prototype);
  else if (name !== 'Error') Object.defineProperty(error, 'name', { value: name, configurable: true, writable: true });
  Object.assign(error, fields);
  error.stack = stack ?? '';
  return error;
}

/** The further fields of an error that JSON can hold. The partial progress of a StoppedError has the limit of its completion. */
function fieldsOf(error: Error): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  const most = error instanceof StoppedError ? Infinity : maxField;
  for (const field of Object.keys(error)) {
    if (['message', 'stack', 'cause'].includes(field)) continue;
    try {
      const text = JSON.stringify(error[field as keyof Error]) as string | undefined;
      if (text !== undefined && Buffer.byteLength(text) <= most) fields[field] = JSON.parse(text);
    } catch {
      // The error is worth more than this field.
    }
  }
  return fields;
}
