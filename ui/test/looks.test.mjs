// Pages look as they did: pictures of a still deployment are compared with those of test/looks, at three widths, light and dark.
// After an intended change `UPDATE=1 node --test test/looks.test.mjs` stores the new ones; look at their difference before.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { launch, show, visit } from './browser.mjs';
import { looks, ready, themes, widths } from './looks.mjs';
import { pictures } from './pictures.mjs';
import { answers, oneFont, serve, stopped } from './still.mjs';

const update = process.env.UPDATE === '1';
const folder = process.env.LOOKS ?? join(tmpdir(), 'lubdub-looks');
let still, font, browser, compared;

before(async () => {
  still = await serve();
  font = oneFont();
  browser = await launch({ env: font.env, args: still.args });
  compared = await pictures(browser);
});
after(async () => {
  await browser?.close();
  font?.remove();
  still?.close();
});

// photo returns a picture once two in a row are the same: then nothing is drawn any more.
async function photo(page) {
  const take = async () => (await page.screenshot({ animations: 'disabled', caret: 'hide', scale: 'css' })).toString('base64');
  let last = await take();
  for (let i = 0; i < 20; i++) {
    const next = await take();
    if (next === last) return last;
    last = next;
  }
  throw new Error('20 pictures in a row differ');
}

test('at 390 px a message does not cover the actions of a list', async () => {
  const page = await visit(browser, still, still.token, { width: 390, height: 844, watch: stopped(still.now) });
  const tasks = looks(still).find((look) => look.name === 'tasks');
  await show(page, tasks.path);
  await ready(page, tasks);
  await page.locator('tbody tr').first().focus();
  await page.keyboard.press('c');
  await page.waitForSelector('.toast p');
  const box = (selector) => page.locator(selector).boundingBox();
  const [message, bar] = [await box('.toast'), await box('.actbar')];
  assert.ok(bar.y + bar.height <= 844 && bar.y > 700, `the actions are not at the end of the window: ${JSON.stringify(bar)}`);
  assert.ok(message.y + message.height <= bar.y, JSON.stringify({ message, bar }));
  assert.ok(message.y >= 0 && message.x >= 0 && message.x + message.width <= 390, JSON.stringify(message));
  await page.context().close();
});

for (const theme of themes)
  for (const [width, height] of widths)
    test(`at ${width} px in ${theme} pages look as before`, async () => {
      const page = await visit(browser, still, still.token, { width, height, theme, watch: stopped(still.now) });
      const changed = [];
      for (const look of looks(still)) {
        const name = `${look.name}-${width}-${theme}`,
          file = join(dirname(answers), `${name}.png`);
        await show(page, look.path);
        await ready(page, look);
        const png = await photo(page);
        const how = await compared.compare(file, png, folder, name);
        if (how && update) await compared.save(file, png);
        else if (how) changed.push(`${name}: ${how}`);
      }
      assert.deepEqual([...still.unknown], [], 'requests without a recorded answer: run make record-looks');
      assert.deepEqual(await page.wrong(), []);
      await page.context().close();
      assert.deepEqual(changed, [], `the pictures are in ${folder}; if this is intended: UPDATE=1 node --test test/looks.test.mjs`);
    });
