// Sign-in with an OpenID provider, which is a process of its own: in the dashboard, with the command line, and with tokens that must not
// be accepted.
import assert from 'node:assert/strict';
import { createSign, generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { axeViolations, launch, patience } from './browser.mjs';
import { freePort, open, root, until } from './stage.mjs';

const folder = mkdtempSync(join(tmpdir(), 'lubdub-signin-'));
const at = 'tenantId=acme&workspaceId=prod';
let stage, browser, port, issuer, key;

const newKey = (kid) => ({ kid, ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) });

// run starts a program and collects its output.
function run(command, args, env) {
  const child = spawn(command, args, { env: { ...process.env, ...env } });
  child.text = '';
  for (const out of [child.stdout, child.stderr]) out.on('data', (d) => (child.text += d));
  child.ended = new Promise((r) => child.on('exit', r));
  return child;
}

// startIssuer starts the provider, which signs with a key.
async function startIssuer(of) {
  key = of;
  const file = join(folder, 'keys.json');
  writeFileSync(file, JSON.stringify({ keys: [{ ...of.privateKey.export({ format: 'jwk' }), kid: of.kid, use: 'sig', alg: 'ES256' }] }));
  const child = run(process.execPath, [join(root, 'ui/test/issuer.mjs'), String(port), file]);
  await until('the provider is ready', () => child.text.includes('ready'));
  return child;
}

async function stopIssuer() {
  issuer.kill('SIGKILL');
  await issuer.ended;
}

const base64url = (of) => Buffer.from(of).toString('base64url');

// forge returns a token of ann that is valid for a day, with changes.
function forge({ header = {}, claims = {}, by = key } = {}) {
  const now = Math.floor(Date.now() / 1000);
  const body = [
    { alg: 'ES256', kid: by.kid, ...header },
    {
      iss: `http://127.0.0.1:${port}`,
      aud: 'lubdub',
      sub: 'ann',
      email: 'ann@example.com',
      groups: ['platform'],
      iat: now,
      exp: now + 86_400,
      ...claims,
    },
  ]
    .map((part) => base64url(JSON.stringify(part)))
    .join('.');
  return `${body}.${base64url(createSign('SHA256').update(body).sign({ key: by.privateKey, dsaEncoding: 'ieee-p1363' }))}`;
}

const status = async (token) => {
  const res = await fetch(`${stage.base}/v1/tasks?${at}`, { headers: { Authorization: 'Bearer ' + token } });
  await res.text();
  return res.status;
};

before(async () => {
  port = await freePort();
  issuer = await startIssuer(newKey('first'));
  const file = join(folder, 'oidc.yaml');
  writeFileSync(
    file,
    `issuer: http://127.0.0.1:${port}
clientId: lubdub
idleTimeout: 30m
grants:
  - {claim: groups, value: platform, role: admin, tenant: "*", workspace: "*"}
  - {claim: email, value: bob@example.com, role: viewer, tenant: acme, workspace: prod}
`,
  );
  stage = await open({ fleet: false, tenants: ['acme'], with: ['--oidc-file', file] });
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await stage?.close();
  issuer?.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

// newContext returns a browser context, and what the dashboard's pages do wrong. The provider's own pages may ask other hosts for fonts.
async function newContext() {
  const context = await browser.newContext();
  context.setDefaultTimeout(patience);
  await context.route(
    (url) => url.hostname !== '127.0.0.1',
    (route) => route.abort(),
  );
  const wrong = [];
  context.on('page', (page) => {
    page.on('console', (m) => m.type() === 'error' && page.url().startsWith(stage.base) && wrong.push(m.text()));
    page.on('pageerror', (e) => wrong.push(e.message));
  });
  return { context, wrong };
}

// confirm signs a person in at the provider and consents to everything that it asks.
async function confirm(page, name, until) {
  for (;;) {
    await page.waitForLoadState();
    if (await until()) return;
    if (await page.locator('input[name=login]').count()) {
      await page.fill('input[name=login]', name);
      await page.fill('input[name=password]', 'x');
    }
    await page.locator('button[type=submit]').first().click();
  }
}

// signIn signs a person in to the dashboard.
async function signIn(page, name, path = '') {
  await page.goto(`${stage.base}/ui/#/${path}`);
  await page.getByRole('button', { name: `Sign in with 127.0.0.1:${port}` }).click();
  await page.waitForURL((url) => url.port === String(port));
  await confirm(page, name, () => page.url().startsWith(stage.base));
}

const tokenOf = (page) => page.evaluate(() => JSON.parse(sessionStorage.getItem('lubdub.session')).token);
const signedIn = (page) => page.getByRole('button', { name: 'Sign out' }).waitFor();
const signedOut = (page) => page.getByRole('button', { name: 'Sign in with this token' }).waitFor();

// cli runs the command line with a home of its own.
const cli = (...args) => run(join(root, 'bin/lubdub'), args, { HOME: folder, XDG_CONFIG_HOME: folder, LUBDUB_URL: '', LUBDUB_TOKEN: '' });
const contexts = () => readFileSync(join(folder, 'lubdub/contexts.yaml'), 'utf8');
let firstContexts;

test('the command line signs in by a code, and what it does is done by the person', async () => {
  const { context, wrong } = await newContext();
  const login = cli('login', 'ours', '--server', stage.base);
  const [, address] = await until('it prints an address', () => /Open (\S+) and confirm/.exec(login.text));
  const page = await context.newPage();
  await page.goto(address);
  await confirm(page, 'ann', async () => (await page.textContent('body')).includes('Sign-in Success'));
  assert.equal(await login.ended, 0, login.text);
  assert.match(login.text, /Signed in to \S+ as ann@example.com, with the role admin\. Commands use the context ours\./);
  firstContexts = contexts();
  assert.doesNotMatch(login.text, /eyJ/);
  const pause = cli('queue', 'pause', 'mail', '--tenant', 'acme', '--workspace', 'prod');
  assert.equal(await pause.ended, 0, pause.text);
  const { events } = await stage.call('GET', `events?${at}&type=queue.paused`);
  assert.deepEqual(
    events.map((e) => e.by),
    ['ann@example.com'],
  );
  await context.close();
  assert.deepEqual(wrong, []);
});

test('a person signs in to the dashboard, in all its tabs, and stays signed in', async () => {
  const { context, wrong } = await newContext();
  const page = await context.newPage();
  await page.goto(`${stage.base}/ui/`);
  await page.getByRole('button', { name: `Sign in with 127.0.0.1:${port}` }).waitFor();
  assert.deepEqual(await axeViolations(page), []);
  await signIn(page, 'ann', 'workers');
  await signedIn(page);
  assert.equal(new URL(page.url()).search, '', 'the code stays in the address');
  assert.match(page.url(), /#\/workers$/, 'it leads to another page than was asked for');
  assert.equal(await page.getByTitle('signed in as ann@example.com').textContent(), 'admin');

  const other = await context.newPage();
  await other.goto(`${stage.base}/ui/#/tasks`);
  await signedIn(other);
  const before = await tokenOf(page);
  assert.equal(await tokenOf(other), before);
  await until('the session is renewed', async () => (await tokenOf(page)) !== before);
  await until('the other tab has the new token', async () => (await tokenOf(other)) === (await tokenOf(page)));
  await page.close();
  const next = await tokenOf(other);
  // The provider is not found once, and the server rejects the token, as after this host has slept.
  await other.route('**/ui/oidc.json', (route) => route.abort(), { times: 1 });
  await other.route('**/v1/tasks?*', (route) => route.fulfill({ status: 401, json: { error: 'unauthorized', message: 'expired' } }), {
    times: 1,
  });
  await until('the other tab renews it', async () => (await tokenOf(other)) !== next);
  await signedIn(other);
  await other.unrouteAll({ behavior: 'ignoreErrors' });

  const third = await context.newPage();
  await third.goto(`${stage.base}/ui/`);
  await signedIn(third);
  await third.getByRole('button', { name: 'Sign out' }).click();
  await signedOut(third);
  await signedOut(other);
  assert.equal(await other.evaluate(() => sessionStorage.length), 0);
  await context.close();
  assert.deepEqual(
    wrong.filter((text) => !/status of 401|ERR_FAILED/.test(text)),
    [],
  );
});

test('roles are granted by claims; a session without input ends; who has no role learns why', async () => {
  const bob = await newContext();
  const page = await bob.context.newPage();
  await page.clock.install();
  await signIn(page, 'bob');
  await signedIn(page);
  assert.equal(await page.getByTitle('signed in as bob@example.com').textContent(), 'viewer');
  const quiet = await bob.context.newPage();
  await quiet.goto(`${stage.base}/ui/`);
  await signedIn(quiet);
  await page.clock.fastForward('29:00'); // which renews the session, since its token has expired
  await page.keyboard.press('Shift');
  await page.clock.fastForward('29:00');
  await signedIn(page);
  await page.clock.fastForward('01:10');
  for (const one of [page, quiet]) await one.getByRole('alert').filter({ hasText: 'there was no input for 30 minutes' }).waitFor();
  await bob.context.close();

  const eve = await newContext();
  const strange = await eve.context.newPage();
  await signIn(strange, 'eve');
  await strange.getByRole('alert').filter({ hasText: 'eve@example.com has signed in, but has no access' }).waitFor();
  await eve.context.close();
});

test('the command line renews its token, and says what to do when it cannot', async () => {
  await until('the token is renewed', async () => {
    const ls = cli('worker', 'ls', '--tenant', 'acme', '--workspace', 'prod');
    assert.equal(await ls.ended, 0, ls.text);
    return contexts() !== firstContexts;
  });
  const file = join(folder, 'lubdub/contexts.yaml');
  writeFileSync(
    file,
    contexts()
      .replace(/token: eyJ.*/, 'token: expired')
      .replace(/refreshToken: .*/, 'refreshToken: none'),
  );
  const ls = cli('worker', 'ls', '--tenant', 'acme', '--workspace', 'prod');
  assert.notEqual(await ls.ended, 0);
  assert.match(ls.text, /cannot be renewed: .*Sign in again: lubdub login/s);
});

test('tokens that the provider did not issue for this server are refused, and its own are valid while it is down', async () => {
  const now = Math.floor(Date.now() / 1000);
  assert.equal(await status(forge()), 200);
  const stranger = { ...newKey('first') };
  const unsigned = forge({ header: { alg: 'none' } });
  for (const [what, token] of Object.entries({
    'no signature': unsigned.slice(0, unsigned.lastIndexOf('.') + 1),
    'alg none': unsigned,
    "another's key": forge({ by: stranger }),
    expired: forge({ claims: { exp: now - 1 } }),
    'another audience': forge({ claims: { aud: 'wiki' } }),
    'another issuer': forge({ claims: { iss: 'https://id.example.com' } }),
  }))
    assert.equal(await status(token), 401, what);

  const { context } = await newContext();
  const page = await context.newPage();
  await signIn(page, 'ann');
  await signedIn(page);

  await stopIssuer();
  assert.equal(await status(forge({ claims: { jti: 'while it is down' } })), 200);

  const old = key;
  issuer = await startIssuer(newKey('second'));
  await until('tokens with the new key are accepted', async () => (await status(forge())) === 200);
  const removed = forge({ by: old });
  await until('a key that the provider has removed is refused', async () => (await status(removed)) === 401);
  // It has forgotten its refresh tokens, too.
  await page.getByRole('alert').filter({ hasText: 'Your session has ended. Sign in again.' }).waitFor();
  await context.close();
});
