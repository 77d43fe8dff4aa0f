// The design system: colours and type sizes are in tokens.css only, and no style is without a use.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from './stage.mjs';

const src = join(root, 'ui/src');
const read = (name) => readFileSync(join(src, name), 'utf8').replace(/\/\*.*?\*\//gs, '');
const all = readdirSync(src, { recursive: true });
const sheets = all.filter((name) => name.endsWith('.css') && name !== 'tokens.css');

test('only tokens.css has literal colours and type sizes', () => {
  for (const name of sheets) {
    const literal = read(name).match(/#[0-9a-f]{3,8}\b|\b(rgb|hsl|hwb|lab|lch|oklab|oklch|color)a?\(|font(-size)?:[^;]*\d(px|rem|em)\b/gi);
    assert.deepEqual(literal ?? [], [], name);
  }
});

test('each value that a style uses is in tokens.css or set by a style, and each token is used', () => {
  const tokens = read('tokens.css'),
    styles = sheets.map(read).join();
  const names = (text, pattern) => new Set([...text.matchAll(pattern)].map(([, name]) => name));
  const set = names(tokens + styles, /(--[\w-]+):/g),
    used = names(tokens + styles, /var\((--[\w-]+)/g);
  assert.deepEqual(
    [...used].filter((n) => !set.has(n)),
    [],
  );
  const scripts = all
    .filter((name) => /\.tsx?$/.test(name))
    .map(read)
    .join();
  const byName = (n) => scripts.includes(`'${n}'`) || n.startsWith('--m-'); // canvases read them
  assert.deepEqual(
    [...names(tokens, /(--[\w-]+):/g)].filter((n) => !used.has(n) && !byName(n)),
    [],
  );
});

test('each class that a style names is in a component', () => {
  const scripts = all
    .filter((name) => /\.tsx?$/.test(name) && !name.includes('.gen.'))
    .map((name) => read(name).replace(/\/\/.*/g, ''))
    .join();
  // The rest of these names is a value: a state, an event, a tone.
  const composed = /^(s|m|o|b|t|st|ev|of|u)-/;
  const classes = new Set(sheets.flatMap((name) => [...read(name).matchAll(/\.([a-z][\w-]*)/gi)].map(([, c]) => c)));
  const unused = [...classes].filter((c) => !composed.test(c) && !new RegExp(`['"\`\\s]${c}['"\`\\s]`).test(scripts));
  assert.deepEqual(unused, []);
});
