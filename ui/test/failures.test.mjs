// What the Overview shows of failures that workers reported and of queues whose tasks wait, and a queue's page of its newest tasks.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { axeViolations, launch, settled, show, visit } from './browser.mjs';
import { open, root } from './stage.mjs';

const scope = { tenantId: 'acme', workspaceId: 'prod' },
  at = 'tenantId=acme&workspaceId=prod';
const images = process.env.SCREENSHOTS || join(root, 'bin/ui');
let stage, browser;

before(async () => {
  mkdirSync(images, { recursive: true });
  [stage, browser] = await Promise.all([open({ fleet: false, interval: '1m', tenants: [] }), launch()]);
});
after(async () => {
  await browser?.close();
  await stage?.close();
});

const hire = (version, machineId) =>
  stage.call('POST', `workers?${at}`, { queue: 'mail', types: ['letter'], version, machineId, maxConcurrent: 20 });

// run creates tasks, and has a worker claim and complete them.
async function run(worker, ids, completion) {
  for (const taskId of ids) await stage.call('POST', `tasks?${at}`, { taskId, queue: 'mail', type: 'letter' });
  const { tasks } = await stage.call('POST', 'queues/mail/claim', { max: 20 }, worker.workerToken);
  for (const [n, t] of tasks.entries())
    await stage.call('POST', `tasks/${t.taskId}/completed`, { attempt: t.attempt, ...completion(n) }, t.taskToken);
}

const cells = (page, label) =>
  page.evaluate(
    (name) =>
      [...document.querySelectorAll('table')]
        .filter((t) => (t.closest('[aria-label]')?.getAttribute('aria-label') ?? t.querySelector('caption')?.textContent) === name)
        .flatMap((t) => [...t.querySelectorAll('tbody tr')].map((r) => [...r.cells].map((c) => c.textContent.trim()))),
    label,
  );

test('failures are grouped by error, name the version that may be the cause, and are retried after a count', async () => {
  const page = await visit(browser, stage, stage.admin, { scope, width: 1440, height: 900 });
  await show(page, '');
  assert.equal(await page.getByText('Reported as failed').count(), 0, 'a section of nothing');

  const workers = await Promise.all(['2.0', '1.9', '1.9', '1.9', '1.9', '1.9'].map((v, n) => hire(v, `host-${n}`)));
  await run(workers[1], ['ok-1', 'ok-2'], () => ({ outcome: 'SUCCEEDED' }));
  const failed = (n) => ({ outcome: 'FAILED', error: { category: 'USER_CODE', message: `<b>no user ${n}</b>\nstack`, retryable: false } });
  await run(workers[0], ['bad-1', 'bad-2', 'bad-3', 'bad-4', 'bad-5', 'bad-6'], failed);
  for (const taskId of ['waits-1', 'waits-2']) await stage.call('POST', `tasks?${at}`, { taskId, queue: 'post', type: 'parcel' });

  const banner = page.getByRole('status', { name: 'Health' });
  await page.getByRole('heading', { name: 'Reported as failed' }).waitFor();
  await page.waitForFunction(() => /6 x USER_CODE/.test(document.querySelector('.banner')?.textContent ?? ''));
  assert.match(await banner.textContent(), /All of the first group ran on version 2\.0, which 1 of the 6 workers/);
  const [row, ...more] = await cells(page, 'Failures that workers reported in the last hour');
  assert.deepEqual(more, []);
  assert.deepEqual(row.slice(0, 6), ['USER_CODE <b>no user …</b>', '6', '6', 'mail', 'letter', '2.0 (only 1 of 6 workers)']);
  assert.match(row[8], /^bad-/);
  await page
    .locator('table a', { hasText: /^post$/ })
    .first()
    .waitFor();
  const backlog = await cells(page, 'Queues by the wait of their oldest task');
  assert.deepEqual([backlog.length, backlog[0][0], backlog[0][2]], [1, 'post', '2']);
  assert.deepEqual(await axeViolations(page), []);
  await page.screenshot({ path: join(images, 'failures-1440.png'), fullPage: true });

  await page.getByRole('button', { name: 'Retry …' }).click();
  const dialog = page.getByRole('dialog');
  await dialog
    .getByText(/6 tasks?|6 of/)
    .first()
    .waitFor();
  await dialog.getByRole('button', { name: /^Retry/ }).click();
  await page.waitForFunction(async () => /retr/i.test(document.querySelector('.toast')?.textContent ?? ''));
  const { tasks } = await stage.call('GET', `tasks?${at}&queue=mail&state=QUEUED`);
  assert.equal(tasks.length, 6);

  await show(page, 'queues/mail');
  await page.getByRole('heading', { name: 'Newest tasks by type' }).waitFor();
  await settled(page);
  const chart = await page.getByRole('img', { name: /^How long tasks had waited when they were claimed/ }).getAttribute('aria-label');
  assert.match(chart, /wait: now \d[\d.]* (ms|s), at most \d[\d.]* (ms|s) in the last [1-9]\d* (s|min)$/);
  const [flow, ...others] = await cells(page, 'Newest tasks by type');
  assert.deepEqual(others, []);
  assert.deepEqual([flow[0], flow[1], flow[2], flow[3]], ['letter', '8', '2', '8']);
  for (const wait of flow.slice(4)) assert.match(wait, /^\d[\d.]* (ms|s)$/);
  assert.deepEqual(await axeViolations(page), []);
  await page.screenshot({ path: join(images, 'queue-1440.png'), fullPage: true });

  await page.setViewportSize({ width: 390, height: 844 });
  await show(page, '');
  await page.getByRole('heading', { name: 'Reported as failed' }).waitFor();
  assert.deepEqual(await axeViolations(page), []);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'the page scrolls sideways');
  await page.screenshot({ path: join(images, 'failures-390.png'), fullPage: true });
  assert.deepEqual(await page.wrong(), []);
});
