// The pulse and the pages of a task, a worker and a machine. No fleet is simulated: workers are registered here, and beats.mjs sends their
// heartbeats.
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { axeViolations, inColor, launch, press, show, visit } from './browser.mjs';
import { crowd, open, root, until } from './stage.mjs';

const source = readFileSync(join(root, 'ui/src/pages/layout.ts'), 'utf8');
const script = ts.transpileModule(source, { compilerOptions: { target: 'es2022', module: 'esnext' } }).outputText;
const { covered, heightFor, layout, nextTo, place, under } = await import('data:text/javascript,' + encodeURIComponent(script));

describe('the layout', () => {
  const named = (counts) => counts.map((count, i) => ({ name: `rack-${i}`, count }));
  const spread = (workers, machines) =>
    named(Array.from({ length: machines }, (_, i) => Math.floor((workers + machines - 1 - i) / machines)));
  const cases = [
    ['10 workers on 1 machine', named([10])],
    ['10 workers on 3 machines', spread(10, 3)],
    ['10 workers on 10 machines', spread(10, 10)],
    ['2,000 workers on 50 machines', spread(2000, 50)],
    ['10,000 workers on 200 machines', spread(10_000, 200)],
    ['one large machine and many small ones', named([1000, ...Array(30).fill(1), ...Array(10).fill(7)])],
  ];
  for (const [what, groups] of cases)
    for (const [width, free] of [
      [706, 650],
      [330, 390],
    ])
      test(`${what} fill ${width} × ${free} px`, () => {
        const workers = groups.reduce((n, g) => n + g.count, 0),
          height = heightFor(workers, width, free);
        const blocks = layout(groups, width, height);
        const share = covered(blocks, width, height);
        assert.ok(share > (workers > 2000 || groups.length > 30 ? 0.6 : 0.7), `cells cover ${share} of the area`);
        assert.equal(
          blocks.reduce((n, b) => n + b.count, 0),
          workers,
        );
        const area = blocks.reduce((n, b) => n + b.outer.w * b.outer.h, 0);
        assert.ok(Math.abs(area - width * height) < 1, `the blocks cover ${area} of ${width * height} px²`);
        for (const b of blocks)
          for (const i of [0, b.count - 1]) {
            const c = place(b, i);
            assert.ok(c.x >= 0 && c.y >= 0 && c.x + c.w <= width + 0.01 && c.y + c.h <= height + 0.01, `${b.name} ${i} is outside`);
            assert.deepEqual(under(blocks, c.x + c.w / 2, c.y + c.h / 2), { block: b, index: i });
            assert.ok(Math.min(c.w, c.h) > 5, `a cell of ${b.name} is ${c.w} × ${c.h} px`);
          }
      });

  test('few workers do not scroll, and 10,000 need at most two windows', () => {
    assert.equal(heightFor(2000, 706, 650), 650);
    assert.ok(heightFor(10_000, 706, 650) <= 1300);
  });

  test('groups of about the same size keep their places when a worker goes', () => {
    const order = (groups) => layout(groups, 700, 600).map((b) => b.name);
    const all = named([20, 20, 20, 20]);
    assert.deepEqual(order(all), ['rack-0', 'rack-1', 'rack-2', 'rack-3']);
    assert.deepEqual(order(all.with(1, { name: 'rack-1', count: 19 })), order(all));
  });

  test('arrow keys go to the nearest cell in their direction', () => {
    const places = [0, 1, 2, 3, 4, 5].map((i) => ({ x: (i % 3) * 10, y: Math.floor(i / 3) * 10, w: 10, h: 10 }));
    assert.deepEqual(
      ['ArrowRight', 'ArrowLeft', 'ArrowDown', 'ArrowUp'].map((k) => nextTo(places, 1, k)),
      [2, 0, 4, 1],
    );
    assert.equal(nextTo(places, 0, 'ArrowRight'), 1); // not the farther 2
    assert.equal(nextTo(places, 2, 'ArrowRight'), 2);
    assert.equal(nextTo(places, -1, 'ArrowDown'), 0);
  });
});

let stage, browser, acme;
const children = [];
// The deployment's template of links to logs.
const logsURL = 'https://logs.test/{tenantId}?q={taskId}+{workerId}+{machineId}&from={fromMs}&until={to}#{workspaceId}';

before(async () => {
  stage = await open({ fleet: false, tenants: ['acme'], with: ['--redis-timeout', '8s', '--logs-url', logsURL] });
  browser = await launch();
  ({ acme } = stage.scopes);
});
after(async () => {
  for (const c of children) c.kill();
  await browser?.close();
  await stage?.close();
});
const fine = async (page) => {
  assert.deepEqual(await page.wrong(), []);
  await page.context().close();
};
// beating registers workers in a tenant and lets them send heartbeats.
async function beating(tenantId, n, machines, more, interval = 5000) {
  const workers = await crowd(stage, `tenantId=${tenantId}&workspaceId=prod`, n, machines, more);
  const beats = fork(join(root, 'ui/test/beats.mjs'), [stage.base]);
  children.push(beats);
  beats.send({ workers: workers.map((w) => ({ id: w.workerId, token: w.workerToken })), every: interval });
  return workers;
}
const at = (tenantId) => ({ tenantId, workspaceId: 'prod' });
const visitTo = (tenantId, more) => visit(browser, stage, stage.admin, { scope: at(tenantId), width: 1440, height: 900, ...more });
const rows = (page) => page.locator('.cell-table tbody tr').allTextContents();
const query = (page) => page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.split('?')[1])));
// logs returns where a page links to logs: the address without the times, and the first and last time in ms.
async function logs(page) {
  const link = page.getByRole('link', { name: 'Logs' });
  const url = new URL(await link.getAttribute('href'));
  const times = [Number(url.searchParams.get('from')), Date.parse(url.searchParams.get('until'))];
  for (const name of ['from', 'until']) url.searchParams.delete(name);
  return { url: url.href, times };
}
// canvasIs waits until the description of the picture matches.
const canvasIs = (page, re) =>
  page.waitForFunction((s) => new RegExp(s).test(document.querySelector('canvas')?.getAttribute('aria-label') ?? ''), re.source);

for (const [n, machines] of [
  [10, 3],
  [2000, 50],
])
  test(`the canvas is filled with ${n} workers, without scrolling`, async () => {
    await beating(`t${n}`, n, machines, undefined, n > 100 ? 10_000 : 2000);
    for (const [width, height] of [
      [1440, 900],
      [390, 844],
    ]) {
      const page = await visitTo(`t${n}`, { width, height });
      await show(page, 'pulse');
      await canvasIs(page, new RegExp(`^${n.toLocaleString('en')} workers by machine`));
      // Of a grid of 12 by 12 fields, all have something drawn in them.
      await page.waitForFunction(() => {
        const c = document.querySelector('canvas'),
          { data } = c.getContext('2d').getImageData(0, 0, c.width, c.height);
        const fields = new Set();
        for (let i = 3; i < data.length; i += 4) {
          if (!data[i]) continue;
          const p = (i - 3) / 4;
          fields.add(Math.floor(((p % c.width) * 12) / c.width) + 12 * Math.floor((Math.floor(p / c.width) * 12) / c.height));
        }
        return fields.size >= 12 * 12 * 0.97;
      });
      const box = await page.locator('canvas').boundingBox();
      assert.ok(box.y + box.height <= height, `the canvas ends at ${box.y + box.height} px, in ${height}`);
      assert.ok(box.height >= 340 && box.width >= 300, JSON.stringify(box));
      await fine(page);
    }
  });

test('a worker that deregisters stays visible: it is not among the lost ones', async () => {
  const [gone] = await beating('leaving', 4, 2);
  await stage.call('POST', `workers/${gone.workerId}/deregister`, {}, gone.workerToken);
  const page = await visitTo('leaving');
  await show(page, 'pulse');
  await canvasIs(page, /^3 workers by machine: .*1 offline/);
  assert.match(await page.locator(`.cell-table tr:has-text("${gone.workerId}")`).textContent(), /^OFFLINE/);
  await fine(page);
});

test('a worker that dies stays visible, marked, and so does one that the list no longer has', async () => {
  const workers = await beating('dying', 6, 2);
  const [silent] = await crowd(stage, 'tenantId=dying&workspaceId=prod', 1, 1, () => ({ name: 'silent' }));
  const page = await visitTo('dying');
  await show(page, 'pulse');
  await canvasIs(page, /^6 workers by machine: .*1 offline/);
  const row = page.locator(`.cell-table tr:has-text("${silent.workerId}")`);
  assert.match(await row.textContent(), /^OFFLINE.*(ago|now)/);
  assert.match(await page.textContent('main [role=status]'), /^6 workers; 1 went offline in the last 15 min$/);
  await page.getByRole('button', { name: /^offline/ }).click();
  await page.waitForFunction(() => document.querySelectorAll('.cell-table tbody tr').length === 1);
  await fine(page);

  const without = await visitTo('dying');
  await without.route('**/v1/workers?*', async (route) => {
    const response = await route.fetch(),
      list = await response.json();
    await route.fulfill({ response, json: { ...list, workers: list.workers.filter((w) => w.workerId !== silent.workerId) } });
  });
  await show(without, 'pulse');
  await without.locator(`.cell-table tr:has-text("${silent.workerId}")`).waitFor();
  await canvasIs(without, /^6 workers by machine: .*1 offline/);
  assert.equal((await rows(without)).length, workers.length + 1);
  await without.unrouteAll({ behavior: 'ignoreErrors' });
  await fine(without);
});

describe('groups and filters', () => {
  let workers;
  const total = 24;
  before(async () => {
    workers = await beating('grouped', total, 4, (i) => ({
      queue: i % 2 ? 'mail' : 'video',
      version: i < 8 ? '1.0.0' : '2.0.0',
      labels: i % 3 === 0 ? { zone: 'eu-1' } : i % 3 === 1 ? { region: 'us-2' } : { 'topology.kubernetes.io/zone': 'ap-3' },
    }));
    await stage.call('POST', `workers/${workers[2].workerId}/cordon?tenantId=grouped&workspaceId=prod`, {});
    await stage.call('POST', `tasks?tenantId=grouped&workspaceId=prod`, { queue: 'video', type: 'frame' });
    await stage.call('POST', 'queues/video/claim', { max: 1 }, workers[0].workerToken);
    await stage.call('POST', `workers/${workers[0].workerId}/drain?tenantId=grouped&workspaceId=prod`, {});
  });
  const listed = (page, n) => page.waitForFunction((want) => document.querySelectorAll('.cell-table tbody tr').length === want, n);

  test('by the mouse: a group, a state and a worker', async () => {
    const page = await visitTo('grouped');
    await show(page, 'pulse');
    await listed(page, total);
    await page.getByLabel('Group by').selectOption('queue');
    await canvasIs(page, /^24 workers by queue/);
    // The heading of the first block is at the top left: mail and video have as many workers.
    await page.locator('canvas').click({ position: { x: 30, y: 8 } });
    await listed(page, total / 2);
    assert.deepEqual(await query(page), { by: 'queue', group: 'mail' });
    await page.getByRole('button', { name: 'Show all' }).click();
    await listed(page, total);
    await page.getByRole('button', { name: /^draining/ }).click();
    await listed(page, 1);
    assert.deepEqual(await query(page), { by: 'queue', only: 'DRAINING' });
    assert.ok((await rows(page))[0].startsWith('DRAINING' + workers[0].workerId));
    await page.getByRole('button', { name: /^draining/ }).click();
    await listed(page, total);
    await page.locator('canvas').click({ position: { x: 40, y: 60 } });
    await page.waitForSelector('h1:has-text("Worker wkr_")');
    await fine(page);
  });

  test('by the keyboard alone, and from the address', async () => {
    const page = await visitTo('grouped');
    await show(page, 'pulse');
    await listed(page, total);
    const choose = async (label, value) => {
      const select = page.getByRole('combobox', { name: label });
      await select.focus();
      for (let i = 0; (await select.inputValue()) !== value; i++) {
        assert.ok(i < 10, `${label} has no ${value}`);
        await page.keyboard.press('ArrowDown');
      }
    };
    await choose('Group by', 'version');
    await canvasIs(page, /by version/);
    await choose('Show', '1.0.0');
    await listed(page, 8);
    assert.deepEqual(await query(page), { by: 'version', group: '1.0.0' });
    await press(page, /^draining/, 'Space', 'Shift+Tab');
    await listed(page, 1);
    assert.deepEqual(await query(page), { by: 'version', group: '1.0.0', only: 'DRAINING' });
    await page.reload();
    await listed(page, 1);
    await page.evaluate(() => {
      location.hash = '#/pulse?by=zone&group=ap-3';
    });
    await listed(page, 8);
    const zones = await page.getByRole('combobox', { name: 'Show' }).locator('option').allTextContents();
    assert.deepEqual(zones, ['all (3)', 'ap-3 (8)', 'eu-1 (8)', 'us-2 (8)']);

    await press(page, /^Picture of the workers/, 'ArrowRight');
    await page.locator('.tip b').waitFor();
    const first = await page.textContent('.tip b');
    await page.keyboard.press('ArrowRight');
    await page.waitForFunction((was) => document.querySelector('.tip b').textContent !== was, first);
    const name = await page.textContent('.tip b');
    await page.keyboard.press('Enter');
    await page.waitForSelector('h1:has-text("Worker wkr_")');
    assert.equal(await page.textContent('h1 .id'), workers.find((_, i) => `node-${i}` === name).workerId);
    await fine(page);
  });
});

const titles = (page) => page.locator('main section > header h2').allTextContents();
const facts = (page) => page.locator('main .facts dt').allTextContents();

test('the page of a task: order, facts with values, and the numbers of its attempts', async () => {
  const tenant = 'tenantId=twice&workspaceId=prod';
  const [w] = await beating('twice', 1, 1, () => ({ queue: 'mail' }));
  const { taskId } = await stage.call('POST', `tasks?${tenant}`, {
    queue: 'mail',
    type: 'frame',
    payload: { to: 'user-1', parts: [1, 2] },
    retry: { maxAttempts: 3, initialBackoffMs: 1 },
    heartbeatIntervalMs: 30_000,
    heartbeatTimeoutMs: 90_000,
  });
  const claim = async () => {
    const t = await until('the task is claimed', async () => {
      const { tasks } = await stage.call('POST', 'queues/mail/claim', { max: 1 }, w.workerToken);
      return tasks.find((c) => c.taskId === taskId);
    });
    await stage.call('POST', `tasks/${taskId}/started`, { attempt: t.attempt, workerId: w.workerId }, t.taskToken);
    return t;
  };
  const one = await claim();
  const error = { category: 'USER_CODE', message: 'no disk', retryable: true };
  await stage.call('POST', `tasks/${taskId}/completed`, { attempt: one.attempt, outcome: 'FAILED', error }, one.taskToken);
  const two = await claim();
  await stage.call('POST', `tasks/${taskId}/heartbeat`, { attempt: two.attempt, details: { page: 7 } }, two.taskToken);
  await stage.call('POST', `tasks/${taskId}/completed`, { attempt: two.attempt, outcome: 'SUCCEEDED', output: { sent: 1 } }, two.taskToken);

  const page = await visit(browser, stage, stage.admin, { scope: at('twice'), width: 1440 });
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await show(page, `tasks/${taskId}`);
  assert.deepEqual(await titles(page), ['Timeline', 'Evidence', 'Payload', 'Output', 'Checkpoint', 'Facts', 'Events']);
  const numbers = (await stage.call('GET', `tasks/${taskId}?${tenant}`)).history.map((h) => h.attempt);
  assert.deepEqual(numbers, [one.attempt, two.attempt]);
  assert.deepEqual(
    (await page.locator('.lane:not(.axis) .n').allTextContents()).map((t) => t.trim()),
    numbers.map((n) => `#${n}`),
  );
  const sentences = await page.locator('.attempts > li').allTextContents();
  assert.deepEqual(
    sentences.map((t) => Number(/^Attempt (\d+) /.exec(t)?.[1])),
    numbers.toReversed(),
  );
  assert.match(sentences[1], /Its worker reported USER_CODE: no disk\./);
  const shown = await facts(page);
  assert.ok(
    ['Queue', 'Type', 'Worker', 'Created'].every((f) => shown.includes(f)),
    shown.join(),
  );
  assert.ok(!['Schedule', 'Deadline', 'Labels', 'Message', 'Progress'].some((f) => shown.includes(f)), shown.join());
  assert.ok((await page.locator('main .facts dd').allTextContents()).every((t) => t !== '–' && t !== ''));
  const of = await stage.call('GET', `tasks/${taskId}?${tenant}`);
  const { url, times } = await logs(page);
  assert.equal(url, `https://logs.test/twice?q=${taskId}+${w.workerId}+#prod`);
  assert.deepEqual(times, [Date.parse(of.createdAt) - 60_000, Date.parse(of.finishedAt) + 60_000]);
  await page.getByRole('button', { name: 'Copy the payload' }).click();
  await page.waitForSelector('[role=status]:has-text("Copied")');
  assert.deepEqual(JSON.parse(await page.evaluate(() => navigator.clipboard.readText())), { to: 'user-1', parts: [1, 2] });
  await fine(page);
});

test('the pages of a worker and of a machine have the same order', async () => {
  const lost = acme.workers[5]; // sends no heartbeats
  await until('it is lost', async () => (await stage.call('GET', `workers/${lost.workerId}?${acme.at}`)).status === 'OFFLINE');
  const page = await visit(browser, stage, stage.admin, { scope: acme, width: 1440 });
  await show(page, `workers/${lost.workerId}`);
  assert.deepEqual(await titles(page), ['Timeline', 'Evidence', 'Held now', 'Facts', 'Events']);
  assert.match(await page.textContent('.evidence'), /It ended at .*: it was silent for longer than its heartbeat timeout\./);
  assert.ok(await page.locator('.lane rect.silent').count(), 'its silence is not drawn');
  const shown = await facts(page);
  assert.ok(shown.includes('Version') && !shown.includes('Runtimes') && !shown.includes('Drain deadline'), shown.join());
  const w = await stage.call('GET', `workers/${lost.workerId}?${acme.at}`);
  const { url, times } = await logs(page);
  assert.equal(url, `https://logs.test/acme?q=+${lost.workerId}+${w.machineId}#prod`);
  assert.deepEqual(times, [Date.parse(w.registeredAt) - 60_000, Date.parse(w.deregisteredAt) + 60_000]);
  await show(page, 'machines/host-2');
  assert.equal((await logs(page)).url, 'https://logs.test/acme?q=++host-2#prod');
  assert.deepEqual(await titles(page), ['Timeline', 'Evidence', 'Workers', 'Events']);
  const names = await page.locator('.lane:not(.axis) .n').allTextContents();
  assert.deepEqual(names.map((n) => n.trim()).sort(), ['acme-2', 'acme-5']);
  await fine(page);
});

test('nothing here has axe violations at 1440 and 390 px in both themes', async () => {
  const page = await visit(browser, stage, stage.admin, { scope: acme });
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  for (const path of [
    'pulse',
    'pulse?by=zone&group=eu&only=FRESH',
    `tasks/${acme.failed}`,
    `tasks/${acme.zombie}`,
    `workers/${acme.workers[5].workerId}`,
    'machines/host-2',
  ]) {
    await show(page, path);
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 844 });
      for (const theme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme: theme });
        assert.deepEqual(await axeViolations(page, theme === 'light' ? undefined : inColor), [], `${path} at ${width} px in ${theme}`);
        const [body, view] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        assert.ok(body <= view, `${path} is ${body} px wide, in ${view}`);
      }
    }
  }
  await fine(page);
});
