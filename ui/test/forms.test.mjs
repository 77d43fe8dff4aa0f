// The forms that create and edit objects, done with the keyboard alone.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { axeViolations, launch, press, show, visit } from './browser.mjs';
import { mint, open, until } from './stage.mjs';
import { headed, tabTo, fill, texts, refused, lose, inZone, gone } from './typing.mjs';

const scope = { tenantId: 'acme', workspaceId: 'prod' },
  at = 'tenantId=acme&workspaceId=prod';
let stage, browser, receiver, hook;

before(async () => {
  receiver = http.createServer((req, res) => {
    req.resume();
    res.statusCode = req.url === '/teapot' ? 418 : 200;
    res.end(`answer to ${req.url}`);
  });
  await new Promise((r) => receiver.listen(0, '127.0.0.1', r));
  hook = `http://127.0.0.1:${receiver.address().port}`;
  [stage, browser] = await Promise.all([open({ fleet: false, tenants: [] }), launch()]);
});
after(async () => {
  receiver?.close();
  await browser?.close();
  await stage?.close();
});

const read = (path) => stage.call('GET', `${path}?${at}`);
const as = (role, more = {}) => visit(browser, stage, mint(role, scope.tenantId, scope.workspaceId, more.subject), more);
const fine = async (page) => {
  assert.deepEqual(await page.wrong(), []);
  await page.context().close();
};

test('a task is created exactly as entered, and a repeated submit creates no second one', async () => {
  const page = await as('submitter');
  page.tolerated.push(400);
  await show(page, 'tasks');
  await press(page, 'Create task');
  await headed(page, 'Create task');

  await fill(page, { Queue: 'mail', 'Payload, JSON': '{"to": "ann"' });
  let r = await refused(page, 'Create task');
  assert.equal(r.field, 'f-payload');
  await press(page, /^Payload, JSON: /); // in the summary
  await page.waitForFunction(() => document.activeElement.id === 'f-payload');
  await fill(page, { 'Payload, JSON': '{"to": ["ann", "bob"], "pi": 3.14159, "big": 12345678901234567890}', Queue: 'no such queue' });
  r = await refused(page, 'Create task');
  assert.equal(r.field, 'f-queue');
  assert.match(r.error, /queue/);
  assert.equal((await read('tasks')).totalCount, 0);

  await fill(page, {
    Queue: 'mail',
    Type: 'send_email',
    'Delay, seconds': '1.5',
    Labels: 'team=core\nnote=a=b, c',
    More: '',
    'Attempts that may fail': '7',
    'Run timeout, seconds': '90',
    Run: 'run_of_ann',
    'Task id': 'task_by_hand',
    'Other fields, JSON': '{"retry": {"multiplier": 3}, "cancelGracePeriodMs": 5000}',
  });
  const cli = await page.textContent('.cli code');
  assert.match(cli, /^printf %s '\{.*"queue":"mail".*\}' \| lubdub task create --file=- --key [0-9a-f]{32} --server /);
  const answer = await lose(page, '**/v1/tasks');
  r = await refused(page, 'Create task');
  assert.match(r.summary, /cannot be reached/);
  assert.match(answer(), /task_by_hand/);

  await show(page, 'queues'); // what was typed is kept
  await show(page, 'task-form');
  await page.getByText('This is what you entered before.').waitFor();
  await press(page, 'Create task');
  await headed(page, 'Task task_by_hand');
  const { tasks } = await read('tasks');
  assert.equal(tasks.length, 1);
  const t = await read('tasks/task_by_hand');
  const headers = { Authorization: 'Bearer ' + stage.admin };
  const stored = await (await fetch(`${stage.base}/v1/tasks/task_by_hand?${at}`, { headers })).text();
  assert.ok(stored.includes('"payload":{"to":["ann","bob"],"pi":3.14159,"big":12345678901234567890}'), stored);
  assert.deepEqual(t.labels, { team: 'core', note: 'a=b, c' });
  assert.deepEqual(
    [t.queue, t.type, t.runId, t.retry.maxAttempts, t.retry.multiplier, t.runTimeoutMs, t.cancelGracePeriodMs],
    ['mail', 'send_email', 'run_of_ann', 7, 3, 90_000, 5000],
  );
  assert.equal(Date.parse(t.runAt) - Date.parse(t.createdAt), 1500);
  await show(page, 'task-form');
  assert.equal(await page.inputValue('#f-queue'), '');

  await fill(page, { Queue: 'mail' });
  await tabTo(page, 'Run at, UTC');
  await page.keyboard.type('0115');
  r = await refused(page, 'Create task');
  assert.equal(r.field, 'f-runAt');
  await tabTo(page, 'Run at, UTC');
  const later = new Date().getUTCFullYear() + 1;
  await page.keyboard.type(`0115${later}`);
  await page.keyboard.press('ArrowRight');
  await page.keyboard.type('100030AM');
  await press(page, 'Create task');
  await page.waitForFunction(() => /^Task task_/.test(document.activeElement.textContent));
  const id = (await page.textContent('h1')).replace('Task ', '');
  assert.equal((await read('tasks/' + id)).runAt, `${later}-01-15T10:00:30.000Z`);
  await fine(page);
});

test('a schedule is created and changed; its next fires follow the typing, in both time zones', async () => {
  const page = await as('operator');
  page.tolerated.push(400, 409);
  await inZone(page, 'Asia/Tokyo');
  await show(page, 'schedules');
  await page.getByText('A schedule creates a task at each of its times.').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Create schedule' }).count(), 2);
  assert.deepEqual(await axeViolations(page), []);
  await press(page, 'Create schedule');
  await headed(page, 'Create schedule');
  const next = page.locator('.next'),
    shows = (text) => next.getByText(text).first().waitFor();
  await fill(page, { 'Schedule id': 'report', 'Cron expression, in UTC': '30 9 * * MON' });
  await shows(/09:30:00 UTC · Mon 18:30:00/);
  await shows('in UTC and in Asia/Tokyo');
  assert.equal(await next.locator('li').count(), 5);
  await page.keyboard.press('Backspace');
  await page.keyboard.press('Backspace');
  await page.keyboard.press('Backspace');
  await page.keyboard.type('MOO');
  await shows(/MOO/);
  assert.equal(await next.locator('li').count(), 0);
  let r = await refused(page, 'Create schedule');
  assert.equal(r.field, 'f-task-queue'); // it is required, which the page finds
  await fill(page, { Queue: 'reports' });
  r = await refused(page, 'Create schedule');
  assert.equal(r.field, 'f-cron');
  assert.match(r.error, /MOO/);
  await fill(page, {
    'Cron expression, in UTC': '15 0 12 1 * ?',
    'Missed fires that are caught up': '3',
    Type: 'monthly',
    'Payload, JSON': '[1, null, "x"]',
    More: '',
    'Start timeout, seconds': '20',
  });
  await shows(/-01 12:00:15 UTC · \w+ 21:00:15/);
  const answer = await lose(page, '**/v1/schedules');
  r = await refused(page, 'Create schedule');
  assert.match(r.summary, /cannot be reached/);
  assert.match(answer(), /report/);
  r = await refused(page, 'Create schedule');
  assert.match(r.summary, /A schedule with this id exists in this workspace/);
  const { schedules } = await read('schedules');
  assert.equal(schedules.length, 1);
  const s = await read('schedules/report');
  assert.deepEqual(
    [s.cron, s.overlap, s.maxCatchup, s.task.queue, s.task.type, s.task.payload, s.task.startTimeoutMs],
    ['15 0 12 1 * ?', 'allow', 3, 'reports', 'monthly', [1, null, 'x'], 20_000],
  );

  await show(page, 'schedules/report');
  await press(page, 'Edit');
  await headed(page, 'Edit schedule report');
  await page.waitForSelector('#f-cron');
  assert.equal(JSON.parse(await page.inputValue('#f-task-payload'))[2], 'x');
  await stage.call('PATCH', `schedules/report?${at}`, { maxCatchup: 5 });
  await fill(page, { 'Cron expression, in UTC': '0 0 6 * * ?', Type: 'daily' });
  const [, body] = /^printf %s '(.*)' \| lubdub schedule set report --file=- /.exec(await page.textContent('.cli code'));
  assert.deepEqual(Object.keys(JSON.parse(body)).sort(), ['cron', 'task']);
  await shows(/06:00:00 UTC/);
  await press(page, 'Save');
  await headed(page, 'Schedule report');
  let now = await read('schedules/report');
  assert.deepEqual([now.cron, now.maxCatchup, now.task], ['0 0 6 * * ?', 5, { ...s.task, type: 'daily' }]);

  await show(page, 'schedule-form/report'); // others change the same field meanwhile
  await page.waitForSelector('#f-cron');
  await stage.call('PATCH', `schedules/report?${at}`, { cron: '0 0 7 * * ?' });
  await fill(page, { 'Cron expression, in UTC': '0 0 8 * * ?' });
  r = await refused(page, 'Save');
  assert.match(r.summary, /cron also changed at .* UTC, after you opened this form/);
  assert.equal((await read('schedules/report')).cron, '0 0 7 * * ?');
  await press(page, 'Save');
  await headed(page, 'Schedule report');
  now = await read('schedules/report');
  assert.equal(now.cron, '0 0 8 * * ?');
  await fine(page);
});

test('a webhook is created, its secret is shown once, its test delivery is answered, and it is changed', async () => {
  const page = await as('operator');
  page.tolerated.push(400);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: stage.origin });
  await show(page, 'webhooks');
  await page.getByText('A webhook posts events to a URL of yours.').waitFor();
  await press(page, 'Create webhook');
  await headed(page, 'Create webhook');
  await fill(page, { 'Webhook id': 'alerts', URL: 'ftp://example.com', Events: 'task.failed worker.*', Description: 'for ann' });
  const r = await refused(page, 'Create webhook');
  assert.equal(r.field, 'f-url');
  await fill(page, { URL: hook + '/teapot', More: '', Queue: 'mail' });
  await press(page, 'Create webhook');
  await headed(page, 'Created webhook alerts');
  const w = await read('webhooks/alerts');
  assert.deepEqual(
    [w.url, w.events, w.description, w.queue, w.enabled],
    [hook + '/teapot', ['task.failed', 'worker.*'], 'for ann', 'mail', true],
  );
  const secret = await page.inputValue('#secret');
  assert.match(secret, /^whsec_/);
  await page.getByText('It will not be shown again.').waitFor();
  assert.deepEqual(await axeViolations(page), []);
  await press(page, 'Copy');
  await page.locator('.toast', { hasText: 'Copied the secret.' }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);

  await press(page, 'Send a test', 'Enter', 'Shift+Tab');
  await page.waitForSelector('dialog button[type=submit]:not([disabled])');
  await press(page, 'Send a test');
  const answer = page.getByRole('status', { name: 'Answer to the test' });
  await answer.getByText('answer to /teapot').waitFor();
  assert.deepEqual(await axeViolations(page), []);
  assert.match(await answer.textContent(), /Status418Latency\d+ ms/);

  await show(page, 'webhooks/alerts');
  await gone(page, secret);
  await press(page, 'Edit');
  await headed(page, 'Edit webhook alerts');
  await page.waitForSelector('#f-url');
  assert.equal(await page.inputValue('#f-url'), hook + '/teapot');
  await stage.call('PUT', `webhooks/alerts?${at}`, { url: w.url, events: ['queue.*'], description: 'for ann', queue: 'mail' });
  await fill(page, { URL: hook + '/fine', Description: '' });
  await tabTo(page, 'Enabled');
  await page.keyboard.press('Space');
  await press(page, 'Save');
  await headed(page, 'Webhook alerts');
  const changed = await read('webhooks/alerts');
  assert.deepEqual(
    [changed.url, changed.events, changed.description ?? '', changed.queue, changed.enabled],
    [hook + '/fine', ['queue.*'], '', 'mail', false],
  );
  await fine(page);
});

test('a token is made with no more rights, is shown once, and works until it is revoked', async () => {
  const maker = await as('operator', { subject: 'ann' });
  maker.tolerated.push(400);
  await show(maker, 'tokens');
  const offered = await maker.locator('#f-role option').allTextContents();
  assert.deepEqual(
    offered.map((o) => o.split(':')[0]),
    ['viewer', 'operator'],
  );
  const no = await maker.locator('button:has-text("Revoke")').getAttribute('title');
  assert.match(no, /^The role operator may not do this; it takes admin\.$/);
  await fill(maker, { 'Lifetime, seconds': '999999999' });
  const r = await refused(maker, 'Make token');
  assert.equal(r.field, 'f-ttlMs');
  await fill(maker, { 'Lifetime, seconds': '600' });
  await press(maker, 'Make token');
  await maker.waitForFunction(() => document.activeElement.id === 'secret');
  const token = await maker.inputValue('#secret');
  assert.deepEqual(await axeViolations(maker), []);
  const claims = JSON.parse(Buffer.from(token.split('.')[1], 'base64url'));
  assert.deepEqual([claims.rol, claims.ten, claims.wsp, claims.sub], ['viewer', 'acme', 'prod', 'ann']);
  assert.ok(Math.abs(claims.exp - Date.now() / 1000 - 600) < 120, JSON.stringify(claims));
  await stage.call('GET', 'tasks', undefined, token);
  await show(maker, 'webhooks');
  await show(maker, 'tokens');
  await maker.waitForSelector('#f-role');
  await gone(maker, token);
  await fine(maker);

  const admin = await as('admin', { subject: 'boss' });
  admin.tolerated.push(400);
  await show(admin, 'tokens');
  await fill(admin, { Subject: 'boss' });
  await admin.getByText('This is your own subject: you will be signed out').waitFor();
  await refusesBoth(admin);
  await fill(admin, { Subject: 'ann', Worker: '' });
  assert.match(await admin.locator('.cli code').last().textContent(), /^lubdub token revoke --subject ann --server /);
  await press(admin, 'Revoke');
  await admin.getByText('Revoked the tokens of ann in acme / prod').waitFor();
  await until('it is rejected', () =>
    stage.call('GET', 'tasks', undefined, token).then(
      () => false,
      (e) => /: 401 /.test(e.message),
    ),
  );
  await fine(admin);
});

// refusesBoth: the API takes a subject or a worker.
async function refusesBoth(page) {
  await fill(page, { Worker: 'wkr_1' });
  const typed = await texts(page);
  await press(page, 'Revoke');
  await page.waitForFunction(() => document.activeElement?.matches('.form .failed'));
  assert.deepEqual(await texts(page), typed);
}

test('a viewer sees what it may not do, with the roles that may', async () => {
  const page = await as('viewer');
  for (const [path, label, roles] of [
    ['tasks', 'Create task', 'submitter, dispatcher or admin'],
    ['schedules', 'Create schedule', 'operator, dispatcher or admin'],
    ['webhooks', 'Create webhook', 'operator, dispatcher or admin'],
    ['schedules/report', 'Edit', 'operator, dispatcher or admin'],
    ['webhooks/alerts', 'Edit', 'operator, dispatcher or admin'],
    ['tokens', 'Revoke', 'admin'],
  ]) {
    await show(page, path);
    const button = page.locator(`main button[aria-disabled=true]:has-text("${label}")`).first();
    await button.waitFor();
    assert.deepEqual(await axeViolations(page), []);
    assert.equal(await button.getAttribute('title'), `The role viewer may not do this; it takes ${roles}.`);
    const before = page.url();
    await press(page, new RegExp(`^${label}`));
    assert.equal(page.url(), before);
    assert.ok((await page.textContent('main')).includes(`it takes ${roles}.`));
  }
  for (const path of ['task-form', 'schedule-form', 'webhook-form', 'schedule-form/report']) {
    await show(page, path);
    await page.getByText('Not allowed.').waitFor();
    assert.equal(await page.locator('main input').count(), 0);
  }
  await fine(page);
});

test('forms fit the window, in both themes', async () => {
  for (const theme of ['light', 'dark'])
    for (const width of [1440, 390]) {
      const page = await as('admin', { width, height: 844, theme });
      page.tolerated.push(400);
      for (const [path, verb] of [
        ['task-form', 'Create task'],
        ['schedule-form', 'Create schedule'],
        ['schedule-form/report', ''],
        ['webhook-form', 'Create webhook'],
        ['webhook-form/alerts', ''],
        ['tokens', 'Revoke'],
      ]) {
        await show(page, path);
        await page.waitForSelector('.form');
        if (verb) await refused(page, verb);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${path} at ${width} px is ${wide} px too wide`);
        assert.deepEqual(await axeViolations(page), [], `${path} at ${width} px in ${theme}`);
        if (process.env.SHOTS)
          await page.screenshot({ path: `${process.env.SHOTS}/${path.replace('/', '-')}-${width}-${theme}.png`, fullPage: true });
      }
      await fine(page);
    }
});
