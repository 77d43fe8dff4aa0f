// Fills a workspace as a busy deployment would: of everything so much that no page shows all of it.
import { crowd, until } from './stage.mjs';

const tenantId = 'initech', workspaceId = 'prod', at = `tenantId=${tenantId}&workspaceId=${workspaceId}`;
const tasks = 100_000, workers = 10_000, machines = 500, queues = 20, runs = 100, batch = 500, dying = 300;
const two = (i) => String(i).padStart(2, '0');

// each does something so many times, 16 at once.
async function each(n, work) {
  let next =Math.floor((tasks - dying) / batch);
  await Promise.all(Array.from({ length: 16 }, async () => { for (let i = next++; i < n; i = next++) await work(i); }));
}

export async function fill(stage) {
  const hired = await crowd(stage, at, workers, machines, (i) => ({ queue: `queue-${two(i % queues)}`, types: [`type-${i % 5}`, 'any'], version: `1.${i % 7}`, maxConcurrent: 20,
    labels: { region: i % 2 ? 'us' : 'eu' } }));
  await each((tasks - dying) / batch | 0, async (i) => {
    await stage.call('POST', `tasks:batch?${at}`, { tasks: Array.from({ length: batch }, (_, j) => ({ tenantId, workspaceId, queue: `queue-${two(j % queues)}`, type: 'any',
      runId: `run_batch-${i % runs}`, labels: { team: j % 2 ? 'growth' : 'core' }, heartbeatIntervalMs: 600_000, heartbeatTimeoutMs: 1_800_000 })) });
  });
  // Some are handed out: a part of them runs, a part has ended, a part is lost, and a few workers are gone.
  const held = [];
  await each(workers / 10, async (i) => {
    const w = hired[10 * i];
    const got = await stage.call('POST', `queues/queue-${two(10 * i % queues)}/claim`, { max: 5 }, w.workerToken);
    for (const [n, t] of got.tasks.entries()) {
      await stage.call('POST', `tasks/${t.taskId}/started`, { attempt: t.attempt, workerId: w.workerId }, t.taskToken);
      if (n < 2) await stage.call('POST', `tasks/${t.taskId}/heartbeat`, { attempt: t.attempt, progressPct: n * 30 + i % 30, message: 'on its way' }, t.taskToken);
      else {
        await stage.call('POST', `tasks/${t.taskId}/completed`, { attempt: t.attempt, ...(n < 4 ? { outcome: 'SUCCEEDED' }
          : { outcome: 'FAILED', error: { category: 'USER_CODE', message: 'no such user', retryable: false } }) }, t.taskToken);
      }
      if (n === 0) held.push({ taskId: t.taskId, workerId: w.workerId });
    }
  });
  await each(dying, async (i) => {
    const t = await stage.call('POST', `tasks?${at}`, { type: `type-${i % 5}`, runId: 'run_doomed', heartbeatIntervalMs: 1000, heartbeatTimeoutMs: 2000, retry: { maxAttempts: 1, maxLosses: 0 } });
    await stage.call('POST', `tasks/${t.taskId}/started`, { attempt: t.attempt, workerId: hired[i].workerId }, t.taskToken);
  });
  await each(200, (i) => stage.call('POST', `schedules?${at}`, { scheduleId: `nightly-${i}`, cron: '0 0 3 * * *', task: { queue: `queue-${two(i % queues)}`, type: 'any' } }));
  await each(20, (i) => stage.call('POST', `webhooks?${at}`, { webhookId: `pager-${i}`, url: stage.hook, events: ['worker.offline'] }));
  await each(40, (i) => stage.call('POST', `workers/${hired[hired.length - 1 - i].workerId}/offline?${at}`, { reason: 'gone' }));
  await until('the doomed are lost', async () => (await stage.call('GET', `stats/verdicts?${at}`)).total >= dying);
  const zombie = (await stage.call('GET', `tasks?${at}&runId=run_doomed&state=FAILED&pageSize=1`)).tasks[0].taskId;
  const { taskId, workerId } = held[0];
  return { tenantId, workspaceId, at, tasks, workers, machines, queues, pages: [
    ['', /losses|ended by Lubdub/i], ['pulse', /9,96\d workers by machine/], ['tasks', /there are more|of \d+,?\d+ tasks/], ['tasks?state=QUEUED', /there are more|of \d+,?\d+ tasks/],
    ['tasks?queue=queue-03&state=QUEUED', /there are more|of \d+,?\d+ tasks/], ['tasks?state=FAILED&reason=HEARTBEAT_TIMEOUT', /HEARTBEAT_TIMEOUT/],
    ['tasks?state=RUNNING&liveness=FRESH', /RUNNING/], ['tasks?label=team=core', /there are more/], ['tasks?type=none', /found none/], ['tasks?runId=run_batch-7', /there are more|of \d+,?\d+ tasks/],
    [`tasks/${taskId}`, /Attempt 1 runs/], [`tasks/${zombie}`, /became a zombie/],
    ['workers', /50 of [\d,]+ workers/], ['workers?status=OFFLINE', /OFFLINE/], ['workers?queue=queue-03', /there are more/], ['workers?liveness=FRESH&version=1.3', /there are more/],
    ['workers?label=region=us', /there are more/], ['workers?name=node-9', /node-9/], [`workers/${workerId}`, /It takes work/],
    ['machines', /50 of 500 machines/], ['machines?status=OFFLINE', /Machines/], ['machines/rack-007', /20 workers online/], ['queues', /queue-19/], ['queues/queue-03', /could be claimed now/],
    ['runs', /run_batch/], ['runs/run_batch-7', /There are more/], ['schedules', /50 of 200 schedules/], ['schedules/nightly-7', /The next fire/],
    ['webhooks', /20 webhooks|20 of 20/], ['webhooks/pager-3', /DELIVERED|PENDING|DEAD/], ['events', /newest 100/], ['events?type=worker.offline', /worker\.offline/],
    [`events?workerId=${workerId}`, /task\./], ['system', /Swept by/]] };
}
