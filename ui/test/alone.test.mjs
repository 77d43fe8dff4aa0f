// Tests that need their own deployment: the banner, which shows the server's findings, and events older than very many others.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { axeViolations, launch, patience, settled, show, visit } from './browser.mjs';
import { open, until } from './stage.mjs';

const scope = { tenantId: 'acme', workspaceId: 'prod' },
  at = 'tenantId=acme&workspaceId=prod';
const together = 60,
  silence = 10_000; // tasks at once, and ms after which they are silent: the brake holds from fifty on
let stage, browser;

before(async () => {
  [stage, browser] = await Promise.all([
    open({ fleet: false, interval: '1m', tenants: [], with: ['--mass-expiry-brake', 'on'], redisWith: ['--appendonly', 'yes'] }),
    launch(),
  ]);
});
after(async () => {
  await browser?.close();
  await stage?.close();
});

// healthyIn returns the messages of healthy findings that the summary has: the last line of the page, not the banner, shows them.
const healthyIn = ({ summary, findings }) =>
  findings.filter((f) => f.severity === 'ok' && summary.message.includes(f.message)).map((f) => f.message);

// wording returns the text that the banner must have for a response of GET /v1/system.
// The button and the healthy parts are not the server's words there.
const wording = ({ summary, findings }) =>
  summary.title +
  healthyIn({ summary, findings })
    .reduce((text, m) => text.replace(m, ''), summary.message)
    .replace(/\s+/g, ' ')
    .trim() +
  findings
    .filter((f) => f.remedy)
    .map((f) => `${f.code} ${f.remedy}`)
    .join('');

const withoutButton = (banner) =>
  banner.evaluate((e) => {
    const copy = e.cloneNode(true);
    copy.querySelector('.button')?.remove();
    return copy.textContent;
  });

// What is wrong has one button, but System has no button that opens System.
const elsewhere = ['queue', 'workers', 'flapping', 'recently-lost', 'poison-task', 'failures', 'webhooks'];
const buttons = (path, { findings: [first] }) => Number(first.severity !== 'ok' && (path !== 'system' || elsewhere.includes(first.code)));

// look opens a page. shows() waits until the banner matches the latest response and that response satisfies a condition.
async function look(path) {
  const page = await visit(browser, stage, stage.admin, { scope });
  let last;
  page.on('response', async (r) => {
    if (r.ok() && /\/v1\/system\?/.test(r.url())) last = await r.json().catch(() => last);
  });
  await show(page, path);
  const banner = page.getByRole('status', { name: 'Health' });
  const shows = async (what, kind) => {
    for (const end = Date.now() + patience; Date.now() < end; await new Promise((r) => setTimeout(r, 50))) {
      const system = last,
        text = await withoutButton(banner),
        quiet = (await page.locator('main .healthy').allTextContents()).join();
      if (!system || text !== wording(system) || quiet !== healthyIn(system).join(' ') || !kind(system)) continue;
      assert.equal(await banner.locator('.button').count(), buttons(path, system), what);
      assert.match(await banner.getAttribute('class'), new RegExp(`\\bb-${system.summary.severity}$`), what);
      assert.deepEqual(await axeViolations(page), [], `${path}: ${what}`);
      return system;
    }
    throw new Error(
      `${path || 'overview'}: ${what} is never shown; the banner: ${await banner.textContent()}; the server: ${last && wording(last)}`,
    );
  };
  return { page, banner, shows };
}

const fine = async ({ page }) => {
  assert.deepEqual(await page.wrong(), []);
  await page.context().close();
};
const finds = (code, severity) => (system) => system.findings.some((f) => f.code === code && f.severity === severity);

test('all is well, then the brake holds, then Redis is frozen and comes back', async () => {
  const pages = await Promise.all(['', 'system'].map(look));
  // An overloaded host pauses shard time, and an outage is reported for an hour: these findings are correct.
  const busy = new Set(['shard-time', 'shards', 'sweep-lag', 'redis-round-trip']);
  for (const p of pages) {
    const system = await p.shows('all is well', (is) => is.findings.every((f) => f.severity === 'ok' || busy.has(f.code)));
    if (system.summary.severity === 'ok') assert.match(wording(system), /^All systems healthy/); // which the banner showed
  }

  // At least fifty tasks are silent, and new ones fall silent, until the banner was checked.
  let over = false;
  const dying = (async () => {
    while (!over) {
      const { results } = await stage.call('POST', `tasks:batch?${at}`, {
        tasks: Array.from({ length: together }, () => ({
          ...scope,
          type: 'deaf',
          heartbeatIntervalMs: silence / 2,
          heartbeatTimeoutMs: silence,
        })),
      });
      await Promise.all(
        results.map((t) => stage.call('POST', `tasks/${t.taskId}/started`, { attempt: t.attempt, workerId: 'deaf' }, t.taskToken)),
      );
      for (let i = 0; i < 20 && !over; i++) await new Promise((r) => setTimeout(r, silence / 40));
    }
  })();
  try {
    for (const p of pages) {
      await p.shows('the brake holds', finds('brake', 'warn'));
      assert.match(
        await p.banner.textContent(),
        /brake check the network between the workers and Lubdub, and the hosts listed by lubdub worker ls --silent; only if all of them are dead, declare them dead immediately: lubdub system release --tenant/,
      );
    }
  } finally {
    over = true;
    await dying;
  }

  for (const { page } of pages) page.tolerated.push(503, 500);
  stage.redis.kill('SIGSTOP');
  try {
    for (const { page } of pages) {
      await page.waitForSelector('main .banner:has-text("Redis is not responding")');
      await page.waitForSelector('main .old');
      assert.deepEqual(await axeViolations(page), []);
    }
  } finally {
    stage.redis.kill('SIGCONT');
  }
  for (const p of pages) {
    await p.shows('an outage was credited', finds('shard-time', 'warn'));
    await p.page.waitForFunction(() => !document.querySelector('main .failed') && !document.querySelector('.old'));
    assert.match(await p.banner.textContent(), /shard-time find the cause: lubdub event ls/);
    await fine(p);
  }
});

test('the banner shows the evaluation of the server unchanged, and that an older server has none', async () => {
  const { page, banner } = await look('');
  let change = (system) => {
    system.summary = { severity: 'fail', about: 'us', title: 'The moon is at fault', message: 'The moon is full.' };
    system.findings = [{ code: 'moon', severity: 'fail', about: 'us', message: 'The moon is full.', remedy: 'wait for the sun' }];
  };
  await page.route('**/v1/system?*', async (route) => {
    const response = await route.fetch(),
      json = await response.json();
    change(json);
    await route.fulfill({ response, json });
  });
  await until(
    'the banner shows it',
    async () => (await banner.textContent()) === 'The moon is at faultOpen SystemThe moon is full.moon wait for the sun',
  );
  assert.match(await banner.getAttribute('class'), /\bb-fail$/);
  change = (system) => {
    delete system.summary;
    delete system.findings;
  };
  await banner.getByRole('heading', { name: 'No findings' }).waitFor();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await fine({ page });
});

test('events older than ten thousand others are found, and the page says when it has not searched all', async () => {
  await stage.call('POST', `workers?${at}`, { queue: 'q', types: ['x'], name: 'hermit', machineId: 'lonely' });
  const crowded = { tenantId: 'globex', workspaceId: 'stage' };
  for (let i = 0; i < 6; i++) {
    // two events each
    await stage.call('POST', 'tasks:batch?tenantId=globex&workspaceId=stage', {
      tasks: Array.from({ length: 1000 }, () => ({
        ...crowded,
        type: 'crowd',
        heartbeatIntervalMs: 600_000,
        heartbeatTimeoutMs: 1_800_000,
      })),
    });
  }
  const page = await visit(browser, stage, stage.admin, { scope });
  await show(page, 'machines/lonely');
  await page.getByText('No matching events among the newest.').waitFor();
  assert.deepEqual(await axeViolations(page), []);
  await page.getByRole('link', { name: 'search further back' }).click();
  await page.waitForSelector('tbody tr:has-text("worker.registered")');
  assert.match(page.url(), /events\?machineId=lonely$/);
  await fine({ page });

  const other = await visit(browser, stage, stage.admin, { scope: crowded });
  const rows = () => other.locator('tbody tr').allTextContents();
  await show(other, 'events');
  await other.waitForSelector('.st-Live');
  const first = new Set(await rows());
  await other.getByRole('button', { name: 'Next page' }).click();
  await other.getByText('Older events; not live').waitFor();
  await settled(other);
  const second = await rows();
  assert.ok(
    first.size === 50 && second.length === 50 && !second.some((r) => first.has(r)),
    `${first.size} rows, and then ${second.length}`,
  );
  await other.getByRole('button', { name: 'Previous page' }).click();
  await other.getByText('Live, newest first').waitFor();
  await settled(other); // otherwise the page may already include the task that is created now
  const { taskId } = await stage.call('POST', 'tasks?tenantId=globex&workspaceId=stage', { type: 'late' });
  await other.waitForSelector(`tbody tr:has-text("${taskId}")`);
  assert.ok((await rows()).length > 50, 'the earlier events are gone');
  await fine({ page: other });
});

test('events between the first read and the start of the stream are shown', async () => {
  const page = await visit(browser, stage, stage.admin, { scope });
  let begin;
  const held = new Promise((r) => {
    begin = r;
  });
  await page.route('**/v1/events?*', async (route) => {
    // a filter opens a separate stream
    if (route.request().headers().accept === 'text/event-stream') await held;
    await route.continue();
  });
  await show(page, 'events?type=task.*');
  await page.getByText('The stream is not open').waitFor();
  const { taskId } = await stage.call('POST', `tasks?${at}`, { type: 'meanwhile' });
  begin();
  await page.waitForSelector(`tbody tr:has-text("${taskId}")`);
  await fine({ page });
});
