// What operators rely on: the pages are current and complete, and actions do what they say.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { axeViolations, launch, settled, show, visit } from './browser.mjs';
import { mint, open, root, until } from './stage.mjs';

let stage, browser, acme;
const images = process.env.SCREENSHOTS || join(root, 'bin/ui');
before(async () => {
  mkdirSync(images, { recursive: true });
  stage = await open({ fleet: false, tenants: ['acme'] });
  browser = await launch();
  ({ acme } = stage.scopes);
});
after(async () => {
  await browser?.close();
  await stage?.close();
});

const as = (role = 'admin', more = {}) => visit(browser, stage, mint(role, 'acme', 'prod'), more);
const fine = async (page) => {
  assert.deepEqual(await page.wrong(), []);
  await page.context().close();
};
const state = (path) => stage.call('GET', `${path}?${acme.at}`);
const focused = (page) => page.evaluate(() => document.activeElement?.firstChild?.textContent ?? document.activeElement?.tagName);
const hirelings = (n, more = {}) =>
  Promise.all(
    Array.from({ length: n }, (_, i) =>
      stage.call('POST', `workers?${acme.at}`, {
        queue: 'night',
        types: ['x'],
        name: `night-${i}`,
        machineId: 'night',
        maxConcurrent: 5,
        ...more,
      }),
    ),
  );

// confirm opens a dialog with the focused button, and confirms it.
async function confirm(page) {
  await page.keyboard.press('Enter');
  await page.locator('dialog button[type=submit]:not([disabled])').click();
  await page.waitForSelector('dialog', { state: 'detached' });
}

test('an action shows its effect while paused, and focus stays', async () => {
  const page = await as();
  const failed = acme.failed,
    [w] = acme.workers;
  const acts = [
    ['queues/mail', 'Pause queue', 'main .lead:has-text("PAUSED")', 'Resume queue'],
    ['queues/mail', 'Resume queue', 'main .lead:not(:has-text("PAUSED"))', 'Pause queue'],
    ['schedules', 'Pause schedule', 'tbody:has-text("PAUSED")', 'Resume schedule'],
    ['schedules/nightly', 'Fire now', 'main dt:text-is("Fired") + dd:text-is("1")', 'Fire now'],
    [`workers/${w.workerId}`, 'Cordon', 'main .lead:has-text("Not schedulable: it is cordoned")', 'Uncordon'],
    [`workers/${w.workerId}`, 'Uncordon', 'main .lead:has-text("Schedulable.")', 'Cordon'],
    ['machines/host-2', 'Drain machine', 'main .lead:has-text("Draining since")', 'Resume machine'],
    ['machines/host-2', 'Resume machine', 'main .lead:not(:has-text("Draining since"))', 'Drain machine'],
    [`tasks/${failed}`, 'Retry', 'main .lead:has-text("QUEUED")', 'Cancel'],
    [`tasks/${failed}`, 'Cancel', 'main .lead:has-text("CANCELLED")', 'It has ended'],
  ];
  for (const [path, name, effect, then] of acts) {
    await show(page, path);
    await page.locator('main button', { hasText: name }).first().waitFor();
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await page.waitForSelector('.st-Paused');
    await page.locator('main button', { hasText: name }).first().focus();
    await confirm(page);
    await page.waitForSelector(effect);
    await until(`after ${name} on ${path} the focus is on ${then}`, async () => (await focused(page))?.startsWith(then));
    assert.equal(await page.locator('.st-Paused').count(), 1);
    await page.getByRole('button', { name: 'Resume', exact: true }).click();
  }
  await fine(page);
});

// All texts from clients are replaced: by a text without spaces that is wider than any page, and by characters that reorder others.
const evil = 'x'.repeat(4000) + '\u202egnp.exe\u2066\u200f';
const own = /^(\d{4}-\d\d-\d\dT.*|[A-Z_]+|[a-z]+\.[a-z_.*]+|)$/;
const replaced = (v, key) =>
  Array.isArray(v)
    ? v.map((x) => replaced(x, key))
    : v && typeof v === 'object'
      ? Object.fromEntries(Object.entries(v).map(([k, x]) => [key === 'labels' ? k + evil : k, replaced(x, k)]))
      : typeof v === 'string' && !own.test(v) && !['severity', 'about', 'next', 'nextPageToken', 'state', 'id'].includes(key)
        ? v + evil
        : v;

test('no text widens a page, and none is drawn with characters that reorder or hide others', async () => {
  await stage.call('POST', `tasks/${acme.running}/cancel?${acme.at}`, { reason: 'wrong audience' });
  for (const width of [390, 1440]) {
    const page = await visit(browser, stage, stage.admin, { scope: acme, width });
    await page.route(/\/v1\//, async (route) => {
      if (route.request().headers().accept === 'text/event-stream') return route.continue();
      const response = await route.fetch().catch(() => null);
      if (!response) return;
      const json = await response.json();
      await route.fulfill({ response, json: replaced(json, '') });
    });
    for (const path of [
      '',
      'pulse',
      'tasks',
      `tasks/${acme.running}`,
      `tasks/${acme.zombie}`,
      'workers',
      `workers/${acme.workers[0].workerId}`,
      'machines',
      'machines/host-0',
      'queues',
      'queues/mail',
      'runs',
      'runs/run_nightly-acme',
      'schedules',
      'schedules/nightly',
      'webhooks',
      'webhooks/pager',
      'events',
      'losses',
      'system',
      `tasks/${encodeURIComponent(evil.slice(3900))}`,
    ]) {
      page.tolerated.push(400, 404);
      await page.evaluate(() => {
        location.hash = '#/nowhere';
      });
      await show(page, path);
      const [wide, view] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wide <= view, `${path} is ${wide} px wide, in ${view}`);
      const bad = await page.evaluate(() => {
        const is = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/,
          texts = [document.title, document.body.textContent];
        for (const e of document.querySelectorAll('*')) texts.push(e.title, e.getAttribute('aria-label'));
        const found = texts.find((t) => t && is.test(t));
        return found && found.slice(Math.max(0, found.search(is) - 60), found.search(is) + 20);
      });
      assert.equal(bad, undefined, `${path} shows ${JSON.stringify(bad)}`);
    }
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await fine(page);
  }
});

test('a link opened in another tab is signed in', async () => {
  const page = await visit(browser, stage, stage.admin, { scope: acme });
  await show(page, 'tasks');
  const link = page.locator('tbody td a.id').first(),
    id = await link.textContent();
  for (const how of [{ modifiers: ['Control'] }, { button: 'middle' }, { modifiers: ['Shift'] }]) {
    const [tab] = await Promise.all([page.context().waitForEvent('page'), link.click(how)]);
    await tab.waitForSelector(`h1:has-text("${id}")`);
    assert.equal(await tab.locator('.scope select').inputValue(), 'acme/prod');
    await tab.close();
  }
  assert.match(page.url(), /#\/tasks$/, 'the link was followed here too');
  await fine(page);
});

test('the displayed command lines work when copied, whatever context the shell uses', async () => {
  const home = mkdtempSync(join(tmpdir(), 'lubdub-home-'));
  const run = (command, env = {}) =>
    new Promise((done) =>
      execFile(
        'bash',
        ['--norc', '-c', command],
        { env: { PATH: `${join(root, 'bin')}:${process.env.PATH}`, XDG_CONFIG_HOME: home, LANG: 'C.UTF-8', ...env } },
        (e, out, errs) => done({ code: e?.code ?? 0, out, text: out + errs }),
      ),
    );
  await run(`echo '${stage.admin}' | lubdub context set lab --server ${stage.base} --token -`);
  await run(`echo '${stage.admin}' | lubdub context set other --server http://127.0.0.1:9 --token - && lubdub context use other`);
  const dashboard = (await run('lubdub ui --print --context lab --tenant acme --workspace prod')).out.trim();
  const page = await visit(browser, stage, stage.admin, { scope: acme });
  await page.goto('about:blank');
  await page.goto(dashboard);
  await page.waitForSelector('main h1');
  const [one, two] = await hirelings(2);
  const strange = 'it\'s \u202e"gone"';
  const command = async (path, button) => {
    await show(page, path);
    await page.locator('main button', { hasText: button }).first().click();
    await page.locator('dialog button[type=submit]:not([disabled])').waitFor();
    const reason = page.locator('dialog input[name=reason]');
    if (await reason.count()) await reason.fill(strange);
    const text = await page.textContent('dialog code');
    await page.keyboard.press('Escape');
    await page.waitForSelector('dialog', { state: 'detached' });
    assert.ok(text.endsWith(' --context lab --tenant acme --workspace prod'), text);
    return text;
  };
  const does = async (path, button, so) => {
    const line = await command(path, button),
      { code, text } = await run(`${line}${/ all /.test(button) ? ' -y' : ''}`);
    assert.equal(code, 0, `${line}: ${text}`);
    assert.ok(await so(), `${line} did nothing: ${text}`);
  };
  await does(`workers/${one.workerId}`, 'Cordon', async () => (await state(`workers/${one.workerId}`)).cordon.reason === strange);
  await does(`workers/${one.workerId}`, 'Uncordon', async () => !(await state(`workers/${one.workerId}`)).cordon);
  await does(`workers/${two.workerId}`, 'Drain', async () => (await state(`workers/${two.workerId}`)).status !== 'ONLINE');
  await does('queues/mail', 'Pause queue', async () => (await state('queues/mail')).paused);
  await does('queues/mail', 'Resume queue', async () => !(await state('queues/mail')).paused);
  await does('schedules/nightly', /^(Pause|Resume) schedule/, () => true);
  await does('schedules/nightly', 'Fire now', async () => (await state('schedules/nightly')).fired > 0);
  await does('webhooks/pager', 'Send a test', () => true);
  await does('webhooks/pager', 'Redeliver', () => true);
  await does('machines/night', 'Drain machine', async () => (await state('machines/night')).drain.reason === strange);
  await does('machines/night', 'Resume machine', async () => !(await state('machines/night')).drain);
  await does('system', 'Sweep now', () => true);
  await stage.call('POST', `tasks:batch?${acme.at}`, {
    tasks: [1, 2, 3].map(() => ({ queue: 'copied', type: 'x', labels: { note: "it's = odd" } })),
  });
  await does(
    `tasks?queue=copied&label=${encodeURIComponent("note=it's = odd")}`,
    'Cancel all that match',
    async () => (await stage.call('GET', `tasks?${acme.at}&queue=copied&state=CANCELLED`)).tasks.length === 3,
  );
  const pasted = await visit(browser, stage, mint('admin', 'acme', 'prod'));
  await show(pasted, 'queues/mail');
  await pasted.locator('main button', { hasText: 'Pause queue' }).click();
  assert.equal(await pasted.textContent('dialog code'), `lubdub queue pause mail --server ${stage.base} --tenant acme --workspace prod`);
  await fine(pasted);
  await fine(page);
  rmSync(home, { recursive: true });
});

test('each linked number equals the length of its list', async () => {
  const dead = await hirelings(3, { queue: 'grave', machineId: 'grave', types: ['bury'] });
  await stage.call('POST', `tasks:batch?${acme.at}`, { tasks: [1, 2, 3, 4].map(() => ({ queue: 'grave', type: 'bury', payload: {} })) });
  await stage.call('POST', 'queues/grave/claim', { max: 4 }, dead[0].workerToken);
  await until('the workers are lost', async () => (await state('queues/grave')).workers.offline === 3);
  await until('their tasks are lost', async () => (await state('stats/verdicts')).total >= 4);
  const page = await visit(browser, stage, stage.admin, { scope: acme, width: 1440 });
  await show(page, '');
  const lost = page.locator('section', { has: page.getByRole('heading', { name: 'Recently lost' }) });
  await lost.locator(`tr:has-text("${dead[0].workerId}")`).waitFor();
  await lost
    .locator(`tr:has-text("${dead[0].workerId}")`)
    .filter({ hasText: /night-0440wkr_/ })
    .waitFor(); // attempts, requeued, failed
  await page.screenshot({ path: join(images, 'lost-1440.png'), fullPage: true });
  await page.setViewportSize({ width: 390, height: 844 });
  await page.screenshot({ path: join(images, 'lost-390.png'), fullPage: true });
  await page.setViewportSize({ width: 1440, height: 900 });
  assert.deepEqual(await axeViolations(page), []);
  const seen = new Set();
  const check = (path, link) =>
    until(
      `${path}: ${link} is what its list has`,
      async () => {
        await show(page, path);
        const a = page.locator(`main a[href="${link}"]`, { hasText: /^\d/ }).first();
        if (!(await a.count())) return link === '#/system'; // nothing is overdue: a time, not a number
        const number = ((await a.locator('b').count()) ? await a.locator('b').textContent() : await a.textContent()).replaceAll(',', '');
        if (!/^\d+$/.test(number)) return true; // a time
        await a.click();
        await settled(page);
        const text = await page
          .locator('.pager [role=status]')
          .textContent({ timeout: 5000 })
          .catch(() => '');
        seen.add(path.split('/')[0]);
        const listed = /(?:of )?([\d,]+) [a-z]+s?$/.exec(text)?.[1].replaceAll(',', '');
        check.last = `${number}, and the list has ${text}`;
        return listed === number;
      },
      40,
    ).catch((e) => {
      throw new Error(`${e.message}: ${check.last}`);
    });
  for (const path of [
    '',
    'system',
    'queues',
    'queues/mail',
    'queues/grave',
    'workers',
    `workers/${acme.workers[0].workerId}`,
    `tasks/${acme.zombie}`,
    'machines',
    'machines/grave',
    'runs/run_nightly-acme',
  ]) {
    await show(page, path);
    const links = await page.locator('main .tiles a, main a.n').evaluateAll((all) => [...new Set(all.map((a) => a.getAttribute('href')))]);
    for (const link of links) await check(path, link);
  }
  assert.ok(
    ['', 'queues', 'workers', 'machines', 'runs'].every((p) => seen.has(p)),
    [...seen].join(),
  );
  await fine(page);
});

test("the pulse applies the newest of a worker's events", async () => {
  const page = await visit(browser, stage, stage.admin, { scope: acme });
  const [w] = acme.workers;
  let held = false;
  await page.route('**/v1/workers?*', (route) => (held ? undefined : route.continue()));
  const at = (s) => new Date(Date.now() + s * 1000).toISOString();
  const events = [
    ['e1', 'worker.late', 60],
    ['e2', 'worker.offline', 61],
  ].map(([id, type, s]) => ({ id, type, time: at(s), subject: w.workerId, workerId: w.workerId }));
  let streams = 0;
  await page.route(/\/v1\/events\?.*worker\./, async (route) => {
    if (streams++) return;
    await until('the workers are read', () => held);
    await route.fulfill({
      contentType: 'text/event-stream',
      body: events.map((e) => `id: ${e.id}\ndata: ${JSON.stringify(e)}\n\n`).join(''),
    });
  });
  await show(page, 'queues/mail'); // whose event filter does not match
  await page.evaluate(() => {
    location.hash = '#/pulse';
  });
  await page.getByText('show offline workers').click();
  const row = page.locator(`.cell-table tr:has-text("${w.workerId}")`);
  await row.waitFor();
  held = true; // what follows is from events alone
  await row.filter({ hasText: /^OFFLINE/ }).waitFor();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.context().close();
});

test('while Redis is frozen no page shows old health as current', async () => {
  const pages = await Promise.all(
    ['', 'system'].map(async (path) => {
      const page = await visit(browser, stage, stage.admin, { scope: acme });
      page.tolerated.push(503, 500);
      await show(page, path);
      const banner = page.getByRole('status', { name: 'Health' });
      await banner.waitFor();
      return { page, banner };
    }),
  );
  const paused = await visit(browser, stage, stage.admin, { scope: acme });
  await paused.getByRole('button', { name: 'Pause', exact: true }).click();
  const frozen = Date.now();
  stage.redis.kill('SIGSTOP');
  try {
    await Promise.all(
      pages.map(async ({ page, banner }) => {
        await banner.filter({ hasText: 'Redis is not responding' }).waitFor();
        console.log(`the banner took ${Date.now() - frozen} ms`);
        const text = await banner.textContent();
        assert.match(text, /imeouts are paused/);
        assert.match(await banner.getAttribute('class'), /b-fail/);
        assert.equal(await page.getByText('All systems healthy').count(), 0);
        await page.waitForSelector('.old');
        assert.deepEqual(await axeViolations(page), []);
      }),
    );
    await paused.getByText(/^Paused: this was read/).waitFor();
  } finally {
    stage.redis.kill('SIGCONT');
  }
  for (const { page, banner } of pages) {
    await page.waitForFunction(() => !document.querySelector('main .old'));
    await banner.filter({ hasNotText: 'not responding' }).waitFor();
    await fine(page);
  }
  await fine(paused);
});

test('a missing response about the state is reported', async () => {
  const page = await visit(browser, stage, stage.admin, { scope: acme });
  await page.getByRole('status', { name: 'Health' }).waitFor();
  await page.route('**/v1/system?*', () => undefined);
  await page.getByText('The state is unknown').waitFor();
  await page.locator('.banner', { hasText: 'The server did not answer within 3 s' }).waitFor();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.getByText('The state is unknown').waitFor({ state: 'detached' });
  await fine(page);
});
