// Records the answers of a real server for looks.test.mjs into test/looks/answers.json: `make record-looks`.
import { writeFileSync } from 'node:fs';
import { launch, show, visit } from './browser.mjs';
import { looks, ready } from './looks.mjs';
import { answers, keyOf } from './still.mjs';
import { crowd, open, until } from './stage.mjs';

const stage = await open({ fleet: false, tenants: ['acme'] });
const browser = await launch();
try {
  const scope = stage.scopes.acme;
  // The page shows who is signed in, but nothing of it is verified: the server only replays.
  const part = (of) => Buffer.from(JSON.stringify(of)).toString('base64url');
  const claims = { rol: 'admin', ten: scope.tenantId, wsp: scope.workspaceId, sub: 'ada', exp: 4_000_000_000 };
  const token = [part({ alg: 'none' }), part(claims), 'x'].join('.');
  const recorded = {};
  await stage.call('POST', `tasks:batch?${scope.at}`, {
    tasks: Array.from({ length: 12 }, (_, i) => ({ queue: 'render', type: i % 3 ? 'frame' : 'preview', labels: { film: 'night' } })),
  });
  await crowd(stage, scope.at, 18, 4, (i) => ({ version: i % 3 ? '2.1.0' : '2.0.4' }));
  const state = () => stage.call('GET', `system?${scope.at}`);
  await until('a finding concerns the workers', async () =>
    (await state()).findings.some((f) => f.about === 'them' && f.severity === 'fail'),
  );
  const page = await visit(browser, stage, stage.admin, { scope });
  const kept = [];
  page.on('response', (r) => {
    if (/\/v1\//.test(r.url()) && r.headers()['content-type']?.startsWith('application/json'))
      kept.push(
        r.json().then(
          (body) => (recorded[keyOf(new URL(r.url()))] ??= body),
          () => {}, // the page was left before this answer had come: it is not drawn
        ),
      );
  });
  await show(page, 'tokens'); // the Overview has read its numbers before these answers are kept
  for (const look of looks({ failed: scope.zombie })) {
    await show(page, look.path);
    await ready(page, look);
  }
  await Promise.all(kept);
  for (const { series } of Object.values(recorded).filter((a) => a.series))
    series.steps = series.steps.map(({ at, beats, beatP99Ms, refused }) => ({ at, beats, beatP99Ms, refused })); // what is drawn
  const lines = Object.entries(recorded).map(([key, body]) => `${JSON.stringify(key)}:${JSON.stringify(body)}`);
  const rest = JSON.stringify({ now: Date.now(), token, failed: scope.zombie }).slice(1, -1);
  writeFileSync(answers, `{${rest},"answers":{\n${lines.sort().join(',\n')}\n}}\n`);
} finally {
  await browser.close();
  await stage.close();
}
process.exit(0);
