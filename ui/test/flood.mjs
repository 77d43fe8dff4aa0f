// What 5,000 events a second do to the Events page, and 10,000 workers to the Pulse: the page's memory and its longest tasks.
import { launch, show, visit } from './browser.mjs';
import { crowd, open } from './stage.mjs';

const seconds = Number(process.argv[2] ?? 60), perSecond = 5000, batch = 500; // each creation is two events: created and dispatched
const fleet = 10_000;
const stage = await open({ fleet: false, interval: '5m' }), browser = await launch();
const failed = [];

async function watched(page) {
  const cdp = await page.context().newCDPSession(page);
  await page.evaluate(() => {
    window.long = [];
    new PerformanceObserver((l) => window.long.push(...l.getEntries().map((e) => e.duration))).observe({ type: 'longtask' });
  });
  return {
    heap: async () => {
      await cdp.send('HeapProfiler.collectGarbage');
      return (await page.evaluate(() => performance.memory.usedJSHeapSize)) / (1 << 20);
    },
    long: async () => {
      const all = await page.evaluate(() => window.long.splice(0));
      return `${all.length} tasks above 50 ms, the longest ${Math.round(Math.max(0, ...all))} ms`;
    },
  };
}

async function events() {
  const page = await visit(browser, stage, stage.admin, { scope: stage.scopes.acme });
  await show(page, 'events');
  const { heap, long } = await watched(page);
  const before = await heap(), body = { tasks: Array.from({ length: batch }, () => ({ type: 'flood', tenantId: 'acme', workspaceId: 'prod' })) };
  const began = Date.now();
  let sent = 0, most = 0, sampled = 0;
  while (Date.now() - began < seconds * 1000) {
    const due = (Date.now() - began) / 1000 * perSecond / 2;
    if (sent < due) { await stage.call('POST', `tasks:batch?${stage.scopes.acme.at}`, body); sent += batch; } else await new Promise((r) => setTimeout(r, 10));
    if (Date.now() - began > (sampled + 1) * 10_000) { sampled++; most = Math.max(most, await heap()); }
  }
  const took = (Date.now() - began) / 1000;
  console.log(`Events: ${Math.round(sent * 2 / took)} a second for ${Math.round(took)} s; the page says: ${await page.textContent('.title [role=status]')}`);
  const after = await heap();
  console.log(`  heap ${before.toFixed(1)} MiB before, at most ${most.toFixed(1)} meanwhile, ${after.toFixed(1)} after; ${await long()}; ` +
    `${await page.locator('tbody tr').count()} rows`);
  if (after > before + 50) failed.push('the Events page keeps more than 50 MiB');
  await page.context().close();
}

async function pulse() {
  const at = { tenantId: 'initech', workspaceId: 'prod' };
  await crowd(stage, 'tenantId=initech&workspaceId=prod', fleet, 200);
  const page = await visit(browser, stage, stage.admin, { scope: at, width: 1600, height: 1000 });
  const { heap, long } = await watched(page);
  const began = Date.now();
  page.requests = 0;
  await page.evaluate(() => { location.hash = '#/pulse'; });
  await page.waitForSelector('text=/^10,000 workers/', { timeout: 120_000 });
  console.log(`Pulse: 10,000 workers after ${((Date.now() - began) / 1000).toFixed(1)} s and ${page.requests} requests; ${await long()}`);
  const from = page.requests, waited = 20_000;
  await new Promise((r) => setTimeout(r, waited));
  console.log(`  then ${((page.requests - from) * 1000 / waited).toFixed(1)} requests a second; heap ${(await heap()).toFixed(1)} MiB; ${await long()}`);
  if (process.env.SCREENSHOTS) await page.screenshot({ path: process.env.SCREENSHOTS + '/pulse-10000.png' });
  await page.context().close();
}

try {
  await pulse();
  await events();
} finally { await browser.close(); await stage.close(); }
for (const why of failed) console.error(why);
process.exitCode = failed.length ? 1 : 0;
