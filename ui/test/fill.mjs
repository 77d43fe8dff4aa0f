// Fills a workspace like a busy deployment, with more of everything than a page shows. A separate process sends its workers' heartbeats.
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { crowd, root, until } from './stage.mjs';

const tenantId = 'initech',
  workspaceId = 'prod',
  at = `tenantId=${tenantId}&workspaceId=${workspaceId}`;
const tasks = Number(process.env.TASKS ?? 100_000),
  workers = Number(process.env.WORKERS ?? 10_000),
  machines = Math.max(2, workers / 20);
const queues = 20,
  runs = 100,
  batch = 500,
  dying = 300,
  gone = 40;
export const interval = 20_000; // ms between two beats of a worker
const two = (i) => String(i).padStart(2, '0');

// each calls work n times, 16 at once.
async function each(n, work) {
  let next = 0;
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (let i = next++; i < n; i = next++) await work(i);
    }),
  );
}

// claimSome makes a worker claim tasks: some keep running, some succeed, some fail.
async function claimSome(stage, w, queue) {
  const got = await stage.call('POST', `queues/${queue}/claim`, { max: 8 }, w.workerToken);
  for (const [n, t] of got.tasks.entries()) {
    await stage.call('POST', `tasks/${t.taskId}/started`, { attempt: t.attempt, workerId: w.workerId }, t.taskToken);
    const [operation, body] =
      n < 2
        ? ['heartbeat', { progressPct: 30 + n, message: 'on its way' }]
        : n < 6
          ? ['completed', { outcome: 'SUCCEEDED' }]
          : ['completed', { outcome: 'FAILED', error: { category: 'USER_CODE', message: 'no such user', retryable: false } }];
    await stage.call('POST', `tasks/${t.taskId}/${operation}`, { attempt: t.attempt, ...body }, t.taskToken);
  }
  return got.tasks[0]?.taskId;
}

export async function fill(stage) {
  const registered = await crowd(stage, at, workers, machines, (i) => ({
    queue: `queue-${two(i % queues)}`,
    types: [`type-${i % 5}`, 'any'],
    version: `1.${i % 7}`,
    maxConcurrent: 20,
    labels: { region: i % 2 ? 'us' : 'eu' },
  }));
  const beats = fork(join(root, 'ui/test/beats.mjs'), [stage.base]);
  beats.send({ workers: registered.map((w) => ({ id: w.workerId, token: w.workerToken })), every: interval });
  await each(Math.floor((tasks - dying) / batch), (i) =>
    stage.call('POST', `tasks:batch?${at}`, {
      tasks: Array.from({ length: batch }, (_, j) => ({
        tenantId,
        workspaceId,
        queue: `queue-${two(j % queues)}`,
        type: 'any',
        runId: `run_batch-${i % runs}`,
        labels: { team: j % 2 ? 'growth' : 'core' },
        heartbeatIntervalMs: 600_000,
        heartbeatTimeoutMs: 1_800_000,
      })),
    }),
  );
  let first;
  await each(workers / 4, async (i) => {
    const taskId = await claimSome(stage, registered[4 * i], `queue-${two((4 * i) % queues)}`);
    first ??= taskId && { taskId, workerId: registered[4 * i].workerId };
  });
  await stage.call('POST', `runs/run_batch-1/cancel?${at}`, { reason: 'not wanted' });
  await each(dying, async (i) => {
    const t = await stage.call('POST', `tasks?${at}`, {
      type: `type-${i % 5}`,
      runId: 'run_doomed',
      heartbeatIntervalMs: 1000,
      heartbeatTimeoutMs: 2000,
    });
    await stage.call('POST', `tasks/${t.taskId}/started`, { attempt: t.attempt, workerId: registered[i].workerId }, t.taskToken);
  });
  await each(200, (i) =>
    stage.call('POST', `schedules?${at}`, {
      scheduleId: `nightly-${i}`,
      cron: '0 0 3 * * *',
      task: { queue: `queue-${two(i % queues)}`, type: 'any' },
    }),
  );
  await each(20, (i) => stage.call('POST', `webhooks?${at}`, { webhookId: `pager-${i}`, url: stage.hook, events: ['worker.offline'] }));
  await each(gone, (i) =>
    stage.call('POST', `workers/${registered[registered.length - 1 - i].workerId}/offline?${at}`, { reason: 'gone' }),
  );
  const lost = () => stage.call('GET', `tasks?${at}&runId=run_doomed&state=FAILED&pageSize=1`);
  await until('the doomed are lost', async () => (await lost()).totalCount === dying);
  const zombie = (await lost()).tasks[0].taskId,
    { taskId, workerId } = first;
  const { counts } = await stage.call('GET', `stats?${at}&steps=1`).then((s) => ({ counts: s.tasks }));
  return { tenantId, workspaceId, at, tasks, workers, machines, queues, counts, beats, pages: pages({ taskId, zombie, workerId }) };
}

const more = /there are more|of [\d,]+ tasks/;
// pages are all pages, with a text that each shows once it has read its data.
const pages = ({ taskId, zombie, workerId }) => [
  ['', /Lubdub ended \d+ attempts/],
  ['pulse', new RegExp(`${(workers - gone).toLocaleString('en')} workers by machine`)],
  ['tasks', more],
  ['tasks?state=QUEUED', more],
  ['tasks?queue=queue-03&state=QUEUED', more],
  ['tasks?state=FAILED&reason=HEARTBEAT_TIMEOUT', /HEARTBEAT_TIMEOUT/],
  ['tasks?state=RUNNING&liveness=FRESH', /RUNNING/],
  ['tasks?label=team=core', more],
  ['tasks?type=none', /No tasks on this page match/],
  ['tasks?runId=run_batch-7', more],
  [`tasks/${taskId}`, /Attempt 1 runs/],
  [`tasks/${zombie}`, /became a zombie/],
  ['workers', /50 of [\d,]+ workers/],
  ['workers?status=OFFLINE', /OFFLINE/],
  ['workers?queue=queue-03', /there are more/],
  ['workers?liveness=FRESH&version=1.3', /there are more/],
  ['workers?label=region=us', /there are more/],
  ['workers?name=node-9', /node-9/],
  [`workers/${workerId}`, /Schedulable/],
  ['machines', /of \d+ machines/],
  ['machines?status=OFFLINE', /Machines/],
  ['machines/rack-001', /workers? online/],
  ['queues', /queue-19/],
  ['queues/queue-03', /could be claimed now/],
  ['runs', /run_/],
  ['runs/run_batch-7', /There are more/],
  ['schedules', /50 of 200 schedules/],
  ['schedules/nightly-7', /The next fire/],
  ['webhooks', /20 webhooks|20 of 20/],
  ['webhooks/pager-3', /DELIVERED|PENDING|DEAD/],
  ['events', /there may be older ones/],
  ['events?type=worker.offline', /worker\.offline/],
  ['events?type=machine.flapping', /Events/],
  ['events?machineId=rack-001', /rack-001|machine|worker/],
  [`events?workerId=${workerId}`, /task\./],
  ['system', /Swept by/],
];
