import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { acts } from './acts.mjs';
import { axeViolations, inColor, launch, press, settled, show, visit } from './browser.mjs';
import { crowd, mint, open, root } from './stage.mjs';

let stage, browser, acme, globex;
// Actions run at the widths and themes that differ most; with EVERYWHERE=1 at each width in each theme.
const everywhere = !!process.env.EVERYWHERE;
const looks = [
  { tenant: 'acme', width: 1024, theme: 'light' },
  { tenant: 'hooli', width: 390, theme: 'dark' },
  { tenant: 'umbrella', width: 1600, theme: 'dark' },
  ...(everywhere
    ? [
        { tenant: 'stark', width: 390, theme: 'light' },
        { tenant: 'wayne', width: 1024, theme: 'dark' },
        { tenant: 'tyrell', width: 1600, theme: 'light' },
      ]
    : []),
];
const images = process.env.SCREENSHOTS || join(root, 'bin/ui');

before(async () => {
  mkdirSync(images, { recursive: true });
  // On a busy machine Redis may take longer than the 3 s of the other tests.
  const more = { tenants: ['globex', ...looks.map((l) => l.tenant)], with: ['--redis-timeout', '8s'] };
  stage = await open(more);
  browser = await launch();
  ({ acme, globex } = stage.scopes);
});
after(async () => {
  await browser?.close();
  await stage?.close();
});

const pages = (of = acme) => [
  '',
  'pulse',
  'tasks',
  `tasks/${of.running}`,
  `tasks/${of.zombie}`,
  'workers',
  `workers/${of.workers[0].workerId}`,
  'machines',
  'machines/host-0',
  'queues',
  'queues/mail',
  'runs',
  `runs/run_nightly-${of.tenantId}`,
  'schedules',
  'schedules/nightly',
  'webhooks',
  'webhooks/pager',
  'events',
  'losses',
  'system',
];
const as = (role, scope = acme, more = {}) => visit(browser, stage, mint(role, scope.tenantId, scope.workspaceId), more);
const fine = async (page) => {
  assert.deepEqual(await page.wrong(), []);
  await page.context().close();
};

// These tests do not affect each other, so they run concurrently.
describe('while all is well', { concurrency: 2 }, () => {
  // While paused, a page reads only to show itself, so that nothing but axe-core uses the CPU.
  test('each page has no axe violations and no policy violations at each width in both themes', async () => {
    const page = await visit(browser, stage, stage.admin, { scope: acme });
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    for (const path of pages()) {
      await show(page, path);
      for (const width of [390, 1024, 1600]) {
        await page.setViewportSize({ width, height: width === 390 ? 844 : 800 });
        for (const theme of ['light', 'dark']) {
          await page.emulateMedia({ colorScheme: theme }); // which changes colors only
          assert.deepEqual(await axeViolations(page, theme === 'light' ? undefined : inColor), [], `${path} at ${width} px in ${theme}`);
          const [body, view] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
          assert.ok(body <= view, `${path} is ${body} px wide, in ${view}`);
          const image = { '': 'overview', [`tasks/${acme.zombie}`]: 'task' }[path];
          if (image && (width === 1024 || process.env.ALL_SCREENSHOTS)) {
            await page.screenshot({ path: join(images, `${image}-${theme}${width === 1024 ? '' : '-' + width}.png`) });
          }
        }
      }
    }
    await fine(page);
  });

  // While paused, a page reads only to show itself, however long that takes.
  test('each page reads everything at most once, with at most 12 requests', async () => {
    const page = await as('admin');
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await show(page, pages().at(-1)); // the first page is shown already
    for (const path of pages()) {
      page.requests = [];
      await show(page, path);
      assert.deepEqual(page.requests, [...new Set(page.requests)], path);
      assert.ok(page.requests.length > 0 && page.requests.length <= 12, `${path}: ${page.requests.join('\n')}`);
    }
    await fine(page);
  });

  test('the first view is small, whatever the size of the charts', async () => {
    const page = await visit(browser, stage, stage.admin, {
      scope: acme,
      watch: () => {
        new MutationObserver(() => {
          if (!window.shown && document.querySelector('.banner')) window.shown = performance.now();
        }).observe(document, { childList: true, subtree: true });
      },
    });
    await page.waitForFunction(() =>
      /beats: now .*at most [1-9]/.test(document.querySelector('.chart [role=img]')?.getAttribute('aria-label') ?? ''),
    );
    const read = await page.evaluate(() =>
      performance
        .getEntriesByType('resource')
        .concat(performance.getEntriesByType('navigation'))
        .map((e) => ({ first: e.startTime < window.shown, name: e.name, bytes: e.transferSize })),
    );
    const bytes = (of) => of.reduce((n, e) => n + e.bytes, 0);
    const first = bytes(read.filter((e) => e.first)),
      hour = read.filter((e) => /stats\?.*steps=360/.test(e.name));
    assert.ok(first > 10_000 && first <= 120_000, `${first} bytes: ${JSON.stringify(read)}`);
    assert.ok(hour.length === 1 && hour[0].bytes > 50_000, `the hour is not one: ${JSON.stringify(hour)}`);
    console.log(`to the first paint ${first} bytes, and then an hour of ${hour[0].bytes}`);
    await fine(page);
  });

  describe('acts by the keyboard alone', { concurrency: 2 }, () => {
    looks.forEach((look, mine) =>
      acts(() => ({ stage, browser, scope: stage.scopes[look.tenant] }), { ...look, mine, share: everywhere ? 1 : looks.length }),
    );
  });

  test('the pulse has every worker, and lists silent workers first', async () => {
    const at = { tenantId: 'initech', workspaceId: 'prod' };
    const page = await visit(browser, stage, stage.admin, { scope: at, height: 640 });
    await show(page, 'pulse');
    const workers = await crowd(stage, 'tenantId=initech&workspaceId=prod', 300, 12);
    const silent = new Set(workers.filter((_, i) => i % 40 === 7).map((w) => w.workerId));
    let over = false;
    const beating = (async () => {
      const others = workers.filter((w) => !silent.has(w.workerId));
      while (!over)
        for (let i = 0; i < others.length; i += 50) {
          await Promise.all(others.slice(i, i + 50).map((w) => stage.call('POST', `workers/${w.workerId}/heartbeat`, {}, w.workerToken)));
        }
    })();
    try {
      await page.waitForFunction(() =>
        /^(29[2-9]|300) workers by machine: .*late/.test(document.querySelector('canvas').getAttribute('aria-label')),
      );
      assert.match(await page.locator('.cell-table tbody tr').first().textContent(), /^(LATE|LOST)/);
      for (const theme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme: theme });
        await page.screenshot({ path: join(images, `pulse-${theme}.png`) });
      }
      await press(page, /^late/);
      await page.waitForFunction(() => {
        // on a busy host other workers may be late, and these may be lost by now
        const rows = [...document.querySelectorAll('.cell-table tbody tr')].map((r) => r.textContent);
        return rows.length
          ? rows.every((r) => r.startsWith('LATE'))
          : document.querySelector('.cell-table .none')?.textContent === 'No worker is late.';
      });
    } finally {
      over = true;
      await beating;
    }
    await fine(page);
  });

  test('actions that the role forbids are disabled, with the reason', async () => {
    for (const [role, mayCancel, mayDrain] of [
      ['viewer', false, false],
      ['submitter', true, false],
      ['operator', true, true],
      ['dispatcher', true, true],
      ['admin', true, true],
    ]) {
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
      else
        assert.equal(
          await page.locator('main button', { hasText: /^Drain/ }).getAttribute('aria-disabled'),
          mayDrain ? null : 'true',
          role,
        );
      for (const path of pages(globex).filter((p) => p.split('/').length === 1 || role !== 'admin')) {
        // a call that the role forbids would be an error in the console
        await show(page, path);
        const may = role !== 'submitter' || /^(tasks|runs)/.test(path);
        assert.equal(await page.locator('main .failed:has-text("Not allowed")').count(), may ? 0 : 1, `${role} on ${path}`);
      }
      await fine(page);
    }
  });

  test('a token shows its own workspace, and one for all workspaces offers a choice', async () => {
    const own = await as('viewer', globex);
    await show(own, 'workers');
    const names = await own.locator('tbody td:nth-child(3)').allTextContents();
    assert.ok(names.length > 0 && names.every((n) => n.startsWith('globex-')), String(names));
    own.tolerated.push(404);
    await show(own, `tasks/${acme.running}`);
    assert.match(await own.textContent('main .failed'), /Not found/);
    await show(own, 'events');
    await own.waitForSelector('.st-Live');
    const [theirs, ours] = [acme, globex].map((s) => stage.call('POST', `tasks?${s.at}`, { type: 'seen' }));
    await theirs;
    await own.waitForSelector(`tbody:has-text("${(await ours).taskId}")`);
    const text = await own.textContent('tbody');
    assert.ok(![(await theirs).taskId, ...acme.workers.map((w) => w.workerId)].some((id) => text.includes(id)), text);
    await fine(own);
    const all = await visit(browser, stage, stage.admin, { scope: acme });
    await show(all, 'workers');
    assert.ok((await all.locator('tbody td:nth-child(3)').allTextContents()).every((n) => n.startsWith('acme-')));
    await all.selectOption('.scope select', 'globex/stage');
    await show(all, 'workers');
    await all.waitForFunction(() => document.querySelector('tbody td:nth-child(3)')?.textContent.startsWith('globex-'));
    await fine(all);
  });

  test('signing in: pasted, from the address, and when the token is revoked', async () => {
    const page = await visit(browser, stage, mint('viewer', 'acme', 'prod'));
    assert.ok(!page.url().includes('eyJ'), 'the token stays in the address');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Control token').fill('nonsense');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForSelector('text=This is not a Lubdub control token');
    assert.deepEqual(await axeViolations(page), []);
    await page.getByLabel('Control token').fill(mint('operator', 'acme', 'prod', 'leaver'));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForSelector('.who:has-text("operator")');
    await page.reload();
    await page.waitForSelector('.who:has-text("operator")');
    page.tolerated.push(401);
    await stage.call('POST', `tokens:revoke?${acme.at}`, { subject: 'leaver' });
    await page.waitForSelector('text=This token was rejected');
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
    await page.keyboard.type('unknown');
    await page.keyboard.press('Enter');
    await page.waitForSelector('text=Nothing here has the id unknown');
    await fine(page);
  });
});

test('while Redis is frozen the page says so and keeps its data, marked as old', async () => {
  const page = await as('operator', globex);
  await show(page, 'workers');
  await page.waitForSelector('.st-Live');
  const rows = await page.locator('tbody tr').count();
  const overview = await visit(browser, stage, stage.admin, { scope: acme });
  await show(overview, '');
  await overview.waitForSelector('.st-Live');
  overview.tolerated.push(503, 500);
  page.tolerated.push(503, 500);
  stage.redis.kill('SIGSTOP');
  try {
    await page.waitForSelector('.st-Offline');
    await page.waitForSelector('main .failed:has-text("What is shown below is old")');
    assert.equal(await page.locator('.old tbody tr').count(), rows);
    await overview.waitForSelector('main .banner:has-text("Redis is not responding")');
    await overview.waitForSelector('.old .tiles');
    assert.deepEqual(await axeViolations(overview), []);
    await show(page, 'tasks').catch(() => undefined);
    await page.waitForSelector('main .failed:has-text("Could not read the tasks")');
    assert.equal(await page.locator('main .none').count(), 0, 'it shows an empty list');
    assert.deepEqual(await axeViolations(page), []);
  } finally {
    stage.redis.kill('SIGCONT');
  }
  await page.waitForSelector('.st-Live');
  await page.waitForSelector('tbody tr');
  assert.equal(await page.locator('main .failed').count(), 0);
  await overview.waitForFunction(() => document.querySelector('.banner') && !document.querySelector('main .failed'));
  await fine(overview);
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await page.waitForSelector('.st-Paused');
  await page.getByRole('button', { name: 'Resume', exact: true }).click();
  await page.waitForSelector('.st-Live');
  await settled(page);
  await fine(page);
});
