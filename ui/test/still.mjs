// A still deployment for pictures: the dashboard of ui/dist, recorded answers of the API, a clock that does not move, and one set of fonts.
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { root } from './stage.mjs';

export const answers = join(root, 'ui/test/looks/answers.json');

// keyOf names a request by its path and query, without the scope, which is the same in all.
export function keyOf(url) {
  const query = new URLSearchParams(url.searchParams);
  for (const name of ['tenantId', 'workspaceId']) query.delete(name);
  query.sort();
  return [/\/(v1\/.*|healthz)$/.exec(url.pathname)[1], query].join('?');
}

const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; require-trusted-types-for 'script'";

// serve answers as the recorded server did. Its stream of events is open and sends nothing.
export async function serve() {
  const { now, token, failed, answers: recorded } = JSON.parse(readFileSync(answers, 'utf8'));
  const unknown = new Set();
  const date = new Date(now).toUTCString();
  const longest = Object.entries(recorded).sort(([, a], [, b]) => JSON.stringify(b).length - JSON.stringify(a).length);
  const server = http.createServer((req, res) => {
    const url = new URL(req.url, 'http://still');
    if (url.pathname.startsWith('/ui/')) {
      const name = url.pathname.slice('/ui/'.length) || 'index.html';
      res.writeHead(200, { 'Content-Type': types[extname(name)] ?? 'text/plain', 'Content-Security-Policy': policy });
      return res.end(readFileSync(join(root, 'ui/dist', name)));
    }
    if (req.headers.accept === 'text/event-stream') {
      res.writeHead(200, { 'Content-Type': 'text/event-stream', Date: date });
      return res.flushHeaders();
    }
    // A later read of the series asks for fewer steps: its recorded hour has them.
    const key = keyOf(url),
      path = key.split('?')[0];
    const body = recorded[key] ?? (path === 'v1/stats' ? longest.find(([k]) => k.startsWith('v1/stats?'))[1] : undefined);
    if (body === undefined && path !== 'healthz') unknown.add(key);
    res.writeHead(body === undefined && path !== 'healthz' ? 404 : 200, { 'Content-Type': 'application/json', Date: date });
    res.end(JSON.stringify(body ?? { status: 'ok' }));
  });
  await new Promise((r) => server.listen(0, '127.0.0.1', r));
  const origin = 'http://lubdub.localhost'; // pages show it: it is the same whatever the port is
  const args = [`--host-resolver-rules=MAP lubdub.localhost 127.0.0.1:${server.address().port}`];
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { origin, base: origin, args, token, now, failed, unknown, close };
}

// stopped is a script that stops the clock of a page.
export const stopped = (now) => ({
  content: `{
    const Moving = Date;
    globalThis.Date = class extends Moving {
      constructor(...at) { super(...(at.length ? at : [${now}])); }
      static now() { return ${now}; }
    };
  }`,
});

// oneFont makes a configuration of fontconfig with the fonts of an npm package only, whatever fonts the machine has.
export function oneFont() {
  const folder = mkdtempSync(join(tmpdir(), 'lubdub-font-'));
  mkdirSync(join(folder, 'fonts'));
  for (const file of ['DejaVuSans.ttf', 'DejaVuSans-Bold.ttf', 'DejaVuSansMono.ttf'])
    copyFileSync(join(root, 'ui/node_modules/dejavu-fonts-ttf/ttf', file), join(folder, 'fonts', file));
  const set = (name, value) => `<edit name="${name}" mode="assign">${value}</edit>`;
  writeFileSync(
    join(folder, 'fonts.conf'),
    `<?xml version="1.0"?><fontconfig><dir>${folder}/fonts</dir><cachedir>${folder}/cache</cachedir><match target="font">` +
      set('antialias', '<bool>true</bool>') +
      set('hinting', '<bool>false</bool>') +
      set('rgba', '<const>none</const>') +
      '</match></fontconfig>',
  );
  return {
    env: { ...process.env, FONTCONFIG_FILE: join(folder, 'fonts.conf') },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
