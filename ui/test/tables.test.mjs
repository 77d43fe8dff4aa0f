// The lists of the dashboard: their actions, keys, filters, order and downloads, and the charts.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { axeViolations, launch, press, show, visit } from './browser.mjs';
import { mint, open } from './stage.mjs';

const scope = { tenantId: 'acme', workspaceId: 'prod' },
  at = 'tenantId=acme&workspaceId=prod';
let stage, browser, workers;

before(async () => {
  [stage, browser] = await Promise.all([open({ fleet: false, interval: '10m', tenants: [] }), launch()]);
  const register = (i) => ({ queue: 'mail', types: ['x'], name: `node-${i}`, machineId: `host-${i}`, version: `1.${i}` });
  const registered = [];
  for (const i of [0, 1, 2]) registered.push(await stage.call('POST', `workers?${at}`, register(i))); // one after the other
  await stage.call('POST', `workers/${registered[0].workerId}/heartbeat`, { activeCount: 0 }, registered[0].workerToken);
  workers = registered.map((w) => w.workerId);
  await stage.call('POST', `tasks:batch?${at}`, { tasks: ['a', 'b', 'c'].map((type) => ({ queue: 'mail', type })) });
});
after(async () => {
  await browser?.close();
  await stage?.close();
});

const as = (role, more = {}) => visit(browser, stage, mint(role, more.tenant ?? scope.tenantId, scope.workspaceId), more);
const fine = async (page) => {
  assert.deepEqual(await axeViolations(page), []);
  assert.deepEqual(await page.wrong(), []);
  await page.context().close();
};

test('actions appear once rows are selected or the filter allows them on all matches; what the role forbids names its roles', async () => {
  const page = await as('viewer');
  const groups = async () => page.locator('.actbar [role=group]').evaluateAll((all) => all.map((g) => g.getAttribute('aria-label')));
  for (const [list, one, filter, refused] of [
    ['tasks', 'task', 'queue=mail', 'queue=mail&liveness=FRESH'],
    ['workers', 'worker', 'version=1.1', 'version=1.1&status=ONLINE'],
    ['machines', 'machine'],
  ]) {
    await show(page, list);
    assert.deepEqual(await groups(), [], list);
    await page.locator('tbody input').first().focus();
    const top = await page.evaluate(() => document.activeElement.getBoundingClientRect().top);
    await page.keyboard.press('Space');
    await page.waitForSelector('.actbar');
    assert.equal(await page.evaluate(() => document.activeElement.getBoundingClientRect().top), top, 'the rows move');
    assert.deepEqual(await groups(), [`Actions on selected ${one}s`]);
    for (const button of await page.locator('.actbar button').all()) {
      assert.equal(await button.getAttribute('aria-disabled'), 'true');
      assert.match(await button.textContent(), /The role viewer may not do this; it takes .*operator.* or admin\./);
    }
    assert.deepEqual(await axeViolations(page), []);
    await page.keyboard.press('Space');
    await page.waitForSelector('.actbar', { state: 'detached' });
    if (!filter) continue;
    await show(page, `${list}?${filter}`);
    assert.deepEqual(await groups(), [`Actions on all matching ${one}s`]);
    assert.match(await page.locator('.actbar button').first().textContent(), /The role viewer may not do this/);
    await show(page, `${list}?${refused}`);
    assert.deepEqual(await groups(), []);
  }
  await fine(page);
});

const activeRow = (page) => page.evaluate(() => (document.activeElement.matches('tbody tr') ? document.activeElement.rowIndex : null));

test('rows have keys: move, open, select and copy; Tab still reaches the checkboxes, and the head stays', async () => {
  const page = await as('operator', { height: 420 });
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: stage.origin });
  await show(page, 'workers');
  const ids = await page.locator('tbody td:nth-child(4)').allTextContents();
  assert.deepEqual(ids, [...workers].sort());
  await press(page, new RegExp(`${ids[0]}.*ONLINE`), 'ArrowDown');
  for (const [key, row] of [
    [null, 2],
    ['ArrowDown', 3],
    ['ArrowDown', 3], // the last
    ['Home', 1],
    ['ArrowUp', 1],
    ['End', 3],
    ['ArrowUp', 2],
  ]) {
    if (key) await page.keyboard.press(key);
    assert.equal(await activeRow(page), row, key ?? 'first');
    assert.equal(await page.locator('tbody tr[tabindex="0"]').count(), 1);
  }
  await page.keyboard.press('c');
  await page.waitForSelector(`.toast:has-text("Copied ${ids[1]}")`);
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), ids[1]);
  await page.keyboard.press('Space');
  await page.waitForSelector('.actbar:has-text("Selected (1)")');
  assert.ok(await page.isChecked(`[aria-label="Select ${ids[1]}"]`));
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), `Select ${ids[1]}`);
  await page.keyboard.press('Space'); // the checkbox's key
  await page.waitForSelector('.actbar', { state: 'detached' });
  await page.keyboard.press('Shift+Tab');
  assert.equal(await activeRow(page), 2);
  await page.keyboard.press('Enter');
  await page.waitForSelector(`h1:has-text("Worker ${ids[1]}")`);

  await stage.call('POST', `tasks:batch?${at}`, { tasks: Array.from({ length: 40 }, () => ({ queue: 'long', type: 'x' })) });
  await show(page, 'tasks');
  const heads = () => page.locator('main th').nth(1).boundingBox();
  const { y } = await heads();
  await page.locator('tbody tr').first().focus();
  await page.keyboard.press('End');
  assert.ok((await page.locator('.scroll').evaluate((e) => e.scrollTop)) > 100, 'the table does not scroll');
  const inTable = (y) => page.locator('.scroll').evaluate((e, y) => y - e.getBoundingClientRect().top, y);
  assert.ok(Math.abs(await inTable((await heads()).y)) < 3, `the head moved from ${y} to ${(await heads()).y}`);
  await fine(page);
});

test('? lists the keys, and Escape returns to where the focus was', async () => {
  const page = await as('viewer', { width: 390 });
  await show(page, 'workers');
  await page.keyboard.press('/');
  await page.keyboard.type('a?');
  assert.equal(await page.inputValue('.search input'), 'a?');
  assert.equal(await page.locator('dialog').count(), 0);
  await page.locator('tbody tr').first().focus();
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  assert.match(await page.textContent('dialog'), /cCopy the id of the row/);
  assert.deepEqual(await axeViolations(page), []);
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog', { state: 'detached' });
  assert.equal(await activeRow(page), 1);
  await page.getByRole('button', { name: 'Keys' }).click();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.waitForSelector('dialog', { state: 'detached' });
  await fine(page);
});

test('on a narrow screen the filters fold behind a button that counts them', async () => {
  const page = await as('viewer', { width: 390 });
  await show(page, 'workers');
  const button = page.getByRole('button', { name: /^Filters/ }),
    queue = page.getByLabel('queue', { exact: true });
  assert.equal(await button.textContent(), 'Filters');
  assert.ok(!(await queue.isVisible()));
  await press(page, 'Filters');
  await queue.waitFor();
  assert.equal(await button.getAttribute('aria-expanded'), 'true');
  await queue.fill('mail');
  await page.keyboard.press('Tab');
  await page.selectOption('.filters select >> nth=0', 'ONLINE');
  await page.waitForFunction(() => document.querySelector('.unfold').textContent === 'Filters (2)');
  assert.deepEqual(await axeViolations(page), []);
  await button.click();
  await queue.waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: 'Show all' }).click();
  await page.waitForFunction(() => document.querySelector('.unfold').textContent === 'Filters');
  await page.setViewportSize({ width: 1024, height: 768 });
  await queue.waitFor();
  assert.ok(!(await button.isVisible()));
  await fine(page);
});

test('workers are sorted by the server, as the address says, by a click on a head', async () => {
  const page = await as('operator');
  const late = async (order) =>
    (await stage.call('GET', `workers?${at}&sort=lastHeartbeatAt&order=${order}`)).workers.map((w) => w.workerId);
  const listed = (ids) =>
    page.waitForFunction(
      (ids) => JSON.stringify([...document.querySelectorAll('tbody td:nth-child(4)')].map((e) => e.textContent)) === ids,
      JSON.stringify(ids),
    );
  const head = (name) => page.locator('th', { hasText: name });
  await show(page, 'workers?queue=mail');
  assert.deepEqual(await page.locator('th button').allTextContents(), ['Last beat↕', 'Up 24 h↕', 'Stale 24 h↕']);
  assert.equal(await page.locator('[aria-sort]').count(), 0);
  const [first, last] = [await late('asc'), await late('desc')];
  const silent = [...workers.slice(1), workers[0]]; // the first has sent a heartbeat
  assert.deepEqual([first, last], [silent, [...silent].reverse()], 'the workers were not registered in this order');
  await press(page, 'Last beat↕');
  await listed(first);
  assert.equal(await head('Last beat').getAttribute('aria-sort'), 'ascending');
  await page.keyboard.press('Enter');
  await listed(last);
  assert.equal(await head('Last beat').getAttribute('aria-sort'), 'descending');
  assert.match(page.url(), /workers\?queue=mail&sort=lastHeartbeatAt&order=desc$/);
  assert.deepEqual(await axeViolations(page), []);
  await page.reload();
  await listed(last);
  await page.getByRole('button', { name: 'Last beat' }).click();
  await page.waitForFunction(() => !document.querySelector('[aria-sort]'));
  await listed([...workers].sort());
  assert.match(page.url(), /workers\?queue=mail$/);
  for (const [name, field, order] of [
    ['Up 24 h', 'uptimePct24h', 'asc'],
    ['Stale 24 h', 'staleCount24h', 'desc'],
  ]) {
    page.requests = [];
    const read = page.waitForRequest((r) => r.url().includes(`sort=${field}&order=${order}`));
    await page.getByRole('button', { name }).click();
    await read;
  }
  await fine(page);
});

test('the rows of a list are downloaded as JSON and CSV, in which no cell is a formula', async () => {
  const other = 'tenantId=globex&workspaceId=prod';
  for (const name of ['=1+1', '@me', 'plain, "quoted"'])
    await stage.call('POST', `workers?${other}`, { queue: 'mail', types: ['x'], name, machineId: 'host' });
  const page = await as('viewer', { tenant: 'globex' });
  await show(page, 'workers');
  const save = async (format) => {
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: `Download ${format}` }).click()]);
    assert.match(file.suggestedFilename(), new RegExp(`^workers-prod-\\d{4}-\\d\\d-\\d\\dT\\d{6}Z\\.${format.toLowerCase()}$`));
    return readFileSync(await file.path(), 'utf8');
  };
  const { workers: stored } = await stage.call('GET', `workers?${other}`);
  assert.deepEqual(
    JSON.parse(await save('JSON')).map((w) => [w.workerId, w.name, w.types]),
    stored.map((w) => [w.workerId, w.name, w.types]),
  );
  const lines = (await save('CSV')).split('\r\n');
  assert.equal(lines.length, stored.length + 2); // the head, and nothing after the last
  assert.ok(lines[0].split(',').includes('workerId'), lines[0]);
  for (const part of [stored[0].workerId, `,'=1+1,`, `,'@me,`, `,"plain, ""quoted""",`, ',"[""x""]",'])
    assert.ok(
      lines.some((l) => l.includes(part)),
      `${part} is not in ${lines.join('\n')}`,
    );
  await fine(page);
});

test('ids are short, but whole in selected text and for screen readers; a button and a key copy them', async () => {
  const umbrella = 'tenantId=umbrella&workspaceId=prod',
    message = 'cannot open /mnt/media/incoming/part-0017.mov: no space left on device';
  const w = await stage.call('POST', `workers?${umbrella}`, { queue: 'mail', types: ['x'], machineId: 'host-of-mail' });
  const { taskId } = await stage.call('POST', `tasks?${umbrella}`, { queue: 'mail', type: 'x' });
  const claimed = await stage.call('POST', 'queues/mail/claim', { max: 1 }, w.workerToken);
  const end = { attempt: 1, outcome: 'FAILED', error: { category: 'USER_CODE', message, retryable: false } };
  await stage.call('POST', `tasks/${taskId}/completed`, end, claimed.tasks[0].taskToken);

  const page = await as('viewer', { tenant: 'umbrella', width: 1440 });
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: stage.origin });
  const copied = async (id, how) => {
    await page.evaluate(() => navigator.clipboard.writeText(''));
    await how();
    await page.locator('.toast', { hasText: `Copied ${id}.` }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), id);
    await page.getByRole('button', { name: 'Close' }).click();
  };
  await show(page, 'tasks');
  for (const id of [taskId, w.workerId]) {
    const link = page.getByRole('link', { name: id, exact: true });
    assert.equal(await link.getAttribute('title'), id);
    const { width } = await link.boundingBox();
    assert.ok(width > 60 && width < 120, `${id} is ${width} px wide`);
    await link.evaluate((e) => getSelection().selectAllChildren(e));
    assert.equal(await page.evaluate(() => getSelection().toString()), id);
    await copied(id, async () => {
      await link.focus();
      await page.keyboard.press('c');
    });
  }
  const why = page.locator('tbody tr td:last-child');
  assert.equal((await why.textContent()).trim(), `WORKER_REPORTED USER_CODE: ${message}`);
  const [clipped, sideways] = await page.evaluate(() => {
    const [box, scroll] = [document.querySelector('td:last-child > div'), document.querySelector('.scroll')];
    return [box.scrollHeight - box.clientHeight, scroll.scrollWidth - scroll.clientWidth];
  });
  assert.deepEqual([clipped, sideways], [0, 0], 'the reason is cut, or the table is too wide');

  const button = page.getByRole('button', { name: `Copy ${taskId}` }),
    opacity = () => button.evaluate((e) => getComputedStyle(e).opacity);
  await page.evaluate(() => document.activeElement.blur());
  await page.mouse.move(0, 0);
  assert.equal(await opacity(), '0');
  await page.locator('tbody tr').focus();
  assert.equal(await opacity(), '1');
  const stops = [];
  for (let at = ''; stops.length < 60 && !at.startsWith('Download CSV'); stops.push(at)) {
    await page.keyboard.press('Tab');
    at = await page.evaluate(() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent);
  }
  assert.deepEqual(stops, [`Select ${taskId}`, taskId, 'mail', w.workerId, 'Download CSV']);
  await page.locator('tbody tr').hover();
  assert.equal(await opacity(), '1');
  await copied(taskId, () => button.click());

  await show(page, `tasks/${taskId}`);
  assert.equal(await page.textContent('h1'), `Task ${taskId}`);
  await copied(taskId, () => press(page, `Copy ${taskId}`));
  const sentence = page.locator('.evidence');
  assert.match(await sentence.textContent(), new RegExp(`^Attempt 1 on ${w.workerId} failed`));
  assert.equal(await sentence.getByRole('link').getAttribute('href'), `#/workers/${w.workerId}`);
  assert.deepEqual(await axeViolations(page), []);

  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Emulation.setTouchEmulationEnabled', { enabled: true });
  await page.setViewportSize({ width: 390, height: 844 });
  for (const path of ['tasks', 'workers', 'machines', 'events', 'system', `tasks/${taskId}`, `workers/${w.workerId}`, '']) {
    await show(page, path);
    const { hidden, small, wide } = await page.evaluate(() => {
      const all = [...document.querySelectorAll('.copy-id')];
      return {
        hidden: all.filter((e) => getComputedStyle(e).opacity !== '1').length,
        small: all.filter((e) => Math.min(e.offsetWidth, e.offsetHeight) < 24).length,
        wide: document.documentElement.scrollWidth - innerWidth,
      };
    });
    assert.deepEqual({ hidden, small, wide }, { hidden: 0, small: 0, wide: 0 }, path);
  }
  await fine(page);
});

test('empty lists say how to begin, unless a filter is set', async () => {
  const page = await as('operator', { tenant: 'initech' });
  for (const [list, begin] of [
    ['tasks', /^No tasks yet: choose Create task above, run lubdub task create, or .*\.$/],
    ['workers', /^No workers yet: start a program .* LUBDUB_URL and LUBDUB_TOKEN set, and it appears here\.$/],
  ]) {
    await show(page, list);
    assert.match(await page.textContent('main .none'), begin);
    await show(page, `${list}?queue=mail`);
    assert.equal(await page.textContent('main .none'), `No ${list} on this page match queue = mail.`);
    assert.deepEqual(await axeViolations(page), []);
  }
  await fine(page);
});
