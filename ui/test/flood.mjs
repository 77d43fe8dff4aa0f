// Measures memory and longest tasks of open pages during a minute of 5,000 events a second.
import { launch, show, visit, watched } from './browser.mjs';
import { crowd, open } from './stage.mjs';

const seconds = Number(process.argv[2] ?? 60),
  perSecond = 5000,
  batch = 500;
const longest = 200,
  growth = 50; // ms and MiB that are allowed
const fleet = 10_000;
const stage = await open({ fleet: false, interval: '5m' }),
  browser = await launch();
const failed = [];

const describe = (long) => `${long.length} tasks above 50 ms, the longest ${long[0] ?? 0} ms`;

// flood creates events at that rate for a while, and calls sample every ten seconds. Each task has two events: created and dispatched.
async function flood(sample) {
  const body = {
      tasks: Array.from({ length: batch }, () => ({
        type: 'flood',
        tenantId: 'acme',
        workspaceId: 'prod',
        heartbeatIntervalMs: 600_000,
        heartbeatTimeoutMs: 1_800_000,
      })),
    },
    each = 2;
  const began = Date.now();
  let sent = 0,
    sampled = 0;
  while (Date.now() - began < seconds * 1000) {
    const due = (((Date.now() - began) / 1000) * perSecond) / each;
    if (sent < due) {
      await stage.call('POST', `tasks:batch?${stage.scopes.acme.at}`, body);
      sent += batch;
    } else await new Promise((r) => setTimeout(r, 10));
    if (Date.now() - began > (sampled + 1) * 10_000) {
      sampled++;
      await sample();
    }
  }
  return Math.round((sent * each * 1000) / (Date.now() - began));
}

async function under(path, status) {
  const page = await visit(browser, stage, stage.admin, { scope: stage.scopes.acme });
  await show(page, path);
  const { heap, long } = await watched(page),
    before = await heap();
  let most = 0;
  await long();
  const rate = await flood(async () => {
    most = Math.max(most, await heap());
  });
  const slow = await long(),
    after = await heap();
  console.log(
    `${path || 'overview'}: ${rate} events a second for ${seconds} s: ${describe(slow)}; heap ${before.toFixed(1)} MiB before, at most ${most.toFixed(1)}, ` +
      `${after.toFixed(1)} after; ${await status(page)}`,
  );
  if (rate < 0.9 * perSecond) failed.push(`${path}: only ${rate} events a second arrived`);
  if (slow[0] > longest) failed.push(`${path}: a task of ${slow[0]} ms`);
  if (after > before + growth) failed.push(`${path}: memory grew by ${(after - before).toFixed(1)} MiB`);
  const wrong = await page.wrong();
  if (wrong.length) failed.push(`${path}: ${wrong[0]}`);
  await page.context().close();
}

async function pulse() {
  const at = { tenantId: 'initech', workspaceId: 'prod' };
  await crowd(stage, 'tenantId=initech&workspaceId=prod', fleet, 200);
  const page = await visit(browser, stage, stage.admin, { scope: at, width: 1600, height: 1000 });
  const { heap, long } = await watched(page);
  const began = Date.now();
  page.requests = [];
  await page.evaluate(() => {
    location.hash = '#/pulse';
  });
  await page.waitForSelector('text=/^10,000 workers/', { timeout: 120_000 });
  const slow = await long();
  console.log(
    `pulse: 10,000 workers after ${((Date.now() - began) / 1000).toFixed(1)} s and ${page.requests.length} requests; ${describe(slow)}`,
  );
  const from = page.requests.length,
    waited = 20_000;
  await new Promise((r) => setTimeout(r, waited));
  const then = await long();
  console.log(
    `  then ${(((page.requests.length - from) * 1000) / waited).toFixed(1)} requests a second; heap ${(await heap()).toFixed(1)} MiB; ${describe(then)}`,
  );
  if (Math.max(slow[0] ?? 0, then[0] ?? 0) > longest) failed.push(`pulse of 10,000: a task of ${Math.max(slow[0] ?? 0, then[0] ?? 0)} ms`);
  await page.context().close();
}

try {
  await pulse();
  const rows = async (page) => `${await page.locator('tbody tr').count()} rows`;
  await under('events', async (page) => `${await rows(page)}, and the page shows: ${await page.textContent('.title [role=status]')}`);
  await under('', async (page) => `the banner shows: ${await page.textContent('.banner h2')}`);
  await under('tasks', rows);
  await under('pulse', async (page) => await page.textContent('[role=status]:has-text("workers")'));
} finally {
  await browser.close();
  await stage.close();
}
for (const why of failed) console.error(why);
process.exitCode = failed.length ? 1 : 0;
