// A browser whose pages note whatever they must not do: complain, break the policy, or ask anybody but the server.
import { chromium } from 'playwright-core';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { existsSync } from 'node:fs';
import { root } from './stage.mjs';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
const axe = readFileSync(join(root, 'ui/node_modules/axe-core/axe.min.js'), 'utf8');

// patience is more than anything here takes, on any machine; it is only waited for when something is broken.
export const patience = 120_000;

export const launch = () => chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });

export async function visit(browser, stage, token, { scope, width = 1024, height = 768, theme = 'light', watch } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  const wrong = [];
  page.tolerated = []; // HTTP statuses whose lines in the console are expected
  page.on('console', (m) => {
    const status = /Failed to load resource.* status of (\d+)/.exec(m.text())?.[1];
    if (['error', 'warning'].includes(m.type()) && !(status && page.tolerated.includes(Number(status))))
      wrong.push(`console: ${m.text()} ${m.location().url}`);
  });
  page.on('pageerror', (e) => wrong.push(`error: ${e.message}`));
  page.on('request', (r) => {
    const url = new URL(r.url());
    if (url.origin !== stage.origin) wrong.push(`a request to ${url}`);
    if (r.url().includes('eyJ')) wrong.push(`a token in the URL ${url}`);
    page.requests = (page.requests ?? 0) + 1;
  });
  await page.addInitScript(() => {
    window.violations = [];
    addEventListener('securitypolicyviolation', (e) => window.violations.push(`${e.violatedDirective} ${e.blockedURI} ${e.sample}`));
  });
  if (watch) await page.addInitScript(watch);
  page.wrong = async () => [...wrong, ...(await page.evaluate(() => window.violations))];
  const fragment = new URLSearchParams({ token, ...(scope ? { tenantId: scope.tenantId, workspaceId: scope.workspaceId } : {}) });
  await page.goto(`${stage.base}/ui/#${fragment}`);
  await page.waitForSelector('main h1');
  return page;
}

// show goes to a page and waits until it has read what it shows.
export async function show(page, path) {
  await page.evaluate((to) => {
    location.hash = '#/' + to;
  }, path);
  await settled(page);
}

export async function settled(page) {
  await page.waitForFunction(
    () =>
      document.querySelector('main h1') &&
      ![...document.querySelectorAll('main [role=status]')].some((e) => /^(Reading|reading)/.test(e.textContent)),
  );
}

// judge runs axe-core. Playwright's evaluate is not bound by the page's policy, so the policy stays on.
export async function judge(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const r = await window.axe.run(document, { resultTypes: ['violations'] });
    return r.violations.map(
      (v) =>
        `${v.id}: ${v.help}: ${v.nodes
          .slice(0, 3)
          .map((n) => n.html.slice(0, 160) + ' ' + (n.any[0]?.message ?? ''))
          .join(' | ')}`,
    );
  });
  return found;
}

// press reaches a control by the keyboard alone: Tab until it has the focus, then the key.
export async function press(page, name, key = 'Enter', tab = 'Tab') {
  for (let i = 0; i < 400; i++) {
    await page.keyboard.press(tab);
    const at = await page.evaluate(() => {
      const e = document.activeElement;
      return (e?.getAttribute('aria-label') ?? e?.textContent ?? '').trim();
    });
    if (typeof name === 'string' ? at === name : name.test(at)) return page.keyboard.press(key);
  }
  throw new Error(`${tab} never came to ${name}`);
}

// watched tells of a page's memory, and of its tasks above 50 ms, which keep it from answering.
export async function watched(page) {
  const cdp = await page.context().newCDPSession(page);
  await page.evaluate(() => {
    window.long = [];
    new PerformanceObserver((l) => window.long.push(...l.getEntries().map((e) => Math.round(e.duration)))).observe({ type: 'longtask' });
  });
  return {
    heap: async () => {
      await cdp.send('HeapProfiler.collectGarbage');
      return (await page.evaluate(() => performance.memory.usedJSHeapSize)) / (1 << 20);
    },
    long: () => page.evaluate(() => window.long.splice(0).sort((a, b) => b - a)),
  };
}
