// Every action, done with the keyboard alone in a separate scope, at one width and in one theme.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axeViolations, press, show, visit } from './browser.mjs';
import { mint, until } from './stage.mjs';

// act presses a button and confirms its dialog. One in `share` dialogs is checked by axe-core.
async function act(page, name, { reason } = {}) {
  await press(page, name);
  await page.waitForSelector('dialog[open]');
  const cli = await page.textContent('dialog code');
  if (reason) {
    await press(page, /^$/, 'Shift');
    await page.focus('dialog input[name=reason]');
    await page.keyboard.type(reason);
  }
  await page.waitForSelector('dialog button[type=submit]:not([disabled])');
  await fits(page, name);
  if (page.dialogs.next++ % page.dialogs.share === page.dialogs.mine)
    assert.deepEqual(await axeViolations(page), [], `the dialog of ${name}`);
  const count = await page.locator('dialog .count').allTextContents();
  if (reason) await page.keyboard.press('Enter');
  else await press(page, await page.textContent('dialog button[type=submit]'));
  await page.waitForSelector('dialog', { state: 'detached' });
  return { cli, count: count[0] };
}

async function fits(page, name) {
  const out = await page.evaluate(() => {
    const { left, right, top, bottom } = document.querySelector('dialog').getBoundingClientRect();
    return left < 0 || top < 0 || right > innerWidth || bottom > innerHeight
      ? JSON.stringify([left, top, right, bottom, innerWidth, innerHeight])
      : '';
  });
  assert.equal(out, '', `the dialog of ${name} exceeds the window`);
}

// acts defines the tests for one width and theme. of() returns the stage, the browser and the scope, once they exist.
export function acts(of, { width, theme, share = 1, mine = 0 }) {
  const height = width === 390 ? 844 : 768;
  const as = async (role) => {
    const { stage, browser, scope } = of();
    const page = await visit(browser, stage, mint(role, scope.tenantId, scope.workspaceId), { width, height, theme });
    page.dialogs = { next: 0, share, mine };
    return page;
  };
  const state = (path) => of().stage.call('GET', `${path}?${of().scope.at}`);
  const fine = async (page) => {
    assert.deepEqual(await page.wrong(), []);
    await page.context().close();
  };
  const line = (words) =>
    `lubdub ${words} --server ${of().stage.base} --tenant ${of().scope.tenantId} --workspace ${of().scope.workspaceId}`;
  const look = `at ${width} px in ${theme}`;

  test(`${look}: on a task, a run, a queue, a schedule, a webhook and the system`, async () => {
    const page = await as('admin'),
      { scope } = of();
    await show(page, `tasks/${scope.running}`);
    const { cli } = await act(page, 'Cancel', { reason: 'wrong audience' });
    assert.equal(cli, line(`task cancel ${scope.running}`));
    const t = await state(`tasks/${scope.running}`);
    assert.ok(t.cancelRequested && t.cancelReason === 'wrong audience', JSON.stringify(t));

    await show(page, `tasks/${scope.failed}`);
    await act(page, 'Retry');
    assert.equal((await state(`tasks/${scope.failed}`)).state, 'QUEUED');

    await show(page, 'queues/mail');
    const pause = await act(page, 'Pause queue', { reason: 'its server is down' });
    assert.equal(pause.cli, line('queue pause mail', "--reason='its server is down'"));
    assert.equal((await state('queues/mail')).paused, true);
    await page.waitForSelector('main .lead:has-text("(its server is down). Nothing is dispatched.")');
    await page.waitForFunction(() => [...document.querySelectorAll('main button')].some((b) => b.textContent === 'Resume queue'));
    await act(page, 'Resume queue');
    assert.equal((await state('queues/mail')).paused, false);

    await show(page, 'schedules/nightly');
    await act(page, 'Fire now');
    await act(page, 'Pause schedule');
    const s = await state('schedules/nightly');
    assert.ok(s.paused && s.fired === 1, JSON.stringify(s));
    await page.getByRole('link', { name: 'All its tasks' }).click();
    await page.waitForFunction(() => document.querySelectorAll('main tbody tr').length === 1);
    assert.equal((await page.locator('main tbody tr').first().textContent()).includes('mail'), true);

    await show(page, 'webhooks/pager');
    const before = (await state('webhooks/pager/deliveries')).deliveries.length;
    await act(page, 'Send a test');
    await until('a test is on its way', async () => (await state('webhooks/pager/deliveries')).deliveries.length > before);
    await act(page, 'Redeliver');

    await show(page, 'system');
    await act(page, 'Sweep now');
    await act(page, 'Release the brake');

    const run = `runs/run_nightly-${scope.tenantId}`;
    await show(page, run);
    await act(page, 'Cancel run', { reason: 'over' });
    assert.equal((await state(run)).counts.QUEUED, 0);
    await fine(page);
  });

  test(`${look}: on one worker, on selected workers, on all matching workers, and on a machine`, async () => {
    const page = await as('operator');
    const [one, , three, four] = of().scope.workers.map((w) => w.workerId);
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
    assert.equal(cli, line(`worker cordon ${three} ${four}`));
    for (const id of [three, four]) assert.ok((await state(`workers/${id}`)).cordon);

    await show(page, 'workers?queue=mail');
    await page.waitForFunction(
      () => document.querySelectorAll('tbody tr').length === 4 || document.querySelectorAll('tbody tr').length === 3,
    );
    await page.locator('[aria-label="Actions on all matching workers"] button', { hasText: 'Uncordon' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForSelector('dialog button[type=submit]:not([disabled])');
    const counted = await page.textContent('dialog .count');
    assert.match(counted, /^[34] workers match\. Nothing has changed yet\.$/);
    assert.equal(await page.textContent('dialog code'), line('worker uncordon --queue=mail'));
    assert.ok((await state(`workers/${three}`)).cordon, 'the dry run has changed the worker');
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

  test(`${look}: on all matching tasks, as the server counts them`, async () => {
    const page = await as('dispatcher'),
      { stage, scope } = of();
    await stage.call('POST', `tasks:batch?${scope.at}`, { tasks: Array.from({ length: 7 }, () => ({ queue: 'resizes', type: 'resize' })) });
    await show(page, 'tasks?state=QUEUED&queue=resizes');
    await page.waitForSelector('tbody tr');
    const { count, cli } = await act(page, 'Cancel all that match');
    await page.waitForSelector('.toast:has-text("Cancelled 7 tasks")');
    assert.equal(count, `7 tasks match. Nothing has changed yet.`);
    assert.equal(cli, line('task cancel --state=QUEUED --queue=resizes'));
    assert.equal((await stage.call('GET', `tasks?${scope.at}&state=QUEUED&queue=resizes`)).tasks.length, 0);

    // Tasks that have ended are neither counted nor cancelled; if the filter selects them, the dialog counts them separately.
    await stage.call('POST', `tasks:batch?${scope.at}`, { tasks: Array.from({ length: 2 }, () => ({ queue: 'resizes', type: 'resize' })) });
    await show(page, 'tasks?queue=resizes');
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 9);
    assert.equal((await act(page, 'Cancel all that match')).count, '2 tasks match. Nothing has changed yet.');
    await page.waitForSelector('.toast:has-text("Cancelled 2 tasks")');
    await show(page, 'tasks?queue=resizes&state=CANCELLED');
    await press(page, 'Cancel all that match');
    await page.waitForSelector(
      'dialog .count:has-text("9 tasks match, of which 9 have ended and are left alone. Nothing has changed yet.")',
    );
    assert.ok(await page.locator('dialog button[type=submit]').isDisabled(), 'tasks that have ended can be cancelled');
    await page.keyboard.press('Escape');
    await fine(page);
  });

  test(`${look}: every page, its first entry, and leaving a dialog`, async () => {
    const page = await as('admin');
    for (const [link, heading] of [
      ['Pulse'],
      ['Tasks', /^Task /],
      ['Workers', /^Worker /],
      ['Machines', /^Machine /],
      ['Queues', /^Queue /],
      ['Runs', /^Run /],
      ['Schedules', /^Schedule /],
      ['Webhooks', /^Webhook /],
      ['Events'],
      ['System'],
      ['Overview'],
    ]) {
      await press(page, link, 'Enter', 'Shift+Tab');
      await page.waitForFunction((title) => document.activeElement?.matches('h1') && document.activeElement.textContent === title, link);
      if (!heading) continue;
      await page.waitForSelector('tbody td a.id');
      await press(page, await page.locator('tbody td a.id').first().textContent());
      await page.waitForFunction(
        (title) => document.activeElement?.matches('h1') && new RegExp(title).test(document.activeElement.textContent),
        heading.source,
      );
    }
    await show(page, 'queues/mail');
    await press(page, /^(Pause|Resume) queue$/);
    await page.waitForSelector('dialog[open]');
    await page.keyboard.press('Escape');
    await page.waitForSelector('dialog', { state: 'detached' });
    await page.waitForFunction(() => /^(Pause|Resume) queue$/.test(document.activeElement?.textContent ?? ''));
    await fine(page);
  });
}
