// What forms keep: what an edit does not touch, and what is typed while a request is under way.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, press, show, visit } from './browser.mjs';
import { mint, open, until } from './stage.mjs';
import { headed, fill, refused, lose } from './typing.mjs';

const scope = { tenantId: 'acme', workspaceId: 'prod' },
  at = 'tenantId=acme&workspaceId=prod';
let stage, browser;

before(async () => {
  [stage, browser] = await Promise.all([open({ fleet: false, tenants: [] }), launch()]);
});
after(async () => {
  await browser?.close();
  await stage?.close();
});

const as = (role) => visit(browser, stage, mint(role, scope.tenantId, scope.workspaceId));
const fine = async (page) => {
  assert.deepEqual(await page.wrong(), []);
  await page.context().close();
};

test('an edit sends back what was not touched as it was: numbers that a browser would change, and spaces in labels', async () => {
  const payload = '{"id":9007199254740993,"cost":[-0.1234567890123456789,1e400],"note":"say \\"12345678901234567890\\""}';
  const labels = { team: ' core ', note: 'a = b ', old: 'x' };
  const task = `{"queue":"mail","type":"x","payload":${payload},"labels":${JSON.stringify(labels)}}`;
  const exact = async (method, path, body) => {
    const headers = { Authorization: 'Bearer ' + stage.admin, 'Content-Type': 'application/json' };
    const res = await fetch(`${stage.base}/v1/${path}?${at}`, { method, headers, body });
    assert.ok(res.ok, `${res.status}`);
    return res.text();
  };
  await exact('POST', 'schedules', `{"scheduleId":"exact","cron":"0 0 3 * * *","task":${task}}`);
  const page = await as('operator');
  const edit = async (fields) => {
    await show(page, 'schedule-form/exact');
    await page.waitForSelector('#f-cron');
    await fill(page, fields);
  };
  await edit({ Type: 'y', Labels: 'team= core \nnote=a = b \n new = z ' });
  assert.ok((await page.textContent('.cli code')).includes('9007199254740993'));
  await press(page, 'Save');
  await headed(page, 'Schedule exact');
  assert.ok((await exact('GET', 'schedules/exact')).includes(`"payload":${payload}`), await exact('GET', 'schedules/exact'));
  const { task: stored } = await stage.call('GET', `schedules/exact?${at}`);
  assert.deepEqual([stored.type, stored.labels], ['y', { team: ' core ', note: 'a = b ', new: 'z' }]);

  await edit({ 'Payload, JSON': '{"id": 9007199254740995}' });
  await press(page, 'Save');
  await headed(page, 'Schedule exact');
  assert.ok((await exact('GET', 'schedules/exact')).includes('"payload":{"id":9007199254740995}'), await exact('GET', 'schedules/exact'));
  await page.waitForSelector('main pre:has-text("9007199254740995")');
  await fine(page);
});

test('what is typed while a request is under way stays after a mismatch of its Idempotency-Key', async () => {
  const page = await as('submitter');
  page.tolerated.push(409);
  await show(page, 'task-form');
  await fill(page, { Queue: 'mismatch', 'Payload, JSON': '1' });
  await lose(page, '**/v1/tasks');
  await refused(page, 'Create task');
  await page.unroute('**/v1/tasks');
  await fill(page, { 'Payload, JSON': '2' });
  let answer;
  await page.route('**/v1/tasks', async (route) => {
    const response = await route.fetch();
    await new Promise((r) => (answer = r));
    await route.fulfill({ response });
  });
  await press(page, 'Create task');
  await until('the server has answered', () => answer);
  await fill(page, { Type: 'typed meanwhile' });
  answer();
  await page.waitForFunction(() => document.activeElement?.matches('.form .failed'));
  assert.match(await page.textContent('.form .failed'), /An earlier submit, whose answer was lost, has created it with other fields/);
  assert.deepEqual([await page.inputValue('#f-payload'), await page.inputValue('#f-type')], ['2', 'typed meanwhile']);
  await page.unroute('**/v1/tasks');
  await fill(page, { Type: 'meanwhile' });
  await press(page, 'Create task');
  await page.waitForFunction(() => /^Task task_/.test(document.activeElement.textContent));
  const { tasks } = await stage.call('GET', `tasks?${at}&queue=mismatch`);
  assert.deepEqual(tasks.map((t) => t.type ?? 'none').sort(), ['meanwhile', 'none']);
  await fine(page);
});
