// Measures every page with 100,000 tasks and 10,000 workers: how long its calls take, whether it is painted, when it is first interactive,
// and what 100 open dashboards cost. It prints the figures and fails if one exceeds its limit.
import { join } from 'node:path';
import { mkdirSync } from 'node:fs';
import { loadavg } from 'node:os';
import { fill, interval } from './fill.mjs';
import { launch, settled, visit } from './browser.mjs';
import { open, root } from './stage.mjs';
import { watchers } from './watchers.mjs';

const rounds = Number(process.env.ROUNDS ?? 5),
  slowest = 100,
  ready = 1000; // ms that are allowed
const images = join(root, 'bin/ui/scale');
mkdirSync(images, { recursive: true });
const failed = [];
const median = (of) => [...of].sort((a, b) => a - b)[Math.floor(of.length / 2)];
const load = () => `load ${loadavg()[0].toFixed(1)}`;

const stage = await open({ fleet: false, interval: `${interval}ms`, tenants: [], shards: 16 }),
  browser = await launch();
let beats;
try {
  const began = Date.now();
  const all = await fill(stage);
  ({ beats } = all);
  console.log(
    `${all.tasks} tasks (${Object.entries(all.counts)
      .map(([state, n]) => `${n} ${state}`)
      .join(
        ', ',
      )}), ${all.workers} workers, ${all.machines} machines, ${all.queues} queues after ${Math.round((Date.now() - began) / 1000)} s; ${load()}`,
  );
  await firstPaint(all);
  await pages(all);
  failed.push(...(await watchers(stage, browser, all)));
} finally {
  beats?.kill();
  await browser.close();
  await stage.close();
}
for (const why of failed) console.error('FAILED: ' + why);
process.exitCode = failed.length ? 1 : 0;

// firstPaint opens the dashboard with an empty cache.
async function firstPaint(all) {
  const took = { painted: [], interactive: [], banner: [] };
  for (let i = 0; i < 2 * rounds + 1; i++) {
    const page = await visit(browser, stage, stage.admin, {
      scope: all,
      watch: () => {
        window.at = {};
        window.late = 0;
        new PerformanceObserver((l) => {
          for (const e of l.getEntries()) window.late = Math.max(window.late, e.startTime + e.duration);
        }).observe({ type: 'longtask' });
        new MutationObserver(() => {
          if (document.querySelector('main h1')) window.at.interactive ??= performance.now(); // it is drawn, and its listeners are attached
          if (document.querySelector('.banner')) window.at.banner ??= performance.now();
        }).observe(document, { childList: true, subtree: true });
      },
    });
    await page.waitForSelector('.banner');
    const at = await page.evaluate(() => ({
      ...window.at,
      late: window.late,
      painted: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
    }));
    took.painted.push(at.painted);
    took.interactive.push(Math.max(at.interactive, at.late));
    took.banner.push(at.banner);
    await page.context().close();
  }
  const of = (name) => `${Math.round(median(took[name]))} ms (at most ${Math.round(Math.max(...took[name]))})`;
  console.log(
    `opened ${took.banner.length} times: painted after ${of('painted')}, interactive after ${of('interactive')}, the banner after ${of('banner')}; ${load()}`,
  );
  if (median(took.interactive) > ready) failed.push(`interactive after ${Math.round(median(took.interactive))} ms`);
}

// pages opens each page in turn, and records how long each call took.
async function pages(all) {
  const page = await visit(browser, stage, stage.admin, { scope: all, width: 1600, height: 1000 });
  const calls = new Map();
  let current = '';
  page.on('requestfinished', (r) => {
    const t = r.timing(),
      url = new URL(r.url());
    if (!url.pathname.includes('/v1/') || r.headers().accept === 'text/event-stream') return;
    for (const own of ['tenantId', 'workspaceId', 'pageToken', 'after', 'sinceMs']) url.searchParams.delete(own);
    const name = `${current.padEnd(34)} ${r.method()} ${url.pathname.replace(/^.*\/v1/, '/v1').replace(/(task|wkr)_[0-9A-Za-z]+/, '$1_…')} ${url.searchParams}`;
    if (!calls.has(name)) calls.set(name, []);
    calls.get(name).push(t.responseEnd - t.requestStart);
  });
  for (let round = 0; round < rounds; round++) {
    for (const [path, want] of all.pages) {
      current = path || 'overview';
      await page.evaluate((to) => {
        location.hash = '#/' + to;
      }, path);
      await settled(page);
      try {
        await page.waitForFunction(
          (re) =>
            new RegExp(re).test(
              document.querySelector('main').textContent + (document.querySelector('canvas')?.getAttribute('aria-label') ?? ''),
            ),
          want.source,
        );
      } catch {
        failed.push(`${path}: it does not show ${want}: ${(await page.textContent('main')).slice(0, 200)}`);
      }
      const broken = await page.locator('main .failed').allTextContents();
      if (broken.length) failed.push(`${path}: ${broken[0]}`);
      if (round === 0) await page.screenshot({ path: join(images, `${current.replace(/\W+/g, '-').slice(0, 60)}.png`) });
      if (path === 'pulse' && round === 0) await painted(page, all);
    }
  }
  const slow = [...calls]
    .map(([name, took]) => ({ name, took: median(took), least: Math.min(...took), most: Math.max(...took), n: took.length }))
    .sort((a, b) => b.took - a.took);
  console.log(`${slow.length} kinds of calls in ${rounds} rounds, the slowest medians; ${load()}`);
  for (const c of slow.slice(0, 25))
    console.log(
      `  ${c.took.toFixed(1).padStart(6)} ms, from ${c.least.toFixed(1).padStart(5)} to ${c.most.toFixed(1).padStart(6)}, of ${String(c.n).padStart(4)}: ${c.name}`,
    );
  for (const c of slow) if (c.took > slowest) failed.push(`${c.name} takes ${c.took.toFixed(0)} ms`);
  const wrong = await page.wrong();
  if (wrong.length) failed.push(wrong[0]);
  await page.context().close();
}

// painted checks that a cell is drawn for each worker, by the number of coloured pixels.
async function painted(page, all) {
  const drawn = await page.evaluate(() => {
    const c = document.querySelector('canvas'),
      { data } = c.getContext('2d').getImageData(0, 0, c.width, c.height);
    let n = 0;
    for (let i = 3; i < data.length; i += 4) if (data[i] > 128) n++;
    return n;
  });
  if (drawn < all.workers * 18) failed.push(`pulse: only ${drawn} px of ${all.workers} cells are coloured`);
}
