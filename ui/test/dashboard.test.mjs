import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { judge, launch, patience, press, settled, show, visit } from './browser.mjs';
import { crowd, mint, open, root, until } from './stage.mjs';

let stage, browser, acme, globex;
const images = process.env.SCREENSHOTS || join(root, 'bin/ui');

before(async () => {
  mkdirSync(images, { recursive: true });
  [stage, browser] = await Promise.all([open(), launch()]);
  ({ acme, globex } = stage.scopes);
});
after(async () => { await browser?.close(); await stage?.close(); });

const pages = () => ['', 'pulse', 'tasks', `tasks/${acme.running}`, `tasks/${acme.zombie}`, 'workers', `workers/${acme.workers[0].workerId}`, 'machines', 'machines/host-0', 'queues',
  'queues/mail', 'runs', 'runs/run_nightly-acme', 'schedules', 'schedules/nightly', 'webhooks', 'webhooks/pager', 'events', 'system'];
const as = (role, scope = acme, more = {}) => visit(browser, stage, mint(role, scope.tenantId, scope.workspaceId), more);
const fine = async (page) => { assert.deepEqual(await page.wrong(), []); await page.context().close(); };

// Nothing here disturbs the others, so they run beside each other.
describe('while all is well', { concurrency: 4 }, () => {
describe('each page', { concurrency: 3 }, () => {
  for (const width of [390, 1024, 1600]) {
    test(`at ${width} px, in both themes, has nothing that axe finds, no call too many, and keeps to its policy`, async () => {
      for (const theme of ['light', 'dark']) {
        const page = await visit(browser, stage, stage.admin, { scope: acme, width, theme, height: width === 390 ? 844 : 800 });
        for (const path of pages()) {
          page.requests = 0;
          await show(page, path);
          assert.ok(page.requests <= 12, `${path} made ${page.requests} requests`); // judging takes time, in which it asks again
          assert.deepEqual(await judge(page), [], `${path} in ${theme}`);
          const [body, view] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
          assert.ok(body <= view, `${path} is ${body} px wide, in ${view}`);
          const image = { '': 'overview', [`tasks/${acme.zombie}`]: 'task' }[path];
          if (image && (width === 1024 || process.env.ALL_SCREENSHOTS)) {
            await page.screenshot({ path: join(images, `${image}-${theme}${width === 1024 ? '' : '-' + width}.png`) });
          }
        }
        await fine(page);
      }
    });
  }
});

test('what is shown first is small', async () => {
  const page = await browser.newPage();
  page.setDefaultTimeout(patience);
  const files = [];
  page.on('requestfinished', (r) => { if (r.url().includes('/ui/')) files.push(r); });
  await page.goto(stage.base + '/ui/');
  await page.waitForSelector('main h1');
  await page.waitForLoadState('networkidle');
  let bytes = 0;
  for (const file of files) bytes += (await file.sizes()).responseBodySize;
  assert.ok(bytes > 10_000 && bytes <= 120_000, `${bytes} bytes`);
  await page.close();
});

const state = async (path) => stage.call('GET', `${path}?${acme.at}`);

// act presses a button and confirms its dialog, by the keyboard alone.
async function act(page, name, { reason } = {}) {
  await press(page, name);
  await page.waitForSelector('dialog[open]');
  const cli = await page.textContent('dialog code');
  if (reason) { await press(page, /^$/, 'Shift'); await page.focus('dialog input[name=reason]'); await page.keyboard.type(reason); }
  await page.waitForSelector('dialog button[type=submit]:not([disabled])');
  const count = await page.locator('dialog .count').allTextContents();
  if (reason) await page.keyboard.press('Enter');
  else await press(page, await page.textContent('dialog button[type=submit]'));
  await page.waitForSelector('dialog', { state: 'detached' });
  return { cli, count: count[0] };
}

describe('acts by the keyboard alone', { concurrency: 3 }, () => {
  test('on a task, a run, a queue, a schedule, a webhook and the system', async () => {
    const page = await as('admin');
    await show(page, `tasks/${acme.running}`);
    const { cli } = await act(page, 'Cancel', { reason: 'wrong audience' });
    assert.equal(cli, `lubdub task cancel ${acme.running}`);
    const t = await state(`tasks/${acme.running}`);
    assert.ok(t.cancelRequested && t.cancelReason === 'wrong audience', JSON.stringify(t));

    await show(page, `tasks/${acme.failed}`);
    await act(page, 'Retry');
    assert.equal((await state(`tasks/${acme.failed}`)).state, 'QUEUED');

    await show(page, 'queues/mail');
    await act(page, 'Pause queue');
    assert.equal((await state('queues/mail')).paused, true);
    await page.waitForFunction(() => [...document.querySelectorAll('main button')].some((b) => b.textContent === 'Resume queue'));
    await act(page, 'Resume queue');
    assert.equal((await state('queues/mail')).paused, false);

    await show(page, 'schedules/nightly');
    await act(page, 'Fire now');
    await act(page, 'Pause schedule');
    const s = await state('schedules/nightly');
    assert.ok(s.paused && s.fired === 1, JSON.stringify(s));

    await show(page, 'webhooks/pager');
    const before = (await state('webhooks/pager/deliveries')).deliveries.length;
    await act(page, 'Send a test');
    await until('a test is on its way', async () => (await state('webhooks/pager/deliveries')).deliveries.length > before);
    await act(page, 'Redeliver');

    await show(page, 'system');
    await act(page, 'Sweep now');
    await act(page, 'Release the brake');

    await show(page, 'runs/run_nightly-acme');
    await act(page, 'Cancel run', { reason: 'over' });
    assert.equal((await state('runs/run_nightly-acme')).counts.QUEUED, 0);
    await fine(page);
  });

  test('on one worker, on those selected, on all that match, and on a machine', async () => {
    const page = await as('operator');
    const [one, , three, four] = acme.workers.map((w) => w.workerId);
    await show(page, `workers/${one}`);
    await act(page, 'Cordon', { reason: 'bad disk' });
    assert.equal((await state(`workers/${one}`)).cordon.reason, 'bad disk');
    await page.waitForSelector('main button:text-is("Uncordon")');
    await act(page, 'Uncordon');
    await act(page, 'Drain');
    await until('it drains', async () => (await state(`workers/${one}`)).status !== 'ONLINE');

    await show(page, 'workers');
    for (const id of [three, four]) await press(page, `Select ${id}`, 'Space');
    const { cli } = await act(page, 'Cordon');
    assert.equal(cli, `lubdub worker cordon ${three} ${four}`);
    for (const id of [three, four]) assert.ok((await state(`workers/${id}`)).cordon);

    await show(page, 'workers?queue=mail');
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 4 || document.querySelectorAll('tbody tr').length === 3);
    await page.locator('[aria-label="Acts on all that match"] button', { hasText: 'Uncordon' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForSelector('dialog button[type=submit]:not([disabled])');
    const counted = await page.textContent('dialog .count');
    assert.match(counted, /^The server counts [34] workers that match: nothing has been done yet\.$/);
    assert.equal(await page.textContent('dialog code'), 'lubdub worker uncordon --queue mail');
    assert.ok((await state(`workers/${three}`)).cordon, 'counting did it already');
    await press(page, /^Uncordon [34] workers$/);
    await page.waitForSelector('dialog', { state: 'detached' });
    for (const id of [three, four]) assert.equal((await state(`workers/${id}`)).cordon, null);

    await show(page, 'machines/host-2');
    await act(page, 'Drain machine', { reason: 'kernel' });
    assert.equal((await state('machines/host-2')).drain.reason, 'kernel');
    await page.waitForFunction(() => [...document.querySelectorAll('.title button')].every((b) => b.textContent !== 'Drain machine'));
    await act(page, 'Resume machine');
    assert.equal((await state('machines/host-2')).drain, null);

    await show(page, `workers/${four}`);
    await act(page, 'Take offline', { reason: 'gone' });
    assert.equal((await state(`workers/${four}`)).status, 'OFFLINE');
    await fine(page);
  });

  test('on all tasks that match, as the server counts them', async () => {
    const page = await as('dispatcher', globex);
    await show(page, 'tasks?state=QUEUED&queue=mail');
    await page.waitForSelector('tbody tr');
    const { tasks } = await stage.call('GET', `tasks?${globex.at}&state=QUEUED&queue=mail`);
    const { count, cli } = await act(page, 'Cancel all that match');
    await page.waitForSelector(`.toast:has-text("${tasks.length} done")`);
    assert.equal(count, `The server counts ${tasks.length} tasks that match: nothing has been done yet.`);
    assert.equal(cli, 'lubdub task cancel --state QUEUED --queue mail');
    const left = await stage.call('GET', `tasks?${globex.at}&state=QUEUED&queue=mail`);
    assert.equal(left.tasks.length, 0);
    await fine(page);
  });
});

  test('the pulse has every worker, and shows first who is silent', async () => {
    const at = { tenantId: 'initech', workspaceId: 'prod' };
    const page = await visit(browser, stage, stage.admin, { scope: at, height: 640 });
    await show(page, 'pulse');
    const workers = await crowd(stage, 'tenantId=initech&workspaceId=prod', 300, 12);
    const silent = new Set(workers.filter((_, i) => i % 40 === 7).map((w) => w.workerId));
    let over = false;
    const beating = (async () => {
      const others = workers.filter((w) => !silent.has(w.workerId));
      while (!over) for (let i = 0; i < others.length; i += 50) {
        await Promise.all(others.slice(i, i + 50).map((w) => stage.call('POST', `workers/${w.workerId}/heartbeat`, {}, w.workerToken)));
      }
    })();
    try {
      await page.waitForFunction(() => /^(29[2-9]|300) workers by machine: .*late/.test(document.querySelector('canvas').getAttribute('aria-label')), null);
      assert.match(await page.locator('.beside tbody tr').first().textContent(), /^(LATE|LOST)/);
      for (const theme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme: theme });
        await page.screenshot({ path: join(images, `pulse-${theme}.png`) });
      }
      await press(page, /^late/);
      const shown = await page.locator('.beside tbody tr').allTextContents();
      assert.ok(shown.length > 0 && shown.every((r) => r.startsWith('LATE')), String(shown)); // others may be late, on a busy machine
    } finally { over = true; await beating; }
    await fine(page);
  });

test('what a role forbids is disabled, with the reason', async () => {
  for (const [role, mayCancel, mayDrain] of [['viewer', false, false], ['submitter', true, false], ['operator', true, true], ['dispatcher', true, true], ['admin', true, true]]) {
    const page = await as(role, globex);
    await show(page, `tasks/${globex.running}`);
    const cancel = page.locator('main button', { hasText: /^Cancel/ });
    assert.equal(await cancel.getAttribute('aria-disabled'), mayCancel ? null : 'true', role);
    if (!mayCancel) {
      assert.match(await cancel.textContent(), /The role viewer may not do this; it takes submitter, operator, dispatcher or admin\./);
      await cancel.focus();
      await page.keyboard.press('Enter');
      assert.equal(await page.locator('dialog').count(), 0);
    }
    await show(page, `workers/${globex.workers[0].workerId}`);
    if (role === 'submitter') assert.match(await page.textContent('main .failed'), /Not allowed.*The role submitter may not do this/);
    else assert.equal(await page.locator('main button', { hasText: /^Drain/ }).getAttribute('aria-disabled'), mayDrain ? null : 'true', role);
    await fine(page);
  }
});

test('a token shows its own workspace, and one that opens all lets choose', async () => {
  const own = await as('viewer', globex);
  await show(own, 'workers');
  const names = await own.locator('tbody td:nth-child(3)').allTextContents();
  assert.ok(names.length > 0 && names.every((n) => n.startsWith('globex-')), String(names));
  own.tolerated.push(404);
  await show(own, `tasks/${acme.running}`);
  assert.match(await own.textContent('main .failed'), /Not found/);
  await fine(own);
  const all = await visit(browser, stage, stage.admin, { scope: acme });
  await show(all, 'workers');
  assert.ok((await all.locator('tbody td:nth-child(3)').allTextContents()).every((n) => n.startsWith('acme-')));
  await all.selectOption('.scope select', 'globex/stage');
  await show(all, 'workers');
  await all.waitForFunction(() => document.querySelector('tbody td:nth-child(3)')?.textContent.startsWith('globex-'));
  await fine(all);
});

test('signing in: pasted, from the address, and when the token has ended', async () => {
  const page = await visit(browser, stage, mint('viewer', 'acme', 'prod'));
  assert.ok(!page.url().includes('eyJ'), 'the token stays in the address');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Control token').fill('nonsense');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForSelector('text=That is no control token');
  assert.deepEqual(await judge(page), []);
  await page.getByLabel('Control token').fill(mint('operator', 'acme', 'prod', 'leaver'));
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForSelector('.who:has-text("operator")');
  await page.reload();
  await page.waitForSelector('.who:has-text("operator")');
  page.tolerated.push(401);
  await stage.call('POST', `tokens:revoke?${acme.at}`, { subject: 'leaver' });
  await page.waitForSelector('text=The server does not take the token any more');
  await fine(page);
});

test('search by id from everywhere', async () => {
  const page = await as('viewer');
  await page.keyboard.press('/');
  await page.keyboard.type(acme.zombie);
  await page.keyboard.press('Enter');
  await page.waitForSelector(`h1:has-text("${acme.zombie}")`);
  assert.match(await page.textContent('.evidence'), /became a zombie: it was silent for longer than its heartbeat timeout/);
  page.tolerated.push(404);
  await page.keyboard.press('/');
  await page.keyboard.type('host-1');
  await page.keyboard.press('Enter');
  await page.waitForSelector('h1:has-text("Machine host-1")');
  await page.keyboard.press('/');
  await page.keyboard.type('nobody');
  await page.keyboard.press('Enter');
  await page.waitForSelector('text=Nothing here has the id nobody');
  await fine(page);
});
});

test('while Redis is frozen the page says so and keeps what it has, marked as old', async () => {
  const page = await as('operator', globex);
  await show(page, 'workers');
  await page.waitForSelector('.st-Live');
  const rows = await page.locator('tbody tr').count();
  page.tolerated.push(503, 500);
  stage.redis.kill('SIGSTOP');
  try {
    await page.waitForSelector('.st-Offline');
    await page.waitForSelector('main .failed:has-text("What is shown below is old")');
    assert.equal(await page.locator('.old tbody tr').count(), rows);
    await show(page, 'tasks').catch(() => undefined);
    await page.waitForSelector('main .failed:has-text("Could not read the tasks")');
    assert.equal(await page.locator('main .none').count(), 0, 'it says that there is nothing');
    assert.deepEqual(await judge(page), []);
  } finally { stage.redis.kill('SIGCONT'); }
  await page.waitForSelector('.st-Live');
  await page.waitForSelector('tbody tr');
  assert.equal(await page.locator('main .failed').count(), 0);
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await page.waitForSelector('.st-Paused');
  await page.getByRole('button', { name: 'Go on' }).click();
  await page.waitForSelector('.st-Live');
  await settled(page);
  await fine(page);
});
