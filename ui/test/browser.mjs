// A browser whose pages record violations: console errors, breaches of the content security policy, and requests to other hosts.
import { chromium } from 'playwright-core';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { existsSync } from 'node:fs';
import { setPriority } from 'node:os';
import { root } from './stage.mjs';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
const axe = readFileSync(join(root, 'ui/node_modules/axe-core/axe.min.js'), 'utf8');

// patience is longer than anything here takes, on any host; the tests wait for it only if something is broken.
export const patience = 120_000;

// launch starts a browser at a lower priority than the server and Redis, if these were started before: many pages at once must not make
// them too slow to answer.
export const launch = ({ args = [], env } = {}) => {
  setPriority(10);
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage', ...args], env });
};

export async function visit(browser, stage, token, { scope, width = 1024, height = 768, theme = 'light', watch } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  // Playwright would check conditions in each frame, so that a page whose state is awaited would draw sixty frames a second.
  const waitForFunction = page.waitForFunction.bind(page);
  page.waitForFunction = (condition, arg) => waitForFunction(condition, arg, { polling: 50 });
  const wrong = [];
  page.requests = []; // URLs
  page.tolerated = []; // HTTP statuses that are expected
  // GET /v1/system answers 503 when Redis has not answered for 1.2 s, whatever --redis-timeout is: a busy host may take that long, but
  // not more than twice while a page is open.
  let stalls = 0;
  const stalled = (status, url) => status === 503 && new URL(url).pathname.endsWith('/v1/system') && stalls <= 2;
  const expected = (status, url) => page.tolerated.includes(status) || stalled(status, url);
  page.on('console', (m) => {
    const status = Number(/Failed to load resource.* status of (\d+)/.exec(m.text())?.[1]);
    if (['error', 'warning'].includes(m.type()) && !(status && expected(status, m.location().url)))
      wrong.push(`console: ${m.text()} ${m.location().url}`);
  });
  page.on('response', (r) => {
    if (r.status() === 503) stalls++;
    if (r.status() < 500 || expected(r.status(), r.url())) return;
    r.text().then(
      (body) => wrong.push(`${r.url()} is answered ${body}`),
      () => {}, // the page has left
    );
  });
  page.on('pageerror', (e) => wrong.push(`error: ${e.message}`));
  page.on('request', (r) => {
    const url = new URL(r.url());
    if (url.origin !== stage.origin) wrong.push(`a request to ${url}`);
    if (r.url().includes('eyJ')) wrong.push(`a token in the URL ${url}`);
    page.requests.push(r.url());
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

// show opens a page and waits until it has read its data.
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

// inColor are the rules of axe-core that depend on colors.
export const inColor = ['color-contrast', 'link-in-text-block'];

// axeViolations runs axe-core: all its rules, or these. The page's policy does not apply to Playwright's evaluate, so it stays on.
export async function axeViolations(page, rules) {
  if (!(await page.evaluate(() => !!window.axe))) await page.evaluate(axe);
  const found = await page.evaluate(async (runOnly) => {
    const r = await window.axe.run(document, { resultTypes: ['violations'], ...(runOnly && { runOnly }) });
    return r.violations.map(
      (v) =>
        `${v.id}: ${v.help}: ${v.nodes
          .slice(0, 3)
          .map((n) => n.html.slice(0, 160) + ' ' + (n.any[0]?.message ?? ''))
          .join(' | ')}`,
    );
  }, rules);
  return found;
}

// press uses a control with the keyboard alone: Tab until it has the focus, then the key.
export async function press(page, name, key = 'Enter', tab = 'Tab') {
  for (let i = 0; i < 400; i++) {
    await page.keyboard.press(tab);
    const at = await page.evaluate(() => {
      const e = document.activeElement;
      return (e?.getAttribute('aria-label') ?? e?.textContent ?? '').trim();
    });
    if (typeof name === 'string' ? at === name : name.test(at)) return page.keyboard.press(key);
  }
  throw new Error(`${tab} never reached ${name}`);
}

// watched measures a page's memory, and its tasks above 50 ms, during which it does not respond.
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
