// What the tests of forms do with the keyboard alone.
import assert from 'node:assert/strict';
import { press } from './browser.mjs';

// headed waits for the page with this heading, which gets the focus.
export const headed = (page, text) =>
  page.waitForFunction((text) => document.activeElement.matches('h1') && document.activeElement.textContent === text, text);

// tabTo moves the focus to the field with this label, by Tab alone.
export async function tabTo(page, label) {
  for (let i = 0; i < 200; i++) {
    await page.keyboard.press('Tab');
    const found = await page.evaluate(() => {
      const e = document.activeElement;
      return (e?.labels?.[0]?.firstChild?.textContent ?? (e?.matches('summary') ? e.textContent : '')).trim();
    });
    if (found === label) return;
  }
  throw new Error(`Tab never reached ${label}`);
}

// fill replaces what is in the fields, by their labels.
export async function fill(page, fields) {
  for (const [label, text] of Object.entries(fields)) {
    await tabTo(page, label);
    if (label === 'More') await page.keyboard.press('Enter');
    else {
      await page.keyboard.press('Control+A');
      if (text) await page.keyboard.type(text);
      else await page.keyboard.press('Delete');
    }
  }
}

// texts returns what the form has in its fields.
export const texts = (page) =>
  page.evaluate(() => Object.fromEntries([...document.querySelectorAll('.form :is(input, select, textarea)')].map((e) => [e.id, e.value])));

// refused submits, and returns the summary, which has the focus, and the error at the one field that is wrong.
export async function refused(page, verb) {
  const typed = await texts(page);
  await press(page, verb);
  await page.waitForFunction(() => document.activeElement?.matches('.form .failed'));
  assert.deepEqual(await texts(page), typed, 'what was typed is lost');
  const summary = await page.textContent('.form .failed');
  const wrong = page.locator('[aria-invalid=true]');
  if ((await wrong.count()) !== 1) return { summary };
  const by = (await wrong.getAttribute('aria-describedby')).split(' ').find((id) => id.endsWith('-error'));
  return { summary, field: await wrong.getAttribute('id'), error: await page.textContent('#' + by) };
}

// lose lets the server's next answer to a request get lost. A browser reports this in its console.
export async function lose(page, path) {
  let lost;
  await page.route(path, async (route) => {
    if (lost) return route.continue();
    lost = await (await route.fetch()).text();
    await route.abort();
  });
  const { wrong } = page;
  page.wrong = async () => (await wrong()).filter((w) => !w.includes('net::ERR_FAILED'));
  return () => lost;
}

// inZone sets the time zone of a page.
export async function inZone(page, timezoneId) {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Emulation.setTimezoneOverride', { timezoneId });
  await page.reload();
}

// gone checks that a secret is neither in the page nor stored.
export const gone = async (page, secret) =>
  assert.equal(
    await page.evaluate(
      (secret) =>
        document.documentElement.outerHTML.includes(secret) ||
        [...document.querySelectorAll('input')].some((e) => e.value === secret) ||
        JSON.stringify([{ ...sessionStorage }, { ...localStorage }]).includes(secret),
      secret,
    ),
    false,
  );
