// The charts of the Overview: the values at a time that the mouse or the arrow keys choose, and the range that is shown.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { axeViolations, launch, press, show, visit } from './browser.mjs';
import { mint, open } from './stage.mjs';

const scope = { tenantId: 'acme', workspaceId: 'prod' };
const labels = ['Accepted beats a second', 'How long 99 of 100 beats take at most', 'Refused beats a second'];
let stage, browser;

before(async () => {
  [stage, browser] = await Promise.all([open({ fleet: false, interval: '10m', tenants: [] }), launch()]);
});
after(async () => {
  await browser?.close();
  await stage?.close();
});

// opened returns a page that shows the charts and, unless it is live, does not change.
async function opened({ path = '', live = false, ...more } = {}) {
  const page = await visit(browser, stage, mint('viewer', scope.tenantId, scope.workspaceId), more);
  await show(page, path);
  await page.waitForFunction(() => /now .*at most [1-9]/.test(document.querySelector('.chart [role=img]')?.ariaLabel ?? ''));
  if (!live) await page.getByRole('button', { name: 'Pause', exact: true }).click();
  return page;
}
const end = async (page) => {
  assert.deepEqual(await page.wrong(), []);
  await page.context().close();
};
const fine = async (page) => {
  assert.deepEqual(await axeViolations(page), []);
  await end(page);
};

const tooltips = (page) => page.locator('.chart .tooltip').allTextContents();
const none = (page) => page.waitForFunction(() => [...document.querySelectorAll('.tooltip')].every((t) => !t.textContent));
const summaries = (page) => page.locator('.chart [role=img]').evaluateAll((all) => all.map((e) => e.ariaLabel));

// visible counts the elements that are drawn.
const visible = async (page, selector) => (await page.locator(selector).locator('visible=true').all()).length;

// chosen waits until all charts show the same time, other than `not`, and returns it.
async function chosen(page, not = '') {
  const time = await page.waitForFunction((not) => {
    const times = new Set([...document.querySelectorAll('.tooltip')].map((t) => /^\d\d:\d\d:\d\d UTC/.exec(t.textContent)?.[0]));
    const [time] = times;
    return times.size === 1 && time !== not && time;
  }, not);
  return time.jsonValue();
}

const number = (n) => new Intl.NumberFormat('en', { maximumFractionDigits: Math.abs(n) < 100 ? 1 : 0 }).format(n);

const steps = async () => (await stage.call('GET', 'stats?tenantId=acme&workspaceId=prod')).series.steps;
const timeOf = (step) => `${step.at.slice(11, 19)} UTC`;

// stored returns the tooltips of the step at this time, as the API reports it.
async function stored(time) {
  const step = (await steps()).find((s) => timeOf(s) === time);
  const refused = Object.values(step.refused).reduce((a, b) => a + b, 0);
  return [
    `${time} beats: ${number(step.beats / 10)} a second`,
    `${time} p99: ${step.beatP99Ms === null ? 'none' : `${number(step.beatP99Ms)} ms`}`,
    `${time} refusals: ${number(refused / 10)} a second`,
  ];
}

const seconds = (time) => time.match(/\d\d/g).reduce((sum, n) => sum * 60 + Number(n), 0);
const apart = (a, b) => (seconds(a) - seconds(b) + 86_400) % 86_400; // seconds, also at midnight

// point moves the mouse to a part of a chart's width.
async function point(page, chart, part) {
  const plot = page.locator('.u-over').nth(chart);
  await plot.scrollIntoViewIfNeeded();
  const { x, y, width, height } = await plot.boundingBox();
  await page.mouse.move(x + part * width, y + height / 2);
  return x + part * width;
}
// resized waits until the charts have the width of their panels.
const resized = (page) =>
  page.waitForFunction(() =>
    [...document.querySelectorAll('.chart')].every((c) => c.querySelector('.uplot').clientWidth === c.clientWidth),
  );
const line = (page, chart) =>
  page
    .locator('.u-cursor-x')
    .nth(chart)
    .evaluate((e) => e.getBoundingClientRect().left);

test('the mouse chooses a time, whose values all charts show', async () => {
  const page = await opened({ width: 1440 });
  assert.deepEqual(await tooltips(page), ['', '', '']);
  await page.locator('.chart').first().focus();
  await page.keyboard.press('End');
  const newest = await chosen(page);
  await page.keyboard.press('Escape');
  await none(page);
  let last;
  for (const [chart, part] of [
    [0, 0.2],
    [1, 0.5],
    [2, 0.68], // beats are refused
    [0, 0.9],
  ]) {
    const x = await point(page, chart, part);
    const time = (last = await chosen(page, last));
    assert.deepEqual(await tooltips(page), await stored(time));
    assert.ok(Math.abs((await line(page, chart)) - x) < 3, `the line at ${time} is not at the mouse`);
    assert.ok(Math.abs(apart(newest, time) - 3600 * (1 - part)) <= 20, `${time} at ${part} of the hour before ${newest}`);
    assert.equal(await visible(page, '.u-cursor-pt'), 3);
  }
  await page.mouse.move(5, 5);
  await none(page);
  assert.equal(await visible(page, '.u-cursor-x, .u-cursor-pt'), 0);
  await fine(page);
});

test('arrow keys, Home and End choose a time, Escape ends this; the chart that has the focus is spoken', async () => {
  const page = await opened();
  const spoken = () => page.locator('.chart').evaluateAll((all) => all.map((c) => c.querySelector('.tooltip').getAttribute('aria-live')));
  await press(page, `${labels[0]}: arrow keys choose a time`, 'ArrowLeft');
  const newest = await chosen(page);
  assert.deepEqual(await spoken(), ['polite', 'off', 'off']);
  let before = newest;
  const after = async (key) => {
    await page.keyboard.press(key);
    return (before = await chosen(page, before));
  };
  const times = (await steps()).map(timeOf), // a step without a report is missing
    last = times.indexOf(newest);
  assert.equal(await after('ArrowLeft'), times[last - 1]);
  assert.equal(await after('ArrowLeft'), times[last - 2]);
  assert.equal(await after('ArrowRight'), times[last - 1]);
  const oldest = await after('Home');
  assert.ok(apart(newest, oldest) > 3500 && apart(newest, oldest) < 3600, `from ${oldest} to ${newest}`);
  await page.keyboard.press('ArrowLeft'); // nothing is older
  assert.equal(await after('ArrowRight'), times[times.indexOf(oldest) + 1]);
  for (let i = 0; i < 20; i++) await page.keyboard.press('ArrowRight'); // the server forgets the oldest steps
  const later = await after('ArrowRight');
  assert.equal(later, times[times.indexOf(oldest) + 22]);
  assert.deepEqual(await tooltips(page), await stored(later));
  assert.equal(await after('End'), newest);
  await page.keyboard.press('ArrowRight'); // nothing is newer
  assert.equal(await after('ArrowLeft'), times[last - 1]);

  const [previous] = await tooltips(page);
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.ariaLabel), `${labels[1]}: arrow keys choose a time`);
  await page.waitForFunction(() => document.activeElement.querySelector('.tooltip').getAttribute('aria-live') === 'polite');
  assert.deepEqual(await spoken(), ['off', 'polite', 'off']);
  assert.equal((await tooltips(page))[0], previous, 'another chart shows another time');
  const described = await page.evaluate(() => document.getElementById(document.activeElement.getAttribute('aria-describedby')).textContent);
  assert.equal(described, (await tooltips(page))[1]);
  assert.equal(await page.locator('[role=img] .tooltip').count(), 0, 'screen readers skip what is in an image');
  assert.deepEqual(await axeViolations(page), []);
  await page.keyboard.press('Escape');
  await none(page);
  await page.keyboard.press('ArrowRight');
  assert.equal(await chosen(page), newest);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab'); // leaves the charts
  await none(page);
  await end(page);
});

test('the chosen time stays when newer values arrive, in another theme and in a narrower window', async () => {
  const page = await opened({ live: true, width: 1440 });
  await page.locator('.chart').first().focus();
  await page.keyboard.press('Home');
  for (let i = 0; i < 60; i++) await page.keyboard.press('ArrowRight');
  const time = await chosen(page);
  const shown = await tooltips(page);
  const x = await line(page, 1);
  await page.waitForFunction((x) => document.querySelectorAll('.u-cursor-x')[1].getBoundingClientRect().left < x, x); // a step later
  assert.deepEqual(await tooltips(page), shown);
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.waitForFunction(() => document.documentElement.dataset.theme === 'dark');
  await page.setViewportSize({ width: 390, height: 844 });
  await resized(page);
  assert.equal(await chosen(page), time);
  assert.equal(await visible(page, '.u-cursor-x'), 3);
  await page.waitForFunction(() => {
    const [line, tip] = ['.u-cursor-x', '.tooltip'].map((s) => document.querySelector(s).getBoundingClientRect());
    return tip.left > line.left && tip.left < line.left + 15;
  });
  await fine(page);
});

test('one control sets the range of all charts, which is in the address and in the summaries', async () => {
  const page = await opened();
  const pressed = () => page.locator('[aria-label="Time range of the charts"] [aria-pressed=true]').allTextContents();
  const span = async () => {
    await page.locator('.chart').first().focus();
    await page.keyboard.press('End');
    const newest = await chosen(page);
    await page.keyboard.press('Home');
    return apart(newest, await chosen(page, newest));
  };
  const all = (words) =>
    page.waitForFunction(
      (words) => [...document.querySelectorAll('.chart [role=img]')].every((e) => e.ariaLabel.endsWith(`in the last ${words}`)),
      words,
    );
  assert.deepEqual(await pressed(), ['1 h']);
  for (const [i, s] of (await summaries(page)).entries())
    assert.match(s, new RegExp(`^${labels[i]}\\. \\S+: now .*, at most [\\d,.]+ in the last hour$`));
  await press(page, '15 min');
  await all('15 minutes');
  assert.match(page.url(), /#\/\?range=15m$/);
  assert.deepEqual(await pressed(), ['15 min']);
  const short = await span();
  assert.ok(short > 870 && short < 900, `${short} s are shown`);
  const x = await point(page, 0, 0.5);
  const middle = await chosen(page);
  assert.deepEqual(await tooltips(page), await stored(middle));
  assert.ok(Math.abs((await line(page, 0)) - x) < 3, 'the line is not at the mouse');
  await page.mouse.move(5, 5);
  await page.reload();
  await page.waitForSelector('.chart');
  await all('15 minutes');
  assert.deepEqual(await pressed(), ['15 min']);
  await page.getByRole('button', { name: '1 h', exact: true }).click();
  await all('hour');
  assert.match(page.url(), /#\/$/);
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  const long = await span();
  assert.ok(long > 3500 && long < 3600, `${long} s are shown`);
  await fine(page);
});

test('the tooltips stay within their charts and clear of the chosen time, at each width and in each theme', async () => {
  const page = await opened({ width: 390, height: 844, path: '?range=15m' });
  for (const [width, theme] of [
    [390, 'light'],
    [390, 'dark'],
    [900, 'dark'], // the narrowest charts
  ]) {
    await page.setViewportSize({ width, height: 844 });
    await page.emulateMedia({ colorScheme: theme });
    await page.waitForFunction((theme) => document.documentElement.dataset.theme === theme, theme);
    await resized(page);
    for (const [chart, part] of [0.02, 0.35, 0.48, 0.52, 0.65, 0.98].entries()) {
      await point(page, chart % 3, part);
      const time = await chosen(page);
      const wrong = await page.locator('.chart').evaluateAll((all) =>
        all.flatMap((c) => {
          const [box, tip, line] = [c, c.querySelector('.tooltip'), c.querySelector('.u-cursor-x')].map((e) => e.getBoundingClientRect());
          const inside = tip.left >= box.left && tip.right <= box.right && tip.top >= box.top && tip.bottom <= box.bottom;
          return inside && (tip.left > line.right || tip.right < line.left) ? [] : [JSON.stringify({ box, tip, line })];
        }),
      );
      assert.deepEqual(wrong, [], `${width} px, ${theme}, ${time}`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width} px scroll sideways`);
    }
    assert.deepEqual(await axeViolations(page), [], `${width} px, ${theme}`);
  }
  await end(page);
});
