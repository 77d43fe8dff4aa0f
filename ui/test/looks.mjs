import { settled } from './browser.mjs';

// The pages of which looks.test.mjs compares pictures, and when each is complete.
export const widths = [
  [1440, 1000],
  [1024, 1000],
  [390, 1400],
];
export const themes = ['light', 'dark'];

export const looks = ({ failed }) => [
  { name: 'overview', title: 'Overview', path: '', done: drawn },
  { name: 'tasks', title: 'Tasks', path: 'tasks', prepare: selectRows, done: listed },
  { name: 'task', title: `Task ${failed}`, path: `tasks/${failed}`, done: listed },
  { name: 'pulse', title: 'Pulse', path: 'pulse', done: whole },
  { name: 'queues', title: 'Queues', path: 'queues', done: listed },
];

// ready waits until a page has replaced the one before it, and shows all that was read.
export async function ready(page, { title, done, prepare }) {
  await page.waitForFunction((t) => document.querySelector('main h1')?.textContent === t, title);
  await page.waitForFunction(done);
  await settled(page);
  await page.waitForSelector('.st-Live');
  await prepare?.(page);
}

const listed = () => document.querySelector('main tbody tr') !== null;
const drawn = () => {
  const charts = [...document.querySelectorAll('.chart [role=img]')].map((c) => c.getAttribute('aria-label'));
  return charts.length === 3 && charts.some((c) => /most [1-9]/.test(c)) && document.querySelector('main .healthy') !== null;
};
const whole = () => {
  const status = document.querySelector('main [role=status]')?.textContent;
  return /^\d+ workers/.test(status) && document.querySelector('.picture canvas').width > 100;
};

async function selectRows(page) {
  const boxes = page.locator('tbody input[type=checkbox]');
  for (const i of [0, 2]) await boxes.nth(i).check();
  await page.waitForSelector('.actbar');
  await page.mouse.move(0, 0);
}
