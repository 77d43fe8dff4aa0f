import type { JSX } from 'preact';
import { call, get, type Queue, type Task } from '../api';
import { done, forbidden } from '../acts';
import { withBody } from '../cli';
import { acted, useData } from '../data';
import { Form, type Draft } from '../forms';
import { toValues, type Body, type FormField } from '../formsbody';
import { Title } from '../parts';
import { go, href } from '../route';

// fieldsOf returns the fields of what is created; `at` is where they are in the request's body, and `once` are those of a single task.
export function fieldsOf(at: '' | 'task.', once: FormField[], queues: string[]): FormField[] {
  const all: FormField[] = [
    { path: 'queue', half: true, label: 'Queue', required: true, hint: 'Where the task waits for a worker.', suggestions: queues },
    { path: 'type', half: true, label: 'Type', hint: 'The kind of work; workers register for types.' },
    { path: 'payload', label: 'Payload, JSON', kind: 'json', hint: 'Any JSON value for the worker. Text is in double quotes.' },
    { path: 'labels', label: 'Labels', kind: 'pairs', hint: 'One key=value per line, to find the task by.' },
    { path: 'retry.maxAttempts', label: 'Attempts that may fail', kind: 'number', hint: 'Default 3.', more: true },
    {
      path: 'retry.maxLosses',
      label: 'Attempts that may be lost',
      kind: 'number',
      hint: 'To silence or a dead worker. Default 3.',
      more: true,
    },
    { path: 'runTimeoutMs', label: 'Run timeout, seconds', kind: 'seconds', hint: 'How long an attempt may take.', more: true },
    {
      path: 'startTimeoutMs',
      label: 'Start timeout, seconds',
      kind: 'seconds',
      hint: 'From the claim to the start. Default 60.',
      more: true,
    },
    {
      path: 'heartbeatTimeoutMs',
      label: 'Heartbeat timeout, seconds',
      kind: 'seconds',
      hint: "How long an attempt may be silent. Default: its worker's.",
      more: true,
    },
    { path: 'heartbeatIntervalMs', label: 'Heartbeat interval, seconds', kind: 'seconds', hint: 'At most half the timeout.', more: true },
    { path: 'runId', label: 'Run', hint: 'Groups tasks.', more: true },
  ];
  const rest: FormField = {
    path: '*',
    label: 'Other fields, JSON',
    kind: 'rest',
    hint: 'An object with other fields of POST /v1/tasks, such as {"workerLabels": {"gpu": "a100"}}.',
    more: true,
  };
  return [...all.slice(0, 3), ...once.filter((f) => !f.more), ...all.slice(3), ...once.filter((f) => f.more), rest].map((f) => ({
    ...f,
    path: once.includes(f) ? f.path : at + f.path,
  }));
}

// useQueues returns the names to suggest.
export function useQueues(): string[] {
  const may = !forbidden('listQueues');
  const read = useData(
    'queue names',
    (signal) => (may ? get<{ queues: Queue[] }>('v1/queues', {}, signal) : Promise.resolve({ queues: [] })),
    0,
  );
  return read.value?.queues.map((q) => q.queue) ?? [];
}

const once: FormField[] = [
  { path: 'delayMs', half: true, label: 'Delay, seconds', kind: 'seconds', hint: 'How long from now on no worker may claim it.' },
  { path: 'runAt', half: true, label: 'Run at, UTC', kind: 'time', hint: 'The same as a time, instead of the delay.' },
  { path: 'deadline', label: 'Deadline, UTC', kind: 'time', hint: 'It fails if it has not ended by then.', more: true },
  { path: 'taskId', label: 'Task id', hint: 'Lubdub generates one by default.', more: true },
];

export function TaskForm(): JSX.Element {
  const fields = fieldsOf('', once, useQueues());
  const save = async (body: Body, draft: Draft): Promise<void> => {
    const t = await call<Task>('POST', 'v1/tasks', { body, key: draft.key });
    done.set({ text: `Created task ${t.taskId}`, failed: false });
    acted.set(acted.value + 1);
    go(href('tasks/' + t.taskId));
  };
  return (
    <>
      <Title name="Create task">Create task</Title>
      <Form
        name="task"
        fields={fields}
        initial={toValues(fields, {})}
        verb="Create task"
        back={href('tasks')}
        cli={(body, draft) => withBody('task', 'create', [], body, ['--key', draft.key])}
        save={save}
      />
    </>
  );
}
